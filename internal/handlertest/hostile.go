package handlertest

import (
	"context"
	"log/slog"
	"strings"
	"testing"
)

type (
	pointer    struct{ name string }
	failure    struct{}
	stringer   struct{}
	marshaller struct{}
)

func (p *pointer) LogValue() slog.Value         { return slog.StringValue(p.name) }
func (failure) Error() string                   { panic("no text") }
func (stringer) String() string                 { panic("no text") }
func (marshaller) MarshalJSON() ([]byte, error) { panic("no JSON") }

// hostileValues: a value whose methods panic costs itself. The record arrives, with a mark in the place of the value and all others.
func hostileValues(t *testing.T, p Protocol) {
	for name, v := range map[string]any{
		"LogValue of a nil pointer": (*pointer)(nil), "Error": failure{}, "String": stringer{}, "MarshalJSON": marshaller{},
	} {
		h, s := p.open(t, Options{})
		if err := h.WithAttrs([]slog.Attr{slog.Any("bound", v)}).Handle(t.Context(), record("m", slog.Any("k", v), slog.Int("after", 1))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		m := p.sent(t, h, s)[0]
		if at(m, slog.MessageKey) != "m" || at(m, "after") != "1" || at(m, "k") != at(m, "bound") {
			t.Errorf("%s: %v", name, m)
		}
		if _, plain := v.(stringer); !plain && !strings.Contains(at(m, "k"), "!PANIC") { // a struct that has a text may be shown by its fields
			t.Errorf("%s: %v", name, m)
		}
	}
}

// hostileCallbacks: an option that panics costs no record.
func hostileCallbacks(t *testing.T, p Protocol) {
	for name, o := range map[string]Options{
		"ReplaceAttr": {AddSource: true, ReplaceAttr: func([]string, slog.Attr) slog.Attr { panic("no attribute") }},
		"FromContext": {FromContext: func(context.Context) []slog.Attr { panic("no attributes") }},
	} {
		h, s := p.open(t, o)
		if err := h.WithGroup("g").WithAttrs([]slog.Attr{slog.Int("a", 1)}).Handle(t.Context(), record("m", slog.Int("k", 2))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if all := s.Sent(t, h); len(all) != 1 || !strings.Contains(all[0], "!PANIC") {
			t.Errorf("%s: %q", name, all)
		}
	}
}
