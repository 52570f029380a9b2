package gelf

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/wholelog/wholelog/internal/yardstick"
)

// allKnown encodes r with e and returns whether no name of it was new to e.
func allKnown(e *encoder, s *scope, r slog.Record) bool {
	e.record(context.Background(), s, nil, 0, &r, 1<<20)
	return e.names.base != nil
}

func TestNamesOfARepeatedLogCallAreKnown(t *testing.T) {
	h := testHandler(t, Options{})
	bound := h.WithAttrs([]slog.Attr{slog.String("request", "17")}).(*Handler)
	long := strings.Repeat("n", 60)
	for _, x := range []struct {
		name string
		s    *scope
		r    slog.Record
		want bool
	}{
		{"a usual record", h.scope, yardstick.Record(), true},
		{"no attributes", h.scope, info("m"), true},
		{"names to mend", h.scope, info("m", slog.Int("id", 1), slog.Int("a b", 2), slog.Int("id", 3), slog.Group("g h", slog.Int("é", 4))), true},
		{"a name that is taken", bound.scope, info("m", slog.Int("request", 1), slog.Int("b", 2)), true},
		{"a group", h.WithGroup("g").(*Handler).scope, yardstick.Record(), true},
		{"a name longer than what is kept", h.scope, info("m", slog.Int(long, 1)), false},
	} {
		e := newEncoder(&h.core.config)
		if allKnown(e, x.s, x.r) && x.r.NumAttrs() > 0 {
			t.Errorf("%s: known at the first time", x.name)
		}
		if got := allKnown(e, x.s, x.r); got != x.want {
			t.Errorf("%s: known %v at the second time, want %v", x.name, got, x.want)
		}
	}
	// A logger of its own for each request is as good as one for all: only which names are taken matters.
	e := newEncoder(&h.core.config)
	allKnown(e, bound.scope, yardstick.Record())
	other := h.WithAttrs([]slog.Attr{slog.String("request", "18")}).(*Handler)
	if !allKnown(e, other.scope, yardstick.Record()) {
		t.Error("the names of another request's record are not known")
	}
}

func TestTwoNamesOfOnePlaceAreKnown(t *testing.T) {
	h := testHandler(t, Options{})
	e := newEncoder(&h.core.config)
	for i := range 10_000 {
		first, second := fmt.Sprint("first", i), "second"
		none := h.scope.names.sum
		if e.known.at(none, first) != e.known.at(none+hashName([]byte(first)), second) {
			continue
		}
		r := info("m", slog.Int(first, 1), slog.Int(second, 2))
		allKnown(e, h.scope, r)
		if !allKnown(e, h.scope, r) {
			t.Errorf("%s and %s are not both known", first, second)
		}
		return
	}
	t.Fatal("no two names share a place")
}

// randomAttrs draws from few names, so that they repeat, clash, need mending and share prefixes with those before.
func randomAttrs(rnd *rand.Rand, depth int) (as []slog.Attr) {
	names := []string{"a", "b", "a.b", "a_b", "id", "_id", "id_", "a_2", "", "ä", "level", "gl2", "gl2_x", "a b", strings.Repeat("long", 12), strings.Repeat("long", 20)}
	for range rnd.IntN(6) {
		name := names[rnd.IntN(len(names))]
		if depth < 2 && rnd.IntN(4) == 0 {
			as = append(as, slog.Attr{Key: name, Value: slog.GroupValue(randomAttrs(rnd, depth+1)...)})
		} else {
			as = append(as, slog.Int(name, rnd.IntN(1000)))
		}
	}
	return as
}

// What an encoder remembers never shows: a new one writes the same.
func TestKnownNamesChangeNothing(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	h := testHandler(t, Options{})
	scopes := []*scope{h.scope}
	for range 30 {
		from := &Handler{core: h.core, scope: scopes[rnd.IntN(len(scopes))]}
		scopes = append(scopes, from.WithAttrs(randomAttrs(rnd, 0)).(*Handler).scope, from.WithGroup([]string{"a", "b c", "gl2"}[rnd.IntN(3)]).(*Handler).scope)
	}
	used := newEncoder(&h.core.config)
	for range 3000 {
		s, r := scopes[rnd.IntN(len(scopes))], info("m", randomAttrs(rnd, 0)...)
		fresh := newEncoder(&h.core.config)
		used.record(context.Background(), s, nil, 0, &r, 1<<20)
		fresh.record(context.Background(), s, nil, 0, &r, 1<<20)
		if string(used.buf) != string(fresh.buf) || used.tally != fresh.tally {
			t.Fatalf("%s %+v\nbut a new encoder writes\n%s %+v", used.buf, used.tally, fresh.buf, fresh.tally)
		}
	}
}
