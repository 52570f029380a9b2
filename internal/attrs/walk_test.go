package attrs

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"
)

// trace is a Visitor that writes down what it is shown: attributes as key=value, documents as key:doc, groups as name{…}.
// It takes back an empty group, as encoders do.
type trace struct{ strings.Builder }

func (v *trace) Attr(key string, kind slog.Kind, value slog.Value) {
	if kind != value.Kind() {
		fmt.Fprintf(v, "KIND %v OF %v ", kind, value.Kind())
	}
	fmt.Fprintf(v, "%s=%v ", key, value)
}
func (v *trace) Doc(key string, doc []byte) { fmt.Fprintf(v, "%s:%s ", key, doc) }

func (v *trace) Open(name string) int {
	mark := v.Len()
	fmt.Fprintf(v, "%s{ ", name)
	return mark
}

func (v *trace) Close(mark int, empty bool) {
	if !empty {
		v.WriteString("} ")
		return
	}
	before := v.String()[:mark]
	v.Reset()
	v.WriteString(before)
}

// walk returns what a Visitor is shown of as, inside of groups.
func walk(replace func([]string, slog.Attr) slog.Attr, groups []string, as ...slog.Attr) string {
	var v trace
	w := NewWalker(&v, replace)
	w.Begin(groups)
	w.Attrs(as)
	return strings.TrimSpace(v.String())
}

type valuer struct{ v slog.Value }

func (v valuer) LogValue() slog.Value { return v.v }

type nilPanics struct{ s string }

func (p *nilPanics) LogValue() slog.Value { return slog.StringValue(p.s) }

type panics struct{}

func (panics) LogValue() slog.Value { panic("boom") }

// endless resolves to a group that holds it twice.
type endless struct{}

func (e endless) LogValue() slog.Value { return slog.GroupValue(slog.Any("a", e), slog.Any("b", e)) }

func TestWalk(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, x := range []struct {
		name string
		in   []slog.Attr
		want string
	}{
		{"nothing", nil, ""},
		{"scalars", []slog.Attr{
			slog.String("s", "x"), slog.Int("i", -1), slog.Uint64("u", 2), slog.Float64("f", 1.5), slog.Bool("b", true),
			slog.Duration("d", time.Second), slog.Time("t", at),
		}, "s=x i=-1 u=2 f=1.5 b=true d=1s t=" + at.String()},
		{"zero attributes are left out", []slog.Attr{{}, slog.Int("a", 1), {}}, "a=1"},
		{"an empty key is a key", []slog.Attr{slog.Int("", 1)}, "=1"},
		{"nil is a value", []slog.Attr{slog.Any("n", nil)}, "n=<nil>"},
		{"a group", []slog.Attr{slog.Group("g", slog.Int("a", 1), slog.Group("h", slog.Int("b", 2))), slog.Int("c", 3)}, "g{ a=1 h{ b=2 } } c=3"},
		{"empty groups are left out", []slog.Attr{slog.Group("g"), slog.Group("h", slog.Group("i"), slog.Attr{}), slog.Int("a", 1)}, "a=1"},
		{"R63 a group without a name is inlined", []slog.Attr{slog.Group("", slog.String("c", "d"))}, "c=d"},
		{"valuers", []slog.Attr{slog.Any("v", valuer{slog.IntValue(7)})}, "v=7"},
		{"valuers in groups", []slog.Attr{slog.Group("g", slog.Any("v", valuer{slog.AnyValue(valuer{slog.StringValue("x")})}))}, "g{ v=x }"},
		{"valuers of groups", []slog.Attr{slog.Any("v", valuer{slog.GroupValue(slog.Any("w", valuer{slog.BoolValue(true)}))})}, "v{ w=true }"},
		{"valuers of nothing", []slog.Attr{slog.Any("v", valuer{slog.GroupValue()})}, ""},
	} {
		if got := walk(nil, nil, x.in...); got != x.want {
			t.Errorf("%s: %s, want %s", x.name, got, x.want)
		}
	}
}

func TestR62_LogValuePanics(t *testing.T) {
	got := walk(nil, nil, slog.Int("a", 1), slog.Any("v", (*nilPanics)(nil)), slog.Group("g", slog.Any("w", panics{})), slog.Int("b", 2))
	const want = "a=1 v=!PANIC: runtime error: invalid memory address or nil pointer dereference g{ w=!PANIC: boom } b=2"
	if got != want {
		t.Error(got)
	}
}

// circular resolves to itself.
type circular struct{}

func (c circular) LogValue() slog.Value { return slog.AnyValue(c) }

func TestResolveEnds(t *testing.T) {
	if got := walk(nil, nil, slog.Any("c", circular{})); !strings.HasPrefix(got, "c=!LOOP: ") {
		t.Error(got)
	}
}

func TestWalkEnds(t *testing.T) {
	var v trace
	w := NewWalker(&v, nil)
	w.Begin(nil)
	w.Attrs([]slog.Attr{slog.Any("e", endless{})})
	if !w.Exhausted() || !strings.Contains(v.String(), "!DEPTH") {
		t.Errorf("exhausted %v after %d bytes", w.Exhausted(), v.Len())
	}
	v.Reset()
	w.Begin(nil)
	w.Attrs([]slog.Attr{slog.Int("a", 1)})
	if w.Exhausted() || v.String() != "a=1 " {
		t.Errorf("the next walk: exhausted %v, %s", w.Exhausted(), v.String())
	}
}

func TestRecord(t *testing.T) {
	var v trace
	w := NewWalker(&v, nil)
	r := slog.NewRecord(time.Now(), slog.LevelInfo, "m", 0)
	w.Begin(nil)
	if w.Record(&r) {
		t.Error("a record without attributes showed something")
	}
	for i := range 8 { // more than a record holds without a slice of its own
		r.AddAttrs(slog.Int(fmt.Sprint(i), i))
	}
	if !w.Record(&r) || v.String() != "0=0 1=1 2=2 3=3 4=4 5=5 6=6 7=7 " {
		t.Error(v.String())
	}
}

func TestReplace(t *testing.T) {
	var calls []string
	spy := func(groups []string, a slog.Attr) slog.Attr {
		calls = append(calls, fmt.Sprintf("%v %v", groups, a))
		if len(groups) == 0 && groups != nil {
			calls = append(calls, "groups is empty but not nil")
		}
		return a
	}
	walk(spy, []string{"with"}, slog.Int("a", 1), slog.Group("g", slog.Int("b", 2), slog.Group("", slog.Int("c", 3))),
		slog.Any("v", valuer{slog.StringValue("x")}), slog.Any("w", valuer{slog.GroupValue(slog.Int("d", 4))}), slog.Group("empty"))
	walk(spy, nil, slog.Int("e", 5))
	want := []string{"[with] a=1", "[with g] b=2", "[with g] c=3", "[with] v=x", "[with w] d=4", "[] e=5"}
	if !slices.Equal(calls, want) {
		t.Errorf("calls %q, want %q", calls, want)
	}
}

func TestReplaceResults(t *testing.T) {
	for _, x := range []struct {
		name string
		to   slog.Attr
		want string
	}{
		{"removed", slog.Attr{}, "g{ z=0 }"},
		{"renamed", slog.Int("n", 1), "g{ n=1 z=0 }"},
		{"a group", slog.Group("h", slog.Int("z", 1)), "g{ h{ z=1 } z=0 }"},
		{"a group to inline", slog.Group("", slog.Int("z", 1)), "g{ z=1 z=0 }"},
		{"a valuer", slog.Any("v", valuer{slog.IntValue(3)}), "g{ v=3 z=0 }"},
		{"an error", slog.Any("e", fmt.Errorf("broken")), "g{ e=broken z=0 }"},
	} {
		replace := func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == "x" {
				return x.to
			}
			return a
		}
		if got := walk(replace, nil, slog.Group("g", slog.Int("x", 9), slog.Int("z", 0))); got != x.want {
			t.Errorf("%s: %s, want %s", x.name, got, x.want)
		}
	}
}

// A ReplaceAttr that panics may have been about to hide the value.
func TestReplacePanics(t *testing.T) {
	replace := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == "password" {
			panic("no")
		}
		return a
	}
	if got := walk(replace, nil, slog.String("password", "hunter2"), slog.Int("a", 1)); got != "password=!PANIC: no a=1" {
		t.Error(got)
	}
}

// A ReplaceAttr that appends to groups does not change them for others.
func TestReplaceMayNotGrowGroups(t *testing.T) {
	var seen []string
	walk(func(groups []string, a slog.Attr) slog.Attr {
		_ = append(groups, "mine")
		seen = append(seen, strings.Join(groups, "."))
		return a
	}, nil, slog.Group("a", slog.Int("x", 1), slog.Group("b", slog.Int("y", 2)), slog.Int("z", 3)))
	if !slices.Equal(seen, []string{"a", "a.b", "a"}) {
		t.Error(seen)
	}
}

func TestWalkDoesNotAllocate(t *testing.T) {
	w := NewWalker(discard{}, nil)
	r := slog.NewRecord(time.Now(), slog.LevelInfo, "m", 0)
	r.AddAttrs(slog.Int("a", 1), slog.String("b", "x"), slog.Group("g", slog.Bool("c", true)))
	groups := []string{"one", "two"}
	if n := testing.AllocsPerRun(100, func() {
		w.Begin(groups)
		w.Record(&r)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

type discard struct{}

func (discard) Attr(string, slog.Kind, slog.Value) {}
func (discard) Doc(string, []byte)                 {}
func (discard) Open(string) int                    { return 0 }
func (discard) Close(int, bool)                    {}
