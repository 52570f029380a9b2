package handlertest

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wholelog/wholelog/delivery"
)

// derived: handlers derived from one at the same time share nothing that changes, and leave it as it was.
func derived(t *testing.T, p Protocol) {
	h, s := p.open(t, Options{Delivery: delivery.Options{MaxBlock: time.Minute}})
	parent := h.WithAttrs([]slog.Attr{slog.Int("a", 1)}).WithGroup("g")
	const goroutines, each = 8, 25
	var wg sync.WaitGroup
	for i := range goroutines {
		wg.Go(func() {
			for range each {
				child := parent.WithGroup(fmt.Sprint("h", i)).WithAttrs([]slog.Attr{slog.Int("i", i)})
				if err := child.Handle(context.Background(), record(fmt.Sprint(i), slog.Int("k", i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := parent.Handle(t.Context(), record("parent", slog.Int("k", 1))); err != nil {
		t.Error(err)
	}
	all := p.sent(t, h, s)
	if len(all) != goroutines*each+1 {
		t.Fatalf("%d records", len(all))
	}
	for _, m := range all {
		i := at(m, slog.MessageKey)
		inner, _ := m["g"].(map[string]any)
		if i == "parent" {
			if at(m, "a") != "1" || at(m, "g", "k") != "1" || len(inner) != 1 {
				t.Errorf("the parent's record is %v", m)
			}
		} else if at(m, "a") != "1" || at(m, "g", "h"+i, "i") != i || at(m, "g", "h"+i, "k") != i || len(inner) != 1 {
			t.Errorf("record %s is %v", i, m)
		}
	}
}

type contextKey struct{}

// fromContext: attributes of the call's context stand outside of all groups.
func fromContext(t *testing.T, p Protocol) {
	h, s := p.open(t, Options{FromContext: func(ctx context.Context) []slog.Attr {
		return []slog.Attr{slog.Any("trace", ctx.Value(contextKey{}))}
	}})
	ctx := context.WithValue(t.Context(), contextKey{}, "t1")
	if err := h.WithGroup("g").WithAttrs([]slog.Attr{slog.Int("a", 1)}).Handle(ctx, record("m", slog.Int("k", 2))); err != nil {
		t.Error(err)
	}
	m := p.sent(t, h, s)[0]
	if at(m, "trace") != "t1" || at(m, "g", "a") != "1" || at(m, "g", "k") != "2" {
		t.Errorf("%v", m)
	}
}

// manyGoroutines: every record arrives with its own content.
func manyGoroutines(t *testing.T, p Protocol) {
	h, s := p.open(t, Options{Sequence: true, Delivery: delivery.Options{MaxBlock: time.Minute}})
	const goroutines, each = 50, 20
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
	seen, numbers := map[string]bool{}, map[string]bool{}
	for _, m := range p.sent(t, h, s) {
		g, i := at(m, "g"), at(m, "r", "i")
		if at(m, slog.MessageKey) != g+"/"+i || fmt.Sprint((len(at(m, "r", "text"))-1)/10) != g {
			t.Errorf("%v", m)
		}
		seen[g+"/"+i], numbers[at(m, "seq")] = true, true
	}
	if len(seen) != goroutines*each || len(numbers) != goroutines*each {
		t.Errorf("%d records and %d numbers, want %d", len(seen), len(numbers), goroutines*each)
	}
}

// sequence: it counts what is logged, over all handlers derived from one, and is not there when nobody asked for it.
func sequence(t *testing.T, p Protocol) {
	for on, want := range map[bool][]string{true: {"1", "2", "3"}, false: {"", "", ""}} {
		h, s := p.open(t, Options{Sequence: on})
		l := slog.New(h)
		l.Info("m")
		l.Debug("not logged")
		l.WithGroup("g").With("a", 1).Info("m")
		l.Info("m")
		var got []string
		for _, m := range p.sent(t, h, s) {
			got = append(got, at(m, "seq"))
		}
		if !slices.Equal(got, want) {
			t.Errorf("Sequence %v: %q, want %q", on, got, want)
		}
	}
}
