package gelf

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/wholelog/wholelog/internal/attrs"
)

func TestMessage(t *testing.T) {
	const start, end = `{"version":"1.1","host":"h","level":6`, `}`
	for _, x := range []struct {
		name     string
		in       string
		want     string
		repaired int
	}{
		{"one line", "m", `,"short_message":"m"`, 0},
		{"trimmed", " m\r\n", `,"short_message":"m"`, 0},
		{"empty", "", `,"short_message":"-"`, 1},
		{"blank", " \n\t\u3000", `,"short_message":"-"`, 1},
		{"two lines", "a\nb", `,"short_message":"a","full_message":"a\nb"`, 0},
		{"blank lines", "\n \n a \r\n b\n", `,"short_message":"a","full_message":"a \r\n b"`, 0},
		{"a first line that Graylog calls blank", "\u2003\nb", ",\"short_message\":\"b\",\"full_message\":\"\u2003\\nb\"", 0},
		{"R05 NUL", "a\x00b", `,"short_message":"a\u0000b"`, 0},
		{"invalid UTF-8 twice", "a\xff\nb", ",\"short_message\":\"a\ufffd\",\"full_message\":\"a\ufffd\\nb\"", 1},
		{"R07 long", strings.Repeat("x", 10_000), `,"short_message":"` + strings.Repeat("x", 10_000) + `"`, 0},
	} {
		got, tally := encode(testHandler(t, Options{}), info(x.in))
		if want := start + x.want + end; got != want || tally.repaired != x.repaired || tally.cut != 0 {
			t.Errorf("%s: %s %+v\nwant %s", x.name, got, tally, want)
		}
		keepsAll(t, got, 0)
	}
}

func TestWholeMessage(t *testing.T) {
	h := testHandler(t, Options{}).WithAttrs([]slog.Attr{slog.String("service", "shop")}).WithGroup("req").WithAttrs([]slog.Attr{slog.Int("n", 1)})
	r := slog.NewRecord(time.Date(2021, 7, 5, 12, 34, 56, 12345678, time.UTC), slog.LevelError, "failed\nfor good", 0)
	r.AddAttrs(slog.Any("err", errors.New("refused")))
	got, _ := encode(h, r)
	const want = `{"version":"1.1","host":"h","_service":"shop","_req.n":1,"timestamp":1625488496.012,"level":3,"_req.err":"refused",` +
		`"short_message":"failed","full_message":"failed\nfor good"}`
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

func TestR01_Timestamp(t *testing.T) {
	at := func(s string) time.Time {
		v, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	h := testHandler(t, Options{})
	for _, x := range []struct {
		in       time.Time
		want     string
		repaired int
	}{
		{at("2021-07-05T12:34:56.012345678Z"), `"timestamp":1625488496.012,`, 0},
		{at("2021-07-05T12:34:56.999999999Z"), `"timestamp":1625488496.999,`, 0},
		{at("2021-07-05T12:34:56Z"), `"timestamp":1625488496.000,`, 0},
		{at("2021-07-05T14:34:56.1+02:00"), `"timestamp":1625488496.100,`, 0},
		{at("1970-01-01T00:00:00.001Z"), `"timestamp":0.001,`, 0},
		{at("9999-12-31T23:59:59.999Z"), `"timestamp":253402300799.999,`, 0},
		{at("1970-01-01T00:00:00Z"), ``, 1},
		{at("1969-12-31T23:59:59.5Z"), ``, 1},
		{time.Date(1, 1, 1, 0, 0, 0, 1, time.UTC), ``, 1},
		{time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), ``, 1},
		{time.Unix(1<<62, 0), ``, 1},
		{time.Unix(18446744073709551, 616000000), ``, 1}, // milliseconds wrap to 1970
		{time.Time{}, ``, 0},
	} {
		if x.in.Unix() == 0 {
			h = testHandler(t, Options{}) // the first second of an encoder may be 0
		}
		got, tally := encode(h, slog.NewRecord(x.in, slog.LevelInfo, "m", 0))
		want := `{"version":"1.1","host":"h",` + x.want + `"level":6,"short_message":"m"}`
		if got != want || tally.repaired != x.repaired {
			t.Errorf("%v: %s, %d repaired; want %s", x.in, got, tally.repaired, want)
		}
	}
}

func TestR02_MillisecondsAreDistinct(t *testing.T) {
	h := testHandler(t, Options{})
	start := time.Date(2026, 1, 1, 0, 0, 0, 998_500_000, time.UTC)
	var before float64
	for i := range 5 {
		r := slog.NewRecord(start.Add(time.Duration(i)*time.Millisecond), slog.LevelInfo, "m", 0)
		message, _ := encode(h, r)
		var m struct{ Timestamp float64 }
		if err := json.Unmarshal([]byte(message), &m); err != nil {
			t.Fatal(err)
		}
		if step := m.Timestamp - before; i > 0 && (step < 0.0005 || step > 0.0015) {
			t.Errorf("step %v", step)
		}
		before = m.Timestamp
	}
}

func TestR31_Level(t *testing.T) {
	h := testHandler(t, Options{})
	for l, want := range map[slog.Level]string{slog.LevelDebug: "7", slog.LevelInfo: "6", slog.LevelWarn: "4", slog.LevelError: "3", slog.LevelError + 12: "0"} {
		got, _ := encode(h, slog.NewRecord(time.Time{}, l, "m", 0))
		if want := `{"version":"1.1","host":"h","level":` + want + `,"short_message":"m"}`; got != want {
			t.Errorf("%v: %s", l, got)
		}
	}
}

func TestGroupsOfHandlers(t *testing.T) {
	h := slog.Handler(testHandler(t, Options{}))
	b2, d := []slog.Attr{slog.Int("b", 2)}, []slog.Attr{slog.String("c", "d")}
	for _, x := range []struct {
		name string
		h    slog.Handler
		in   []slog.Attr
		want string
	}{
		{"R60", h.WithAttrs([]slog.Attr{slog.String("a", "b")}).WithGroup("G").WithAttrs(d).WithGroup("H"), nil, `,"_a":"b","_G.c":"d"`},
		{"R61", h.WithGroup("g").WithAttrs([]slog.Attr{slog.Int("a", 1)}).WithGroup("h").WithAttrs(b2), nil, `,"_g.a":1,"_g.h.b":2`},
		{"R64", h.WithGroup("g1").WithGroup("g2"), []slog.Attr{slog.Group("m", slog.Int("k", 1))}, `,"_g1.g2.m.k":1`},
		{"taken names are seen across", h.WithAttrs(b2).WithAttrs(b2), b2, `,"_b":2,"_b_2":2,"_b_3":2`},
		{"empty", h.WithGroup("").WithAttrs(nil), b2, `,"_b":2`},
		{"mended group", h.WithGroup("my group"), b2, `,"_my_group.b":2`},
	} {
		message, _ := encode(x.h, info("m", x.in...))
		// What was bound stands before the level.
		got := strings.Replace(strings.Replace(message, `,"level":6`, ``, 1), `{"version":"1.1","host":"h"`, `{"version":"1.1","host":"h","level":6`, 1)
		if got := fields(t, got); got != x.want {
			t.Errorf("%s: %s, want %s", x.name, got, x.want)
		}
	}
}

// Repairs of bound attributes count with every record they are in.
func TestBoundTally(t *testing.T) {
	h := testHandler(t, Options{}).WithAttrs([]slog.Attr{slog.Bool("b", true), slog.String("long", strings.Repeat("x", maxField+5))}).
		WithGroup("g h").WithAttrs([]slog.Attr{slog.Int("n", 1)})
	for range 2 {
		message, tally := encode(h, info("m", slog.Int("o", 2)))
		if tally.repaired != 3 || tally.cut != 5 || !strings.HasSuffix(message, `"_g_h.o":2,"short_message":"m","_truncated":5}`) {
			t.Errorf("%+v, %s", tally, message[len(message)-80:])
		}
	}
}

// Handlers derived from one do not write into each other's memory.
func TestSiblings(t *testing.T) {
	parent := testHandler(t, Options{}).WithAttrs([]slog.Attr{slog.Int("p", 0)}).WithGroup("g")
	a := parent.WithAttrs([]slog.Attr{slog.Int("a", 1)}).WithGroup("x")
	b := parent.WithAttrs([]slog.Attr{slog.Int("b", 2)}).WithGroup("y")
	first, _ := encode(a, info("m", slog.Int("k", 1)))
	second, _ := encode(b, info("m", slog.Int("k", 1)))
	if want := `{"version":"1.1","host":"h","_p":0,"_g.a":1,"level":6,"_g.x.k":1,"short_message":"m"}`; first != want {
		t.Error(first)
	}
	if want := `{"version":"1.1","host":"h","_p":0,"_g.b":2,"level":6,"_g.y.k":1,"short_message":"m"}`; second != want {
		t.Error(second)
	}
}

func TestSource(t *testing.T) {
	h, s := sinkHandler(t, Options{AddSource: true})
	slog.New(h).Info("m", "source_line", "mine")
	got := s.Sent(t, h)[0]
	for _, want := range []string{`"_source_file":"`, `encode_test.go"`, `"_source_line":`, `"_source_function":"github.com/wholelog/wholelog/gelf.TestSource"`, `"_source_line_2":"mine"`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
	if got, _ := encode(h, info("m")); got != `{"version":"1.1","host":"h","level":6,"short_message":"m"}` {
		t.Errorf("without a PC: %s", got)
	}
}

type traceKey struct{}

func TestFromContext(t *testing.T) {
	h := testHandler(t, Options{FromContext: func(ctx context.Context) []slog.Attr {
		id, _ := ctx.Value(traceKey{}).(string)
		if id == "panic" {
			panic("no trace")
		}
		if id == "" {
			return nil
		}
		return []slog.Attr{slog.String("trace", id), slog.Group("span", slog.Int("n", 1))}
	}}).WithGroup("g")
	for in, want := range map[string]string{
		"t1":    `,"_trace":"t1","_span.n":1,"_g.k":1`,
		"":      `,"_g.k":1`,
		"panic": `,"_from_context":"!PANIC: no trace","_g.k":1`,
	} {
		ctx := context.WithValue(context.Background(), traceKey{}, in)
		message, _ := encodeContext(ctx, h, info("m", slog.Int("k", 1)), 1<<20)
		if got := fields(t, message); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
	message, _ := encodeContext(noContext, h, info("m"), 1<<20)
	if got := fields(t, message); got != "" {
		t.Errorf("R65 nil context: %s", got)
	}
}

func TestReplaceBuiltins(t *testing.T) {
	at := time.Date(2021, 7, 5, 12, 34, 56, 12345678, time.UTC)
	const whole = `{"version":"1.1","host":"h","timestamp":1625488496.012,"level":4,"short_message":"m"}`
	for _, x := range []struct {
		name     string
		key      string
		to       slog.Attr
		want     string
		repaired int
	}{
		{"time removed", "time", slog.Attr{}, `{"version":"1.1","host":"h","level":4,"short_message":"m"}`, 0},
		{"time changed", "time", slog.Time("time", at.Add(time.Second)), `{"version":"1.1","host":"h","timestamp":1625488497.012,"level":4,"short_message":"m"}`, 0},
		{"time in seconds", "time", slog.Int64("time", 1625488400), `{"version":"1.1","host":"h","timestamp":1625488400.000,"level":4,"short_message":"m"}`, 0},
		{"time far before", "time", slog.Int64("time", math.MinInt64+5), `{"version":"1.1","host":"h","level":4,"short_message":"m"}`, 1},
		{"time in nanoseconds", "time", slog.Int64("time", at.UnixNano()), `{"version":"1.1","host":"h","level":4,"short_message":"m"}`, 1},
		{"time as text", "time", slog.String("time", "noon"), whole, 1},
		{"time renamed", "time", slog.Time("ts", at), whole, 0},
		{"level removed", "level", slog.Attr{}, `{"version":"1.1","host":"h","timestamp":1625488496.012,"short_message":"m"}`, 0},
		{"level changed", "level", slog.Any("level", slog.LevelError), `{"version":"1.1","host":"h","timestamp":1625488496.012,"level":3,"short_message":"m"}`, 0},
		{"level as severity", "level", slog.Int("severity", 2), `{"version":"1.1","host":"h","timestamp":1625488496.012,"level":2,"short_message":"m"}`, 0},
		{"level as text", "level", slog.String("level", "error+4"), `{"version":"1.1","host":"h","timestamp":1625488496.012,"level":2,"short_message":"m"}`, 0},
		{"level as other text", "level", slog.String("level", "NOTICE"), whole, 1},
		{"level out of range", "level", slog.Int("level", 8), whole, 1},
		{"message removed", "msg", slog.Attr{}, `{"version":"1.1","host":"h","timestamp":1625488496.012,"level":4,"short_message":"-"}`, 1},
		{"message changed", "msg", slog.String("message", "other"), `{"version":"1.1","host":"h","timestamp":1625488496.012,"level":4,"short_message":"other"}`, 0},
		{"message an error", "msg", slog.Any("msg", errors.New("e")), `{"version":"1.1","host":"h","timestamp":1625488496.012,"level":4,"short_message":"e"}`, 0},
	} {
		h := testHandler(t, Options{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == x.key {
				return x.to
			}
			return a
		}})
		got, tally := encode(h, slog.NewRecord(at, slog.LevelWarn, "m", 0))
		if got != x.want || tally.repaired != x.repaired {
			t.Errorf("%s: %s, %d repaired; want %s", x.name, got, tally.repaired, x.want)
		}
	}
}

func TestReplaceIsCalledAsBySlog(t *testing.T) {
	calls := func(make func(replace func([]string, slog.Attr) slog.Attr) slog.Handler) (calls []string) {
		l := slog.New(make(func(groups []string, a slog.Attr) slog.Attr {
			if a.Key == slog.SourceKey {
				a.Value = slog.StringValue("here")
			}
			if a.Key == slog.TimeKey {
				a.Value = slog.TimeValue(time.Time{})
			}
			calls = append(calls, fmt.Sprint(groups, a))
			return a
		}))
		l.With("w", 1).WithGroup("g").With("x", 2).Info("m", "k", "v", slog.Group("h", "y", 3))
		return calls
	}
	want := calls(func(replace func([]string, slog.Attr) slog.Attr) slog.Handler {
		return slog.NewJSONHandler(new(strings.Builder), &slog.HandlerOptions{AddSource: true, ReplaceAttr: replace})
	})
	got := calls(func(replace func([]string, slog.Attr) slog.Attr) slog.Handler {
		return testHandler(t, Options{AddSource: true, ReplaceAttr: replace})
	})
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("calls\n%q, want\n%q", got, want)
	}
}

func TestReplacePanics(t *testing.T) {
	h := testHandler(t, Options{AddSource: true, ReplaceAttr: func([]string, slog.Attr) slog.Attr { panic("no") }})
	r := slog.NewRecord(time.Date(2021, 7, 5, 12, 34, 56, 0, time.UTC), slog.LevelWarn, "m", 0)
	r.AddAttrs(slog.Int("a", 1))
	got, _ := encode(h, r)
	if want := `{"version":"1.1","host":"h","timestamp":1625488496.000,"level":4,"_a":"!PANIC: no","short_message":"!PANIC: no"}`; got != want {
		t.Error(got)
	}
}

func TestReplacedSource(t *testing.T) {
	for want, to := range map[string]slog.Attr{
		`,"_source_file":"f","_source_line":1,"_source_function":"-"`: slog.Any(slog.SourceKey, &slog.Source{File: "f", Line: 1}),
		`,"_source_":"f:1"`: slog.String("src", "f:1"),
		``:                  {},
	} {
		h, s := sinkHandler(t, Options{AddSource: true, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			switch a.Key {
			case slog.SourceKey:
				return to
			case slog.TimeKey:
				return slog.Attr{}
			}
			return a
		}})
		slog.New(h).Info("m")
		if got := fields(t, s.Sent(t, h)[0]); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestSequence(t *testing.T) {
	h, s := sinkHandler(t, Options{Sequence: true})
	l := slog.New(h)
	l.Info("m", "seq", "mine", "run", "mine")
	l.With("a", 1).Info("m")
	l.WithGroup("g").Info("m")
	var run string
	for i, message := range s.Sent(t, h) {
		var m struct {
			Seq int    `json:"_seq"`
			Run string `json:"_run"`
		}
		if err := json.Unmarshal([]byte(message), &m); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			run = m.Run
		}
		if m.Seq != i+1 || m.Run != run || len(run) != 16 {
			t.Errorf("message %d: %s", i, message)
		}
		keepsAll(t, message, 3)
	}
}

func TestSizeLimit(t *testing.T) {
	const limit = 16 << 10
	long := strings.Repeat("x", limit)
	var many []slog.Attr
	for i := range 5000 {
		many = append(many, slog.Int(fmt.Sprint("n", i), i))
	}
	for _, x := range []struct {
		name string
		in   slog.Record
	}{
		{"message", info(strings.Repeat("€", 50<<20))},
		{"first line and more", info(long + long + "\n" + long)},
		{"escapes", info(strings.Repeat("\x00\"", limit))},
		{"invalid", info("x" + strings.Repeat("\xff", limit))},
		{"attributes", info("m", slog.String("a", long[:9000]), slog.String("b", long[:9000]), slog.Int("c", 1))},
		{"attributes and message", info(long, slog.String("a", long[:5000]), slog.String("b", long[:5000]))},
		{"many attributes", info(long, many...)},
		{"numbers", info("m", many...)},
		{"any", info("m", slog.Any("a", many))},
	} {
		h := testHandler(t, Options{})
		message, tally := encodeLimit(h, x.in, limit)
		if len(message) > limit || !tally.over || tally.cut == 0 || !strings.HasSuffix(message, fmt.Sprintf(`,"_truncated":%d}`, tally.cut)) {
			t.Errorf("%s: %d bytes, %+v, …%s", x.name, len(message), tally, message[max(0, len(message)-80):])
		}
		if doc := keepsAll(t, message, 1); doc.Fields["message"] == "-" {
			t.Errorf("%s: no message", x.name)
		}
		if len(message) < limit/3 {
			t.Errorf("%s: only %d bytes of %d are used", x.name, len(message), limit)
		}
		e := h.core.Borrow()
		e.record(context.Background(), h.scope, h.core.head, 0, &x.in, limit)
		if cap(e.buf) > 4*limit {
			t.Errorf("%s: the buffer grew to %d", x.name, cap(e.buf))
		}
	}
}

// The last attribute that fits is not the last that is kept: smaller ones behind a large one still are.
func TestSizeLimitKeepsSmallAttributes(t *testing.T) {
	h := testHandler(t, Options{})
	message, tally := encodeLimit(h, info("m", slog.Int("a", 1), slog.String("b", strings.Repeat("x", 20_000)), slog.Int("c", 2)), 4096)
	if got, want := message, `{"version":"1.1","host":"h","level":6,"_a":1,"_c":2,"short_message":"m","_truncated":20000}`; got != want || !tally.over {
		t.Errorf("%s, %+v", got, tally)
	}
}

// Groups without end are cut off, and the record says so.
func TestEndlessGroups(t *testing.T) {
	message, tally := encode(testHandler(t, Options{}), info("m", slog.Any("e", endless{})))
	if tally.cut == 0 || !tally.over {
		t.Errorf("%+v", tally)
	}
	keepsAll(t, message, 1)
}

type endless struct{}

func (e endless) LogValue() slog.Value { return slog.GroupValue(slog.Any("a", e), slog.Any("b", e)) }

func TestR62_PanicsNeverEscape(t *testing.T) {
	message, _ := encode(testHandler(t, Options{}), info("m", slog.Any("a", explosive{}), slog.Any("b", (*stack)(nil)),
		slog.Any("c", map[string]any{"d": explosiveText{}, "e": 1}), slog.Int("f", 1)))
	if strings.Count(message, attrs.PanicMark) != 3 || !strings.Contains(message, `"_f":1`) {
		t.Error(message)
	}
	keepsAll(t, message, 4)
}
