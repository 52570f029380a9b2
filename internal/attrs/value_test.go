package attrs

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/big"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
)

type (
	named   string
	level   int
	flag    bool
	point   struct{ X, Y int }
	hidden  struct{ a int }
	failure struct{ Code int }
	tagged  struct {
		Name   string `json:"name"`
		Secret string `json:"-"`
		Empty  string `json:"empty,omitempty"`
		Fn     func() `json:"fn"`
	}
	cycle struct {
		Name string
		Next *cycle
	}
	textual  struct{ s string }
	brokenJS struct{ Why string }
	noisyNil struct{ s string }
	loud     struct{}
)

func (e failure) Error() string                { return fmt.Sprintf("failure %d", e.Code) }
func (f failure) MarshalJSON() ([]byte, error) { return []byte("{}"), nil }
func (t textual) MarshalText() ([]byte, error) { return []byte("<" + t.s + ">"), nil }
func (brokenJS) MarshalJSON() ([]byte, error)  { return nil, errors.New("no") }
func (n *noisyNil) Error() string              { return n.s }
func (loud) String() string                    { panic(errors.New("too loud")) }

type (
	loudError struct{}
	loudJSON  struct{ A int }
	loudText  struct{}
)

func (loudError) Error() string               { panic("e") }
func (loudJSON) MarshalJSON() ([]byte, error) { panic("j") }
func (loudText) MarshalText() ([]byte, error) { panic("t") }

// show returns one attribute's value as a visitor sees it.
func show(x any) string { return walk(nil, nil, slog.Any("v", x))[len("v="):] }

func TestValues(t *testing.T) {
	seven, text := 7, "text"
	link, _ := url.Parse("http://host/path")
	big100, _ := new(big.Int).SetString("1267650600228229401496703205376", 10)
	var nilMap map[string]int
	var nilFunc func()
	for _, x := range []struct {
		name string
		in   any
		want string
	}{
		{"named string", named("n"), "n"},
		{"named int", level(-3), "-3"},
		{"named bool", flag(true), "true"},
		{"small integers", int8(-8), "-8"},
		{"float32", float32(1.5), "1.5"},
		{"complex", complex(1, -2), "(1-2i)"},
		{"pointer to int", &seven, "7"},
		{"pointer to string", &text, "text"},
		{"nil pointer", (*int)(nil), "<nil>"},
		{"nil map", nilMap, "<nil>"},
		{"nil func", nilFunc, "<nil>"},
		{"func", strings.ToUpper, "func(string) string"},
		{"channel", make(chan int), "chan int"},
		{"bytes", []byte("raw"), "raw"},
		{"bytes that are no text", []byte{0xff, 0xfe}, "//4="},
		{"struct", point{1, 2}, `{"X":1,"Y":2}`},
		{"pointer to struct", &point{1, 2}, `{"X":1,"Y":2}`},
		{"slice", []string{"a", "<b>"}, `["a","<b>"]`},
		{"empty slice", []int{}, `[]`},
		{"map", map[string]int{"b": 2, "a": 1}, `{"a":1,"b":2}`},
		{"raw JSON", json.RawMessage(`{"a": [1]}`), `{"a":[1]}`},
		{"JSON number", json.Number("12"), "12"},
		{"JSON number with fraction", json.Number("1.50"), "1.50"},
		{"level", slog.LevelWarn, "WARN"},
		{"stringer", link, "http://host/path"},
		{"text marshaler", textual{"x"}, "<x>"},
		{"address", netip.MustParseAddr("::1"), "::1"},
		{"pointer to time", ptr(time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)), "2026-01-02T03:04:05.000000006Z"},
		{"big integer", big100, "1267650600228229401496703205376"},
		{"unexported fields only", hidden{5}, `{"a":5}`},
		{"nested without exported fields", struct{ H hidden }{hidden{5}}, `{"H":{"a":5}}`},
		{"NaN inside", map[string]float64{"x": math.NaN(), "y": 1}, `{"x":"NaN","y":1.0}`},
		{"func inside", tagged{Name: "n", Secret: "s", Fn: func() {}}, `{"name":"n","fn":"func()"}`},
		{"marshaler that fails", brokenJS{"w"}, `{"Why":"w"}`},
		{"map with odd keys", map[point]string{{1, 2}: "a"}, `{"{\"X\":1,\"Y\":2}":"a"}`},
		{"error inside", struct{ Err error }{errors.New("inner")}, `{"Err":"inner"}`},
		{"error in unexported field", struct{ err error }{errors.New("inner")}, `{"err":{"s":"inner"}}`},
		{"empty struct", struct{}{}, `{}`},
	} {
		if got := show(x.in); got != x.want {
			t.Errorf("%s: %s, want %s", x.name, got, x.want)
		}
	}
}

func ptr[T any](v T) *T { return &v }

func TestR06_ErrorsAreTheirText(t *testing.T) {
	for in, want := range map[error]string{
		errors.New("plain"):                            "plain",
		fmt.Errorf("wrapped: %w", errors.New("inner")): "wrapped: inner",
		failure{3}:                       "failure 3",
		fmt.Errorf("op: %w", failure{4}): "op: failure 4",
		errors.Join(errors.New("a"), errors.New("b")): "a\nb",
		(*noisyNil)(nil): "<nil>",
	} {
		if got := show(in); got != want {
			t.Errorf("%T: %q, want %q", in, got, want)
		}
	}
}

func TestPanicsAreVisible(t *testing.T) {
	for _, x := range []struct {
		in   any
		want string
	}{
		{loud{}, "!PANIC: too loud"},
		{loudError{}, "!PANIC: e"},
		{loudJSON{}, "!PANIC: j"},
		{loudText{}, "!PANIC: t"},
		{&loud{}, "!PANIC: too loud"},
		{map[string]any{"ok": 1, "bad": loudJSON{}}, `{"bad":"!PANIC: j","ok":1}`},
		{struct {
			H hidden
			L loud
			E loudError
		}{}, `{"H":{"a":0},"L":"!PANIC: too loud","E":"!PANIC: e"}`},
		{struct {
			N float64
			J loudJSON
			T *loudText
		}{N: 1}, `{"N":1.0,"J":"!PANIC: j","T":"<nil>"}`},
	} {
		if got := show(x.in); got != x.want {
			t.Errorf("%T: %s, want %s", x.in, got, x.want)
		}
	}
}

type evil struct{}

func (evil) Error() string { panic("again") }

func TestPanicText(t *testing.T) {
	for _, x := range []struct {
		in   any
		want string
	}{
		{"text", "!PANIC: text"},
		{errors.New("err"), "!PANIC: err"},
		{time.Second, "!PANIC: 1s"},
		{evil{}, "!PANIC: attrs.evil"},
		{&point{}, "!PANIC: *attrs.point"},
		{7, "!PANIC: int"},
		{nil, "!PANIC: <nil>"},
	} {
		if got := PanicText(x.in); got != x.want {
			t.Errorf("%T: %s, want %s", x.in, got, x.want)
		}
	}
}

func TestR04_NoAddresses(t *testing.T) {
	n := 3
	p := &n
	pp := &p
	loop := &cycle{Name: "a"}
	loop.Next = &cycle{"b", loop}
	var self any
	self = &self
	type selfPointer *selfPointer
	var sp selfPointer
	sp = &sp
	addresses := regexp.MustCompile(`0x[0-9a-fA-F]{6,}`)
	for _, x := range []any{
		p, pp, &pp, &point{},
		[]*int{p},
		map[string]*point{"a": {}},
		map[*int]string{p: "key"},
		struct{ p *int }{p},
		loop, self, sp, func() {},
		make(chan *int),
		struct{ C chan int }{make(chan int)},
		[]any{func() {}, make(chan int), p},
		new(any), &self,
	} {
		got := show(x)
		if addresses.MatchString(got) {
			t.Errorf("%T: %s", x, got)
		}
	}
}

func TestDumpLimits(t *testing.T) {
	loop := &cycle{Name: "a"}
	loop.Next = loop
	if got := show(loop); !json.Valid([]byte(got)) || !strings.Contains(got, `"…"`) {
		t.Error(got)
	}
	large := make([]any, 100_000)
	for i := range large {
		large[i] = math.NaN() // so that json.Marshal refuses
	}
	for _, x := range []any{
		large,
		map[string]any{"nan": math.NaN(), "text": strings.Repeat("x", 1<<20)},
		struct {
			A string
			F func()
			B []byte
			C int
		}{strings.Repeat("\x00", 1<<20), func() {}, make([]byte, 1<<20), 1},
	} {
		got := show(x)
		if len(got) > maxDump+1000 || !json.Valid([]byte(got)) || !strings.Contains(got, "…") {
			t.Errorf("%T: %d bytes, valid %v", x, len(got), json.Valid([]byte(got)))
		}
	}
}

// What the dump shows is what json.Marshal shows, where both can.
func TestDumpAgreesWithMarshal(t *testing.T) {
	for _, x := range []any{
		point{1, -2},
		[]point{{1, 2}},
		map[string][]int{"a": {1}, "b": nil},
		[]any{nil, true, "x\n", 1, uint8(2)},
		ptr(point{}),
		tagged{Name: "n"}.Name,
		[2]bool{true, false},
		struct {
			T time.Time
			D time.Duration `json:"d,omitempty"`
			N *int
		}{T: time.Unix(0, 0).UTC()},
		netip.MustParseAddrPort("[::1]:80"), json.RawMessage(`{"a":1}`),
	} {
		want, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		got := string(appendDump(nil, reflect.ValueOf(x)))
		if got != string(want) {
			t.Errorf("%T: dump %s, json %s", x, got, want)
		}
	}
}

func TestText(t *testing.T) {
	w := NewWalker(discard{}, nil)
	for _, x := range []struct {
		in   slog.Value
		want string
	}{
		{slog.StringValue("s"), "s"},
		{slog.IntValue(3), "3"},
		{slog.AnyValue(errors.New("e")), "e"},
		{slog.AnyValue(point{1, 2}), `{"X":1,"Y":2}`},
		{slog.AnyValue(level(2)), "2"},
		{slog.GroupValue(slog.Any("p", new(int))), "Group"},
	} {
		if got := w.Text(x.in).String(); got != x.want {
			t.Errorf("%v: %s, want %s", x.in, got, x.want)
		}
	}
}

func TestLargeDocumentsAreNotKept(t *testing.T) {
	w := NewWalker(discard{}, nil)
	w.Begin(nil)
	w.Attrs([]slog.Attr{slog.Any("a", []string{strings.Repeat("x", 1<<20)})})
	w.Attrs([]slog.Attr{slog.Any("a", []string{"x"})})
	if w.doc.Cap() > maxKeptDoc {
		t.Errorf("%d bytes are kept", w.doc.Cap())
	}
}

// A value far larger than any record costs neither its size in memory nor the time for it, and shows how it begins.
func TestHugeValues(t *testing.T) {
	type embedded struct{ Items []int8 }
	list := &cycle{}
	for range 1_000_000 {
		list = &cycle{Next: list}
	}
	texts := make([]string, 200_000)
	table := make(map[int]string)
	for i := range texts {
		texts[i] = strings.Repeat("x", 50)
		table[i] = texts[i]
	}
	items := make([]int8, 20_000_000)
	for name, x := range map[string]any{
		"numbers":               items,
		"numbers in a struct":   struct{ embedded }{embedded{items}},
		"numbers behind any":    map[string]any{"items": &items},
		"texts":                 texts,
		"a map":                 table,
		"nothing, many times":   make([]struct{}, 1<<40),
		"bytes that are text":   struct{ B []byte }{make([]byte, 20_000_000)},
		"lists in a list":       [][]int8{items[:1_000_000], items[:1_000_000], items[:1_000_000]},
		"a list without an end": list,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got := show(x)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 32<<20 {
			t.Errorf("%s: %d bytes allocated", name, n)
		}
		if len(got) > 2*maxDump || !strings.Contains(got, dumpEllipsis) || !json.Valid([]byte(got)) {
			t.Errorf("%s: %d bytes, %.100s", name, len(got), got)
		}
	}
}

// What is large and not huge is shown as a whole.
func TestLargeValuesAreWhole(t *testing.T) {
	for _, x := range []any{make([]int, 1_000_000), []string{strings.Repeat("x", 8_000_000)}, [200][200]int{}, map[string][]int8{"a": make([]int8, 2_000_000)}} {
		want, err := json.Marshal(x)
		if got := show(x); err != nil || got != string(want) {
			t.Errorf("%T: %d bytes, want %d", x, len(got), len(want))
		}
	}
}
