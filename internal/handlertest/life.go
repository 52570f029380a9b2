package handlertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/yardstick"
)

// counters: what was mended and what was shortened is counted, each once a record.
func counters(t *testing.T, p Protocol) {
	h, s := p.open(t, Options{Delivery: delivery.Options{QueueBytes: 2 << 20}})
	l := slog.New(h)
	l.Info("plain", "a", 1)
	l.Info("\xff")
	l.With("a", strings.Repeat("x", 40_000)).Info("m", "b", strings.Repeat("x", 40_000))
	l.Info(strings.Repeat("m", 2<<20))
	if got := len(p.sent(t, h, s)); got != 4 {
		t.Errorf("%d records", got)
	}
	if st := h.Stats(); st.Accepted != 4 || st.Delivered != 4 || st.Repaired != 1 || st.Truncated != 2 || st.Dropped != 0 {
		t.Errorf("%+v", st)
	}
}

// life: what the verbs say of a handler that is well, that has ended, and that never did anything.
func life(t *testing.T, p Protocol) {
	h, s := p.open(t, Options{})
	if err := errors.Join(h.Ready(t.Context()), h.Flush(t.Context()), h.Handle(t.Context(), record("m"))); err != nil {
		t.Error(err)
	}
	if got := len(p.sent(t, h, s)); got != 1 {
		t.Errorf("%d records", got)
	}
	if err := errors.Join(h.Close(), h.Close(), h.Flush(context.Background())); err != nil {
		t.Error(err)
	}
	if err := h.Ready(t.Context()); !errors.Is(err, delivery.ErrClosed) {
		t.Errorf("Ready after Close: %v", err)
	}
	unused, _ := p.open(t, Options{})
	if err := errors.Join(unused.Flush(t.Context()), unused.Close()); err != nil {
		t.Errorf("nothing was logged: %v", err)
	}
}

// afterClose: Handle says so, in handlers derived before and after too, and nothing counts.
func afterClose(t *testing.T, p Protocol) {
	h, s := p.open(t, Options{})
	child := h.WithGroup("g")
	slog.New(h).Info("before")
	if got := len(p.sent(t, h, s)); got != 1 {
		t.Errorf("%d records", got)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	r := record("after \xff", slog.String("cut", strings.Repeat("x", 40_000)))
	for _, x := range []slog.Handler{h, child, h.WithAttrs([]slog.Attr{slog.Int("a", 1)})} {
		if err := x.Handle(none, r); !errors.Is(err, delivery.ErrClosed) {
			t.Errorf("Handle after Close: %v", err)
		}
	}
	if st := h.Stats(); st.Accepted != 1 || st.Delivered != 1 || st.Dropped != 0 || st.Repaired != 0 || st.Truncated != 0 {
		t.Errorf("%+v", st)
	}
}

// noAllocation: a log call does not allocate, whatever was bound, and numbered or not.
func noAllocation(t *testing.T, p Protocol) {
	if raceDetector {
		t.Log("not with the race detector: it makes a sync.Pool forget at random")
		return
	}
	for _, numbered := range []bool{false, true} {
		s := &Sink{Discard: true}
		h := p.New(t, Options{Sequence: numbered, Delivery: delivery.Options{Overflow: delivery.DropNewest}}, s)
		bound := h.WithAttrs([]slog.Attr{slog.String("service", "shop")}).WithGroup("g")
		r, ctx := yardstick.Record(), context.Background()
		for name, h := range map[string]slog.Handler{"as it is": h, "with attributes and a group": bound} {
			_ = h.Handle(ctx, r) // starts the engine
			if n := testing.AllocsPerRun(1000, func() { _ = h.Handle(ctx, r) }); n != 0 {
				t.Errorf("%s, numbered %v: %v allocations", name, numbered, n)
			}
		}
	}
}

// Printed checks that all ways to print a value show want and nothing of hidden, nor an address in memory.
func Printed(t testing.TB, v any, hidden string, want ...string) {
	t.Helper()
	asJSON, err := json.Marshal(v)
	if err != nil {
		t.Error(err)
	}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("m", "v", v)
	for _, text := range []string{fmt.Sprintf("%v", v), fmt.Sprintf("%+v", v), fmt.Sprintf("%#v", v), string(asJSON), log.String()} {
		if strings.Contains(text, hidden) || strings.Contains(text, "0xc0") {
			t.Errorf("%T: %s", v, text)
		}
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%T: no %s in %s", v, w, text)
			}
		}
	}
}
