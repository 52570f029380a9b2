package syslog

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
	"github.com/wholelog/wholelog/internal/fake/syslogd"
	"github.com/wholelog/wholelog/internal/handlertest"
)

// R65: handlers accept a nil context.
var noContext context.Context

// shape turns a message into what slogtest looks at. A message always has a time: that of the call stands in for a missing one.
func shape(t *testing.T, form Attrs, m syslogd.Message, timed bool) map[string]any {
	t.Helper()
	out := map[string]any{slog.MessageKey: m.Text, slog.LevelKey: m.Severity}
	switch form {
	case AttrsJSON:
		clear(out)
		if err := json.Unmarshal([]byte(strings.TrimPrefix(m.Text, "@cee:")), &out); err != nil {
			t.Fatalf("%v: %s", err, m.Text)
		}
	case AttrsText:
		words := strings.Fields(m.Text)
		out[slog.MessageKey] = words[0]
		for _, w := range words[1:] {
			name, value, _ := strings.Cut(w, "=")
			put(out, strings.Split(name, "."), value)
		}
	default:
		for _, e := range m.Elements {
			for _, p := range e.Params {
				put(out, strings.Split(p.Name, "."), p.Value)
			}
		}
	}
	if timed {
		out[slog.TimeKey] = m.Time
	}
	return out
}

func put(m map[string]any, path []string, value any) {
	for ; len(path) > 1; path = path[1:] {
		inner, ok := m[path[0]].(map[string]any)
		if !ok {
			inner = map[string]any{}
			m[path[0]] = inner
		}
		m = inner
	}
	m[path[0]] = value
}

// untimed remembers whether the last record had a time, which the message cannot tell.
type untimed struct {
	slog.Handler
	timed *bool
}

func (u untimed) Handle(ctx context.Context, r slog.Record) error {
	*u.timed = !r.Time.IsZero()
	return u.Handler.Handle(ctx, r)
}

func (u untimed) WithAttrs(as []slog.Attr) slog.Handler {
	return untimed{u.Handler.WithAttrs(as), u.timed}
}

func (u untimed) WithGroup(name string) slog.Handler {
	return untimed{u.Handler.WithGroup(name), u.timed}
}

func TestR60_Conformance(t *testing.T) {
	for form := range AttrsText + 1 {
		t.Run(form.String(), func(t *testing.T) {
			var h *Handler
			var s *handlertest.Sink
			var timed bool
			slogtest.Run(t, func(t *testing.T) slog.Handler {
				h, s = sinkHandler(t, Options{Attrs: form})
				return untimed{h, &timed}
			}, func(t *testing.T) map[string]any {
				return shape(t, form, parsed(t, s.Sent(t, h)[0]), timed)
			})
		})
	}
}

func TestHandleAfterClose(t *testing.T) {
	h, s := sinkHandler(t, Options{})
	slog.New(h).Info("before", "a b", true)
	if got := len(s.Sent(t, h)); got != 1 {
		t.Errorf("%d records", got)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	r := info("after", slog.Bool("a b", true), slog.String("cut", strings.Repeat("x", 40_000)))
	for _, x := range []slog.Handler{h, h.WithGroup("g"), h.WithAttrs([]slog.Attr{slog.Int("a", 1)})} {
		if err := x.Handle(noContext, r); !errors.Is(err, delivery.ErrClosed) {
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
	l.Info("\xff", "a b", true)                                  // 2 repaired
	l.With("c d", 1).Info("m", "s", strings.Repeat("x", 10_000)) // 1 repaired, truncated
	l.Info(strings.Repeat("m", 10_000), "s", "plain")            // truncated
	for _, message := range s.Sent(t, h) {
		if parsed(t, message); len(message) > 8192 {
			t.Errorf("%d bytes", len(message))
		}
	}
	if st := h.Stats(); st.Accepted != 3 || st.Delivered != 3 || st.Repaired != 3 || st.Truncated != 2 {
		t.Errorf("%+v", st)
	}
}

func TestGiantsAreNotKept(t *testing.T) {
	h, _ := sinkHandler(t, Options{MaxSize: 2 << 20})
	if _, tally := encode(h, info(strings.Repeat("m", 1<<20))); tally.cut != 0 {
		t.Errorf("%+v", tally)
	}
	if again := h.core.Borrow(); cap(again.out) > maxPooled {
		t.Errorf("a buffer of %d bytes is kept", cap(again.out))
	}
}

func TestSequenceAndOwnRecords(t *testing.T) {
	h, s := sinkHandler(t, Options{Sequence: true})
	l := slog.New(h)
	l.Info("m")
	l.Debug("not sent")
	own, _ := encode(h, info("lost 3 records", slog.Int("n", 3)))
	l.Info("m")
	run := h.core.config.header.run
	if want := head + `[attrs@32473 run="` + run + `" n="3"] lost 3 records`; own != want {
		t.Errorf("\n got %s\nwant %s", own, want)
	}
	for i, message := range s.Sent(t, h) {
		m := parsed(t, message)
		if seq, _ := m.Param("meta", "sequenceId"); seq != fmt.Sprint(i+1) {
			t.Errorf("%s", message)
		}
	}
}

// Loggers derived at the same time from one handler share nothing that changes.
func TestConcurrentWith(t *testing.T) {
	for form := range AttrsText + 1 {
		h := slog.Handler(testHandler(t, Options{Attrs: form})).WithAttrs([]slog.Attr{slog.Int("a", 1)}).WithGroup("g")
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				first, _ := encode(h.WithGroup(fmt.Sprint("h", i)).WithAttrs([]slog.Attr{slog.Int("i", i)}), info("m", slog.Int("k", 1)))
				for range 100 {
					got, _ := encode(h.WithGroup(fmt.Sprint("h", i)).WithAttrs([]slog.Attr{slog.Int("i", i)}), info("m", slog.Int("k", 1)))
					if got != first || !strings.Contains(got, fmt.Sprint("h", i)) {
						t.Errorf("%s and then %s", first, got)
					}
				}
			})
		}
		wg.Wait()
	}
}

func TestR66_LevelsAreNumbers(t *testing.T) {
	var v slog.LevelVar
	h := testHandler(t, Options{Level: &v})
	derived := h.WithGroup("g").WithAttrs([]slog.Attr{slog.Int("a", 1)})
	for _, x := range []struct{ min, level slog.Level }{
		{slog.LevelInfo, slog.LevelInfo + 1},
		{slog.LevelInfo, slog.LevelInfo - 1},
		{slog.LevelError, slog.LevelWarn},
		{-100, slog.LevelDebug},
	} {
		v.Set(x.min)
		for _, h := range []slog.Handler{h, derived} {
			if got := h.Enabled(noContext, x.level); got != (x.level >= x.min) {
				t.Errorf("minimum %v: %v is enabled: %v", x.min, x.level, got)
			}
		}
	}
}

func TestNothingGivenChangesNothing(t *testing.T) {
	h := testHandler(t, Options{})
	if h.WithAttrs(nil) != slog.Handler(h) || h.WithGroup("") != slog.Handler(h) {
		t.Error("a new handler")
	}
	if h.Flush(t.Context()) != nil {
		t.Error("nothing to flush, and an error")
	}
	start := time.Now()
	if err := errors.Join(h.Close(), h.Close()); err != nil || time.Since(start) > time.Minute {
		t.Error(err)
	}
}
