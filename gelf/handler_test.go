package gelf

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/handlertest"
)

// nested turns a message back into slog's keys and groups.
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
		if path, attribute := strings.CutPrefix(key, "_"); attribute {
			handlertest.Put(out, v, strings.Split(path, ".")...)
		}
	}
	return out
}

func TestContract(t *testing.T) {
	handlertest.Run(t, handlertest.Protocol{
		New: func(t testing.TB, o handlertest.Options, s *handlertest.Sink) handlertest.Handler {
			return overSink(t, Options{
				AddSource: o.AddSource, Level: o.Level, ReplaceAttr: o.ReplaceAttr, FromContext: o.FromContext,
				Sequence: o.Sequence, Delivery: o.Delivery,
			}, s)
		},
		Decode: nested,
	})
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
