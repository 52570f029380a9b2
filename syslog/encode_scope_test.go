package syslog

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/wholelog/wholelog/delivery"
)

// The name of a group that had to be mended counts in the messages that hold it, once, and in no other.
func TestGroupsThatAreMendedCountWhereTheyStand(t *testing.T) {
	for form, mended := range map[Attrs]int{AttrsStructured: 1, AttrsJSON: 1, AttrsText: 0} {
		h := testHandler(t, Options{Attrs: form}).WithGroup("a\xff")
		bound := h.WithAttrs([]slog.Attr{slog.Int("b", 1)})
		for _, x := range []struct {
			name string
			h    slog.Handler
			as   []slog.Attr
			want int
		}{
			{"nothing", h, nil, 0},
			{"an empty group", h, []slog.Attr{slog.Group("g")}, 0},
			{"one", h, []slog.Attr{slog.Int("k", 1)}, mended},
			{"two", h, []slog.Attr{slog.Int("k", 1), slog.Int("l", 2)}, mended},
			{"bound", bound, nil, mended},
			{"bound, and one", bound, []slog.Attr{slog.Int("k", 1)}, mended},
			{"two groups", h.WithGroup("c\xff"), []slog.Attr{slog.Int("k", 1)}, 2 * mended},
			{"a group in what is bound", bound.WithGroup("c\xff"), nil, mended},
			{"a group and one in what is bound", bound.WithGroup("c\xff"), []slog.Attr{slog.Int("k", 1)}, 2 * mended},
		} {
			if got, tally := encode(x.h, info("m", x.as...)); tally.repaired != x.want {
				t.Errorf("%v, %s: %d, want %d: %s", form, x.name, tally.repaired, x.want, got)
			}
		}
	}
}

// Attributes from everywhere share the room that there is.
func TestMaxSizeHoldsForAttributesFromEverywhere(t *testing.T) {
	long := strings.Repeat("x", 300)
	for form := range AttrsText + 1 {
		for size := 600; size < 1200; size += 7 {
			h := testHandler(t, Options{
				Attrs: form, MaxSize: size, AddSource: true,
				FromContext: func(context.Context) []slog.Attr { return []slog.Attr{slog.String("c", long), slog.String("d", long)} },
			})
			with := h.WithAttrs([]slog.Attr{slog.String("w", long)}).WithGroup("g").WithAttrs([]slog.Attr{slog.Int("v", 1)})
			for _, text := range []string{"m", long} {
				got, tally := encode(with, info(text, slog.String("k", long)))
				if parsed(t, got); len(got) > size || tally.cut == 0 {
					t.Fatalf("%v: %d of %d bytes, %+v: %s", form, len(got), size, tally, got)
				}
			}
		}
	}
}

// The ends of all groups that are open have room behind the last attribute.
func TestMaxSizeHoldsForGroupsInGroups(t *testing.T) {
	var as []slog.Attr
	for range 100 {
		as = append(as, slog.Int("i", 1), slog.String("s", "x"))
	}
	for size := 600; size < 700; size++ {
		var h slog.Handler = testHandler(t, Options{Attrs: AttrsJSON, MaxSize: size})
		for range 60 {
			h = h.WithGroup("g")
		}
		got, tally := encode(h, info("m", as...))
		if m := parsed(t, got); len(got) > size || tally.cut == 0 || !json.Valid([]byte(strings.TrimPrefix(m.Text, "@cee:"))) {
			t.Fatalf("%d of %d bytes, %+v: %s", len(got), size, tally, got)
		}
	}
}

// An encoder that a giant passed through, as text or as a name, is not kept: what is pooled is in nobody's budget.
func TestGiantsAreNotPooled(t *testing.T) {
	giant := strings.Repeat("g", maxPooled+1)
	for form := range AttrsText + 1 {
		h := testHandler(t, Options{Attrs: form, MaxSize: 2 * maxPooled, Delivery: delivery.Options{QueueBytes: 16 * maxPooled}})
		for name, x := range map[string]struct {
			h    slog.Handler
			r    slog.Record
			want bool
		}{
			"small":   {h, info("m", slog.Group("g", slog.Int("k", 1))), true},
			"text":    {h, info(giant), false},
			"value":   {h, info("m", slog.String("k", giant)), false},
			"group":   {h, info("m", slog.Group(giant, slog.Int("k", 1))), false},
			"handler": {h.WithGroup(giant), info("m", slog.Int("k", 1)), false},
		} {
			e := newEncoder(&h.core.config)
			e.record(t.Context(), x.h.(*Handler).scope, 0, &x.r, h.core.limit)
			if e.Reusable() != x.want {
				t.Errorf("%v, %s: reusable %v; %d, %d and %d bytes", form, name, !x.want, cap(e.out), cap(e.buf), cap(e.prefix))
			}
		}
	}
}

// R13: the names that are the record's own are so in every record, also behind one's own source.
func TestR13_NamesOfTheRecordsOwn(t *testing.T) {
	h, s := sinkHandler(t, Options{Attrs: AttrsJSON, AddSource: true})
	log := slog.New(h)
	for range 2 {
		log.Info("m", "msg", 1, "level", 2, "source", 3, slog.Group("g", "msg", 4))
	}
	for _, got := range s.Sent(t, h) {
		if !strings.Contains(got, `{"msg":"m","level":"INFO","source":{"function":`) || !strings.HasSuffix(got, `},"msg_":1,"level_":2,"source_":3,"g":{"msg":4}}`) {
			t.Error(got)
		}
	}
}

// Handlers derived from one do not write into each other's groups.
func TestSiblingsKeepTheirGroups(t *testing.T) {
	for form := range AttrsText + 1 {
		var seen []string
		h := testHandler(t, Options{Attrs: form, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if a.Key == "k" {
				seen = slices.Clone(groups)
			}
			return a
		}})
		var parent slog.Handler = h
		for _, name := range []string{"a", "b", "c"} { // an append to three finds room
			parent = parent.WithGroup(name)
		}
		first := parent.WithGroup("first")
		parent.WithGroup("second")
		got, _ := encode(first, info("m", slog.Int("k", 1)))
		if want := []string{"a", "b", "c", "first"}; !slices.Equal(seen, want) || !strings.Contains(got, "first") {
			t.Errorf("%v: %q, want %q: %s", form, seen, want, got)
		}
	}
}
