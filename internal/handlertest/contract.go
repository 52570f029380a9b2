// Package handlertest holds what the handlers of all protocols must do alike, as tests that each package runs over its own: [Run]. A
// [Sink] stands in for the network.
package handlertest

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"

	"github.com/wholelog/wholelog/delivery"
)

// Handler is what the handlers of all protocols are.
type Handler interface {
	slog.Handler
	Ready(ctx context.Context) error
	Flush(ctx context.Context) error
	Close() error
	Stats() delivery.Stats
	fmt.Stringer
	fmt.GoStringer
	json.Marshaler
	slog.LogValuer
}

// Options are what all protocols' options have.
type Options struct {
	AddSource   bool
	Level       slog.Leveler
	ReplaceAttr func(groups []string, a slog.Attr) slog.Attr
	FromContext func(ctx context.Context) []slog.Attr
	Sequence    bool
	Delivery    delivery.Options
}

// Protocol is what the contract needs to know of one.
type Protocol struct {
	// New makes a handler over s, with its own form of o. It closes it when t ends.
	New func(t testing.TB, o Options, s *Sink) Handler

	// Decode takes a message apart, and fails t when a receiver would not take it. The result has slog's own keys, groups as maps, and
	// the sequence number, where there is one, as "seq". Values may be texts: what they mean is not looked at.
	Decode func(t testing.TB, message string) map[string]any

	// AlwaysTimed says that a message has a time also when its record has none.
	AlwaysTimed bool
}

// Run runs the contract of all handlers as subtests of t.
func Run(t *testing.T, p Protocol) {
	for _, part := range []struct {
		name string
		test func(t *testing.T, p Protocol)
	}{
		{"R60_slogtest", conformance},
		{"R65_no_context", noContext},
		{"R66_levels", levels},
		{"nothing_given", nothingGiven},
		{"derived", derived},
		{"from_context", fromContext},
		{"R62_hostile_values", hostileValues},
		{"hostile_callbacks", hostileCallbacks},
		{"R57_many_goroutines", manyGoroutines},
		{"sequence", sequence},
		{"counters", counters},
		{"life", life},
		{"R55_after_Close", afterClose},
		{"no_allocation", noAllocation},
	} {
		t.Run(part.name, func(t *testing.T) { part.test(t, p) })
	}
}

// open makes a handler over a new sink.
func (p Protocol) open(t testing.TB, o Options) (Handler, *Sink) {
	s := new(Sink)
	return p.New(t, o, s), s
}

// sent returns what arrived at s since the last call, decoded.
func (p Protocol) sent(t testing.TB, h Handler, s *Sink) []map[string]any {
	t.Helper()
	var all []map[string]any
	for _, message := range s.Sent(t, h) {
		all = append(all, p.Decode(t, message))
	}
	return all
}

// Put puts v into m at the end of a path of names, which are maps in each other. It is for Decode.
func Put(m map[string]any, v any, path ...string) {
	last := len(path) - 1
	for _, name := range path[:last] {
		inner, ok := m[name].(map[string]any)
		if !ok {
			inner = map[string]any{}
			m[name] = inner
		}
		m = inner
	}
	m[path[last]] = v
}

// at returns the text of what a path of names leads to in a decoded message, "" where there is nothing.
func at(m map[string]any, path ...string) string {
	for _, name := range path[:len(path)-1] {
		m, _ = m[name].(map[string]any)
	}
	if v, ok := m[path[len(path)-1]]; ok {
		return fmt.Sprint(v)
	}
	return ""
}
