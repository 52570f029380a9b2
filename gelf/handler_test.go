package gelf

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/slogtest"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/handlertest"
)

// nested turns a message back into what the suite expects: slog's keys, and groups as maps.
func nested(t testing.TB, message string) map[string]any {
	t.Helper()
	var flat map[string]any
	if err := json.Unmarshal([]byte(message), &flat); err != nil {
		t.Fatalf("%v: %s", err, message)
	}
	out := map[string]any{}
	for key, v := range flat {
		switch key {
		case "timestamp":
			out[slog.TimeKey] = v
		case "level":
			out[slog.LevelKey] = v
		case "short_message":
			out[slog.MessageKey] = v
		}
		path, attribute := strings.CutPrefix(key, "_")
		if !attribute {
			continue
		}
		m := out
		for {
			group, rest, ok := strings.Cut(path, ".")
			if !ok {
				break
			}
			inner, ok := m[group].(map[string]any)
			if !ok {
				inner = map[string]any{}
				m[group] = inner
			}
			m, path = inner, rest
		}
		m[path] = v
	}
	return out
}

func TestR60_Slogtest(t *testing.T) {
	var h *Handler
	var s *handlertest.Sink
	slogtest.Run(t, func(t *testing.T) slog.Handler {
		h, s = sinkHandler(t, Options{})
		return h
	}, func(t *testing.T) map[string]any {
		return nested(t, s.Sent(t, h)[0])
	})
}

func TestHandleAfterClose(t *testing.T) {
	h, s := sinkHandler(t, Options{})
	l := slog.New(h)
	l.Info("before", "repaired", true)
	if got := len(s.Sent(t, h)); got != 1 {
		t.Errorf("%d records", got)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	r := info("after", slog.Bool("repaired", true), slog.String("cut", strings.Repeat("x", 40_000)))
	for _, x := range []slog.Handler{h, h.WithGroup("g"), h.WithAttrs([]slog.Attr{slog.Int("a", 1)})} {
		if err := x.Handle(context.Background(), r); !errors.Is(err, delivery.ErrClosed) {
			t.Errorf("Handle after Close: %v", err)
		}
	}
	if err := h.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	if st := h.Stats(); st.Accepted != 1 || st.Delivered != 1 || st.Repaired != 1 || st.Truncated != 0 {
		t.Errorf("%+v", st)
	}
}

func TestCounters(t *testing.T) {
	h, s := sinkHandler(t, Options{})
	l := slog.New(h)
	l.Info("", "b", true, "id", 1)                                             // 3 repaired
	l.With("u", uint64(1<<63)).Info("m", "s", strings.Repeat("x", maxField+1)) // 1 repaired, truncated
	l.Info(strings.Repeat("m", h.core.MaxRecord()), "s", "plain")              // truncated
	for _, message := range s.Sent(t, h) {
		keepsAll(t, message, 1)
	}
	if st := h.Stats(); st.Accepted != 3 || st.Delivered != 3 || st.Repaired != 4 || st.Truncated != 2 {
		t.Errorf("%+v", st)
	}
}

func TestOversizeDrop(t *testing.T) {
	var mu sync.Mutex
	var drops []delivery.Drop
	h, s := sinkHandler(t, Options{Oversize: OversizeDrop, Delivery: delivery.Options{OnDrop: func(d delivery.Drop) {
		mu.Lock()
		defer mu.Unlock()
		drops = append(drops, d)
	}}})
	size := h.core.MaxRecord()
	err := h.Handle(context.Background(), info(strings.Repeat("m", size)))
	var d delivery.Drop
	if !errors.As(err, &d) || d.Reason != delivery.ReasonTooLarge || !errors.Is(err, delivery.ErrTooLarge) {
		t.Errorf("%v", err)
	}
	// A long attribute is not a message too large for every way.
	if err := h.Handle(context.Background(), info("m", slog.String("a", strings.Repeat("x", 40_000)))); err != nil {
		t.Error(err)
	}
	if got := len(s.Sent(t, h)); got != 1 {
		t.Errorf("%d records arrived, want 1", got)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if st := h.Stats(); len(drops) != 1 || drops[0].Bytes < size || st.Accepted != 2 || st.Dropped != 1 || st.Reasons[delivery.ReasonTooLarge] != 1 || st.Truncated != 1 {
		t.Errorf("drops %v, %+v", drops, st)
	}
}

func TestGiantsAreNotKept(t *testing.T) {
	h, _ := sinkHandler(t, Options{})
	e := h.core.Borrow()
	r := info(strings.Repeat("m", 1<<20))
	e.record(context.Background(), h.scope, h.core.head, 0, &r, 4<<20)
	h.core.Return(e)
	if again := h.core.Borrow(); cap(again.buf) > maxPooled {
		t.Errorf("a buffer of %d bytes is kept", cap(again.buf))
	}
}

func TestOwnRecords(t *testing.T) {
	got, _ := encode(testHandler(t, Options{Sequence: true}), info("lost 3 records", slog.Int("n", 3)))
	if !strings.HasPrefix(got, `{"version":"1.1","host":"h","_run":"`) || !strings.HasSuffix(got, `,"level":6,"_n":3,"short_message":"lost 3 records"}`) {
		t.Error(got)
	}
}

func TestR57_ManyGoroutines(t *testing.T) {
	h, s := sinkHandler(t, Options{Sequence: true, Delivery: delivery.Options{MaxBlock: 10 * time.Second}})
	const goroutines, each = 50, 40
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			l := slog.New(h).With("g", g).WithGroup("r")
			for i := range each {
				l.Info(fmt.Sprintf("%d/%d", g, i), "i", i, "text", strings.Repeat("x", g*10+1))
			}
		})
	}
	wg.Wait()
	seen := map[string]bool{}
	for _, message := range s.Sent(t, h) {
		m := nested(t, message)
		r := m["r"].(map[string]any)
		want := fmt.Sprintf("%v/%v", m["g"], r["i"])
		if m[slog.MessageKey] != want || len(r["text"].(string)) != int(m["g"].(float64))*10+1 {
			t.Errorf("%s", message)
		}
		seen[fmt.Sprint(m["seq"])] = true
	}
	if len(seen) != goroutines*each {
		t.Errorf("%d numbers, want %d", len(seen), goroutines*each)
	}
}

// Loggers derived at the same time from one handler share nothing that changes.
func TestConcurrentWith(t *testing.T) {
	h := slog.Handler(testHandler(t, Options{})).WithAttrs([]slog.Attr{slog.Int("a", 1)}).WithGroup("g")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 200 {
				got, _ := encode(h.WithGroup(fmt.Sprint("h", i)).WithAttrs([]slog.Attr{slog.Int("i", i)}), info("m", slog.Int("k", 1)))
				if want := fmt.Sprintf(`{"version":"1.1","host":"h","_a":1,"_g.h%d.i":%d,"level":6,"_g.h%d.k":1,"short_message":"m"}`, i, i, i); got != want {
					t.Error(got)
					return
				}
			}
		})
	}
	wg.Wait()
}
