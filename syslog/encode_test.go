package syslog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

type panics struct{}

func (panics) LogValue() slog.Value { panic("no") }

// The same records in every form.
func TestForms(t *testing.T) {
	for _, x := range []struct {
		name         string
		r            slog.Record
		structured   string // behind the header
		json, text   string // MSG
		repaired     int    // structured
		repairedJSON int
		repairedText int
	}{
		{"no attributes", info("m"), "- m", `{"msg":"m","level":"INFO"}`, "m", 0, 0, 0},
		{"nothing at all", info(""), "- ", `{"msg":"","level":"INFO"}`, "", 0, 0, 0},
		{
			"scalars",
			info("m", slog.String("s", "v"), slog.Int("i", -3), slog.Uint64("u", math.MaxUint64), slog.Float64("f", 1.5), slog.Bool("b", true),
				slog.Duration("d", time.Second), slog.Time("t", noon), slog.Any("e", errors.New("broken")), slog.Any("n", nil)),
			`[attrs@32473 s="v" i="-3" u="18446744073709551615" f="1.5" b="true" d="1000000000" t="2026-03-01T12:30:45.123456789Z" e="broken" n="<nil>"] m`,
			`{"msg":"m","level":"INFO","s":"v","i":-3,"u":18446744073709551615,"f":1.5,"b":true,"d":1000000000,"t":"2026-03-01T12:30:45.123456789Z","e":"broken","n":"<nil>"}`,
			`m s=v i=-3 u=18446744073709551615 f=1.5 b=true d=1000000000 t=2026-03-01T12:30:45.123456789Z e=broken n=<nil>`,
			0, 0, 0,
		},
		{
			"numbers that are none", info("m", slog.Float64("f", math.NaN())),
			`[attrs@32473 f="NaN"] m`, `{"msg":"m","level":"INFO","f":"NaN"}`, `m f=NaN`, 0, 1, 0,
		},
		{
			"groups", info("m", slog.Group("g", slog.Int("a", 1), slog.Group("h", slog.Int("b", 2)), slog.Int("c", 3)), slog.Group("", slog.Int("d", 4)), slog.Group("e")),
			`[attrs@32473 g.a="1" g.h.b="2" g.c="3" d="4"] m`, `{"msg":"m","level":"INFO","g":{"a":1,"h":{"b":2},"c":3},"d":4}`, `m g.a=1 g.h.b=2 g.c=3 d=4`, 0, 0, 0,
		},
		{
			"documents", info("m", slog.Any("a", []int{1, 2}), slog.Group("g", slog.Any("b", map[string]string{"k": "]\n\u2028\x7f"}))),
			`[attrs@32473 a="[1,2\]" g.b="{\"k\":\"\]\\n\\u2028\\x7f\"}"] m`,
			`{"msg":"m","level":"INFO","a":[1,2],"g":{"b":{"k":"]\n\u2028\u007f"}}}`,
			`m a=[1,2] g.b="{\"k\":\"]\\n\\u2028\x7f\"}"`,
			0, 0, 0,
		},
		{
			"R83 control characters and line ends", info("a\nb\x00\x1b\u2028\\", slog.String("k", "a\r\n\t\x7f\u0085")),
			`[attrs@32473 k="a\\r\\n\\t\\x7f\\u0085"] a\nb\x00\x1b\u2028\`,
			`{"msg":"a\nb\\x00\u001b\u2028\\","level":"INFO","k":"a\r\n\t\u007f\u0085"}`,
			`a\nb\x00\x1b\u2028\ k="a\r\n\t\x7f\u0085"`,
			0, 1, 0,
		},
		{
			"R83 a control character that slog leaves alone", info("m", slog.String("a\x7f", "\x7f")),
			`[attrs@32473 a_="\\x7f"] m`, `{"msg":"m","level":"INFO","a\u007f":"\u007f"}`, `m "a\x7f"="\x7f"`, 1, 0, 0,
		},
		{
			"what must be escaped", info(`"]\`, slog.String("k", `a"b]c\d=e f`)),
			`[attrs@32473 k="a\"b\]c\\d=e f"] "]\`, `{"msg":"\"]\\","level":"INFO","k":"a\"b]c\\d=e f"}`, `"]\ k="a\"b]c\\d=e f"`, 0, 0, 0,
		},
		{
			"invalid UTF-8", info("a\xffb", slog.String("k", "\xe2\x82")),
			"[attrs@32473 k=\"\ufffd\ufffd\"] a\ufffdb", "{\"msg\":\"a\ufffdb\",\"level\":\"INFO\",\"k\":\"\ufffd\ufffd\"}", "a\ufffdb k=\"\\xe2\\x82\"", 2, 2, 1,
		},
		{
			"names", info("m", slog.Int("", 1), slog.Int("a b=c]d\"e", 2), slog.Int("größe", 3), slog.Group("g h", slog.Int("k", 4)), slog.String("e", "")),
			`[attrs@32473 _="1" a_b_c_d_e="2" gr__e="3" g_h.k="4" e=""] m`,
			`{"msg":"m","level":"INFO","":1,"a b=c]d\"e":2,"größe":3,"g h":{"k":4},"e":""}`,
			`m ""=1 "a b=c]d\"e"=2 größe=3 "g h.k"=4 e=""`,
			4, 0, 0,
		},
		{
			"long names", info("m", slog.Int(strings.Repeat("k", 40), 1), slog.Group("outermost", slog.Group("in", slog.Int(strings.Repeat("k", 28), 2)))),
			`[attrs@32473 ` + strings.Repeat("k", 32) + `="1" in.` + strings.Repeat("k", 28) + `="2"] m`,
			`{"msg":"m","level":"INFO","` + strings.Repeat("k", 40) + `":1,"outermost":{"in":{"` + strings.Repeat("k", 28) + `":2}}}`,
			`m ` + strings.Repeat("k", 40) + `=1 outermost.in.` + strings.Repeat("k", 28) + `=2`,
			2, 0, 0,
		},
		{
			"R13 names of the record's own", info("m", slog.Int("msg", 1), slog.Group("level", slog.Int("msg", 2)), slog.Int("time", 3), slog.Int("source", 4)),
			`[attrs@32473 msg="1" level.msg="2" time="3" source="4"] m`,
			`{"msg":"m","level":"INFO","msg_":1,"level_":{"msg":2},"time":3,"source":4}`,
			`m msg=1 level.msg=2 time=3 source=4`,
			0, 2, 0,
		},
		{
			"R62 a method that panics", info("m", slog.Any("p", panics{}), slog.Int("a", 1)),
			`[attrs@32473 p="!PANIC: no" a="1"] m`, `{"msg":"m","level":"INFO","p":"!PANIC: no","a":1}`, `m p="!PANIC: no" a=1`, 0, 0, 0,
		},
	} {
		for form, want := range map[Attrs]struct {
			message  string
			repaired int
		}{
			AttrsStructured: {head + x.structured, x.repaired},
			AttrsJSON:       {head + "- @cee:" + x.json, x.repairedJSON},
			AttrsText:       {head + "- " + x.text, x.repairedText},
		} {
			h := testHandler(t, Options{Attrs: form})
			for range 2 { // an encoder forgets the record before
				got, tally := encode(h, x.r)
				if got != want.message || tally.repaired != want.repaired || tally.cut != 0 {
					t.Errorf("%s, %v: %+v\n got %s\nwant %s, %d repaired", x.name, form, tally, got, want.message, want.repaired)
				}
				parsed(t, got)
			}
		}
	}
}

func TestScopes(t *testing.T) {
	a := func(k string, v int) []slog.Attr { return []slog.Attr{slog.Int(k, v)} }
	from := func(context.Context) []slog.Attr { return a("c", 9) }
	for _, x := range []struct {
		name                   string
		with                   func(h slog.Handler) slog.Handler
		r                      slog.Record
		structured, json, text string
	}{
		{
			"R61 groups of With", func(h slog.Handler) slog.Handler {
				return h.WithGroup("g").WithAttrs(a("a", 1)).WithGroup("h").WithAttrs(a("b", 2))
			},
			info("m", slog.Int("k", 3)), ` g.a="1" g.h.b="2" g.h.k="3"`, `,"g":{"a":1,"h":{"b":2,"k":3}}`, ` g.a=1 g.h.b=2 g.h.k=3`,
		},
		{
			"R60 an empty group leaves no trace", func(h slog.Handler) slog.Handler {
				return h.WithAttrs(a("a", 1)).WithGroup("g").WithAttrs(a("b", 2)).WithGroup("h")
			},
			info("m"), ` a="1" g.b="2"`, `,"a":1,"g":{"b":2}`, ` a=1 g.b=2`,
		},
		{
			"two groups at once", func(h slog.Handler) slog.Handler { return h.WithGroup("g").WithGroup("h") },
			info("m", slog.Int("k", 1), slog.Group("i", slog.Int("l", 2))), ` g.h.k="1" g.h.i.l="2"`, `,"g":{"h":{"k":1,"i":{"l":2}}}`, ` g.h.k=1 g.h.i.l=2`,
		},
		{
			"groups in which all is empty", func(h slog.Handler) slog.Handler { return h.WithGroup("g").WithAttrs(nil).WithAttrs([]slog.Attr{{}}) },
			info("m", slog.Group("e"), slog.Attr{}), ``, ``, ``,
		},
		{
			"a group named as the record's own", func(h slog.Handler) slog.Handler { return h.WithGroup("msg").WithGroup("msg") },
			info("m", slog.Int("msg", 1)), ` msg.msg.msg="1"`, `,"msg_":{"msg":{"msg":1}}`, ` msg.msg.msg=1`,
		},
	} {
		for form, want := range map[Attrs]string{AttrsStructured: x.structured, AttrsJSON: x.json, AttrsText: x.text} {
			for _, context := range []bool{false, true} {
				o := Options{Attrs: form}
				more := ""
				if context {
					o.FromContext = from
					more = map[Attrs]string{AttrsStructured: ` c="9"`, AttrsJSON: `,"c":9`, AttrsText: ` c=9`}[form]
				}
				h := x.with(testHandler(t, o))
				got, _ := encode(h, x.r)
				message := map[Attrs]string{
					AttrsStructured: head + "[attrs@32473" + more + want + "] m", AttrsJSON: head + `- @cee:{"msg":"m","level":"INFO"` + more + want + "}",
					AttrsText: head + "- m" + more + want,
				}[form]
				if message = strings.Replace(message, "[attrs@32473]", "-", 1); got != message {
					t.Errorf("%s, %v:\n got %s\nwant %s", x.name, form, got, message)
				}
			}
		}
	}
}

func TestR30_MetaAndOrigin(t *testing.T) {
	for _, x := range []struct {
		o    Options
		seq  uint64
		r    slog.Record
		want string
	}{
		{Options{Sequence: true}, 1, info("m"), head + `[meta sequenceId="1"][attrs@32473 run="RUN"] m`},
		{Options{Sequence: true, SDID: "x@1.2"}, math.MaxInt32, info("m", slog.Int("a", 1)), head + `[meta sequenceId="2147483647"][x@1.2 run="RUN" a="1"] m`},
		{Options{Sequence: true, Attrs: AttrsText}, math.MaxInt32 + 1, info("m", slog.Int("a", 1)), head + `[meta sequenceId="1"][attrs@32473 run="RUN"] m a=1`},
		// R09: none unless asked for, and then once, at the start of MSG.
		{Options{}, 0, info("\ufeffm\ufeff"), head + "- \\ufeffm\ufeff"},
		{Options{BOM: true}, 0, info("\ufeffm"), head + "- \ufeff\\ufeffm"},
		{Options{BOM: true}, 0, info("m"), head + "- \ufeffm"},
		{Options{BOM: true, Attrs: AttrsJSON}, 0, info("m"), head + "- \ufeff@cee:{\"msg\":\"m\",\"level\":\"INFO\"}"},
		{Options{Facility: Kern}, 0, info("m"), "<6>1 2026-03-01T12:30:45.123456Z h app 7 - - m"},
		{Options{Facility: Local7, MsgID: "id"}, 0, info("m"), "<190>1 2026-03-01T12:30:45.123456Z h app 7 id - m"},
	} {
		h := testHandler(t, x.o)
		got, _ := encodeContext(t.Context(), h, x.r, x.seq)
		if want := strings.Replace(x.want, "RUN", h.core.config.header.run, 1); got != want {
			t.Errorf("\n got %s\nwant %s", got, want)
		}
		parsed(t, got)
	}
	h := testHandler(t, Options{Origin: true, AppendIP: true})
	h.core.config.header.origin = `[origin ip="192.0.2.1"]` // whatever this host has
	if got, _ := encode(h, info("m", slog.Int("a", 1))); !strings.HasSuffix(got, ` [origin ip="192.0.2.1"][attrs@32473 a="1"] m`) {
		t.Error(got)
	}
}

func TestRFC3164(t *testing.T) {
	for _, x := range []struct {
		o    Options
		seq  uint64
		want string
	}{
		{Options{}, 0, `h app[7]: a\nb k="v w"`},
		{Options{Attrs: AttrsText, AppName: "my app: [x]", ProcID: "-"}, 0, `h my_app___x_: a\nb k="v w"`},
		{Options{Attrs: AttrsJSON, AppName: strings.Repeat("a", 40)}, 0, `h ` + strings.Repeat("a", 32) + `[7]: @cee:{"msg":"a\nb","level":"INFO","k":"v w"}`},
		{Options{Sequence: true}, 5, `h app[7]: a\nb seq=5 run="RUN" k="v w"`},
		{Options{Sequence: true, Attrs: AttrsJSON}, 5, `h app[7]: @cee:{"msg":"a\nb","level":"INFO","seq":5,"run":"RUN","k":"v w"}`},
	} {
		x.o.Format = RFC3164
		h := testHandler(t, x.o)
		got, _ := encodeContext(t.Context(), h, info("a\nb", slog.String("k", "v w")), x.seq)
		want := "<134>" + noon.Local().Format(time.Stamp) + " " + strings.Replace(x.want, "RUN", h.core.config.header.run, 1)
		if got != want {
			t.Errorf("\n got %s\nwant %s", got, want)
		}
		parsed(t, got)
	}
	away := info("m")
	away.Time = noon.In(time.FixedZone("X", 19_800)) // the format has no zone: it is local time, whatever the record's own is
	if got, _ := encode(testHandler(t, Options{Format: RFC3164}), away); got != "<134>"+noon.Local().Format(time.Stamp)+" h app[7]: m" {
		t.Error(got)
	}
	seq := testHandler(t, Options{Format: RFC3164, Attrs: AttrsJSON, Sequence: true})
	if got, tally := encodeContext(t.Context(), seq, info("m", slog.Int("seq", 1), slog.Int("run", 2)), 1); !strings.HasSuffix(got, `,"seq_":1,"run_":2}`) || tally.repaired != 2 {
		t.Errorf("%s, %+v", got, tally)
	}
}

func TestR02_R80_Times(t *testing.T) {
	h := testHandler(t, Options{})
	for _, x := range []struct {
		at       time.Time
		want     string
		repaired int
	}{
		{noon, "2026-03-01T12:30:45.123456Z", 0},
		{noon.Add(time.Millisecond), "2026-03-01T12:30:45.124456Z", 0},
		{noon.Truncate(time.Second), "2026-03-01T12:30:45.000000Z", 0},
		{noon.In(time.FixedZone("X", 19_800)), "2026-03-01T18:00:45.123456+05:30", 0},
		{noon.In(time.FixedZone("Y", -3600)), "2026-03-01T11:30:45.123456-01:00", 0},
		{noon.In(time.FixedZone("LMT", 1172)), "2026-03-01T12:30:45.123456Z", 0},
		{noon.In(time.FixedZone("far", 30*3600)), "2026-03-01T12:30:45.123456Z", 0},
		{time.Date(9998, 12, 31, 23, 59, 59, 999999999, time.UTC), "9998-12-31T23:59:59.999999Z", 0},
		{time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC), "", 1},
		{time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC), "", 1},
		{time.Time{}, "", 0},
	} {
		r := info("m")
		r.Time = x.at
		before := time.Now()
		got, tally := encode(h, r)
		m := parsed(t, got)
		if tally.repaired != x.repaired || x.want != "" && !strings.HasPrefix(got, "<134>1 "+x.want+" ") {
			t.Errorf("%v: %s, %+v", x.at, got, tally)
		}
		if off := m.Time.Sub(before); x.want == "" && (off < -time.Second || off > time.Minute) {
			t.Errorf("%v: %v is not now", x.at, m.Time)
		}
	}
}

func TestR31_R32_Severities(t *testing.T) {
	h := testHandler(t, Options{})
	for level, want := range map[slog.Level]string{
		slog.LevelDebug: "<135>1 ", slog.LevelInfo: "<134>1 ", slog.LevelInfo + 2: "<133>1 ", slog.LevelWarn: "<132>1 ", slog.LevelError: "<131>1 ",
		slog.LevelError + 4: "<130>1 ", slog.LevelError + 8: "<129>1 ", slog.LevelError + 12: "<128>1 ",
	} {
		r := info("m")
		r.Level = level
		if got, _ := encode(h, r); !strings.HasPrefix(got, want) {
			t.Errorf("%v: %s", level, got)
		}
	}
}

func TestReplaceAttr(t *testing.T) {
	at := noon.Add(time.Hour)
	for _, x := range []struct {
		name     string
		answers  map[string]slog.Value
		want     string
		repaired int
	}{
		{
			"changed",
			map[string]slog.Value{"time": slog.TimeValue(at), "level": slog.AnyValue(slog.LevelError), "msg": slog.StringValue("n"), "a": slog.IntValue(2)},
			`<131>1 2026-03-01T13:30:45.123456Z h app 7 - - @cee:{"msg":"n","level":"ERROR","a":2}`, 0,
		},
		{"removed", map[string]slog.Value{"level": {}, "msg": {}, "a": {}}, `<134>1 2026-03-01T12:30:45.123456Z h app 7 - - @cee:{"msg":"-"}`, 0},
		{
			"named",
			map[string]slog.Value{"level": slog.StringValue("WARN"), "time": slog.Int64Value(noon.Unix())},
			`<132>1 ` + time.Unix(noon.Unix(), 0).Format("2006-01-02T15:04:05.000000Z07:00") + ` h app 7 - - @cee:{"msg":"m","level":"WARN","a":1}`, 0,
		},
		{
			"unreadable",
			map[string]slog.Value{"level": slog.StringValue("so\"so"), "time": slog.StringValue("late")},
			`<134>1 2026-03-01T12:30:45.123456Z h app 7 - - @cee:{"msg":"m","level":"INFO","a":1}`, 2,
		},
	} {
		h := testHandler(t, Options{Attrs: AttrsJSON, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			v, ok := x.answers[a.Key]
			switch {
			case ok && v.Equal(slog.Value{}):
				return slog.Attr{}
			case ok:
				a.Value = v
			}
			return a
		}})
		if got, tally := encode(h, info("m", slog.Int("a", 1))); got != x.want || tally.repaired != x.repaired {
			t.Errorf("%s: %+v\n got %s\nwant %s", x.name, tally, got, x.want)
		}
	}
}

func TestAddSource(t *testing.T) {
	for form, want := range map[Attrs]string{
		AttrsStructured: `[attrs@32473 source.function="github.com/wholelog/wholelog/syslog.TestAddSource" source.file="`,
		AttrsJSON:       `"source":{"function":"github.com/wholelog/wholelog/syslog.TestAddSource","file":"`,
		AttrsText:       ` source.function=github.com/wholelog/wholelog/syslog.TestAddSource source.file=`,
	} {
		for _, replace := range []func([]string, slog.Attr) slog.Attr{nil, func(_ []string, a slog.Attr) slog.Attr { return a }} {
			h, s := sinkHandler(t, Options{AddSource: true, Attrs: form, ReplaceAttr: replace})
			slog.New(h).Info("m", "source", 1)
			if got := s.Sent(t, h)[0]; !strings.Contains(got, want) || !strings.Contains(got, "encode_test.go") {
				t.Errorf("%v: %s", form, got)
			}
		}
	}
	h, s := sinkHandler(t, Options{AddSource: true, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.SourceKey {
			return slog.String("x", "here")
		}
		return a
	}})
	slog.New(h).Info("m")
	if got := s.Sent(t, h)[0]; !strings.HasSuffix(got, `[attrs@32473 source="here"] m`) {
		t.Error(got)
	}
}

func TestR20_TruncatedBetweenCharacters(t *testing.T) {
	text := strings.Repeat("€😀é", 300)
	for form := range AttrsText + 1 {
		for size := 480; size < 700; size++ {
			h := testHandler(t, Options{Attrs: form, MaxSize: size})
			got, tally := encode(h, info(text, slog.Int("a", 1)))
			m := parsed(t, got)
			if len(got) > size || len(got) < size-markRoom-4 || !utf8.ValidString(got) || tally.cut == 0 {
				t.Fatalf("%v, %d: %d bytes, %+v: %s", form, size, len(got), tally, got)
			}
			kept, rest, ok := strings.Cut(strings.TrimPrefix(m.Text, `@cee:{"msg":"`), markStart)
			if !ok || !strings.HasPrefix(text, kept) || !strings.HasPrefix(rest, fmt.Sprintf("%d bytes]", len(text)-len(kept))) {
				t.Fatalf("%v, %d: %s", form, size, got)
			}
		}
	}
}

// Attributes get room as well: texts among them are cut, and what cannot be is left out and counted in the mark of the message.
func TestTruncatedAttributes(t *testing.T) {
	long := strings.Repeat("x", 2000)
	for form, want := range map[Attrs]string{
		AttrsStructured: ` a="1" s="xxxxx`,
		AttrsJSON:       `,"a":1,"s":"xxxxx`,
		AttrsText:       ` a=1 s="xxxxx`,
	} {
		h := testHandler(t, Options{Attrs: form, MaxSize: 600})
		got, tally := encode(h, info(long, slog.Int("a", 1), slog.String("s", long), slog.String("t", long), slog.Any("d", []string{long})))
		parsed(t, got)
		if len(got) > 600 || !strings.Contains(got, want) || strings.Count(got, markStart) != 2 || strings.Contains(got, ` t=`) || strings.Contains(got, `"t":`) {
			t.Errorf("%v: %d bytes: %s", form, len(got), got)
		}
		if tally.cut < 7000 || tally.untold < 4000 {
			t.Errorf("%v: %+v", form, tally)
		}
		few, tally := encode(h, info("short", slog.Any("d", []string{long})))
		want := map[Attrs]string{AttrsStructured: "xx…[truncated 1", AttrsJSON: "short…[truncated 20", AttrsText: "xx…[truncated 1"}[form]
		if parsed(t, few); tally.cut < 1500 || !strings.Contains(few, want) { // a document is JSON as a whole or not at all
			t.Errorf("%v: %s", form, few)
		}
		bound := h.WithAttrs([]slog.Attr{slog.String("b", long)}).WithGroup(strings.Repeat("g", 700)).WithAttrs([]slog.Attr{slog.Int("c", 1)}).WithGroup("h")
		got, tally = encode(bound, info(long, slog.Int("k", 1), slog.String("s", long)))
		if parsed(t, got); len(got) > 600 || tally.cut < 4000 || !strings.Contains(got, "xxxx"+markStart) {
			t.Errorf("%v: %d bytes, %+v: %s", form, len(got), tally, got)
		}
	}
}
