package syslog

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/wholelog/wholelog/internal/handlertest"
)

// nested turns a message back into slog's keys and groups.
func nested(t testing.TB, form Attrs, message string) map[string]any {
	t.Helper()
	m := parsed(t, message)
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
			handlertest.Put(out, value, strings.Split(name, ".")...)
		}
	default:
		for _, e := range m.Elements {
			for _, p := range e.Params {
				handlertest.Put(out, p.Value, strings.Split(p.Name, ".")...)
			}
		}
	}
	out[slog.TimeKey] = m.Time
	if seq, ok := m.Param("meta", "sequenceId"); ok {
		out["seq"] = seq
	}
	return out
}

func TestContract(t *testing.T) {
	for form := range AttrsText + 1 {
		t.Run(form.String(), func(t *testing.T) {
			handlertest.Run(t, handlertest.Protocol{
				New: func(t testing.TB, o handlertest.Options, s *handlertest.Sink) handlertest.Handler {
					return overSink(t, Options{
						AddSource: o.AddSource, Level: o.Level, ReplaceAttr: o.ReplaceAttr, FromContext: o.FromContext,
						Sequence: o.Sequence, Delivery: o.Delivery, Attrs: form,
					}, s)
				},
				Decode:      func(t testing.TB, message string) map[string]any { return nested(t, form, message) },
				AlwaysTimed: true, // by that of the call
			})
		})
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
