package gelf

import (
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

type stack struct{ Depth int }

func (s *stack) LogValue() slog.Value { return slog.IntValue(s.Depth) }

type explosive struct{}

func (explosive) Error() string                { panic("Error") }
func (explosive) MarshalJSON() ([]byte, error) { panic("MarshalJSON") }

type explosiveText struct{}

func (explosiveText) String() string { panic(errors.New("String")) }

func TestValues(t *testing.T) {
	at := time.Date(2021, 7, 5, 12, 34, 56, 12345678, time.FixedZone("", 7200))
	for _, x := range []struct {
		name     string
		in       slog.Value
		want     string
		repaired int
	}{
		{"R08 integer", slog.IntValue(1234), `1234`, 0},
		{"negative", slog.IntValue(-7), `-7`, 0},
		{"least integer", slog.Int64Value(math.MinInt64), `-9223372036854775808`, 0},
		{"unsigned", slog.Uint64Value(math.MaxInt64), `9223372036854775807`, 0},
		{"too large for the server", slog.Uint64Value(math.MaxUint64), `"18446744073709551615"`, 1},
		{"R08 float", slog.Float64Value(1.5), `1.5`, 0},
		{"whole float", slog.Float64Value(2), `2.0`, 0},
		{"large float", slog.Float64Value(1e19), `1e+19`, 0},
		{"NaN", slog.Float64Value(math.NaN()), `"NaN"`, 1},
		{"infinity", slog.Float64Value(math.Inf(-1)), `"-Inf"`, 1},
		{"R03 true", slog.BoolValue(true), `"true"`, 1},
		{"R03 false", slog.BoolValue(false), `"false"`, 1},
		{"R79 short duration", slog.DurationValue(3), `3`, 0},
		{"R79 long duration", slog.DurationValue(48 * time.Hour), `172800000000000`, 0},
		{"R80 time", slog.TimeValue(at), `"2021-07-05T12:34:56.012345678+02:00"`, 0},
		{"text", slog.StringValue("a \"b\"\n\x00€"), `"a \"b\"\n\u0000€"`, 0},
		{"empty", slog.StringValue(""), `"-"`, 1},
		{"blank", slog.StringValue(" \t\n\x00\u2003"), `"-"`, 1},
		{"no-break space", slog.StringValue("\u00a0"), "\"\u00a0\"", 0},
		{"space in front", slog.StringValue("  x"), `"  x"`, 0},
		{"byte-order mark", slog.StringValue("\ufeffx"), "\"\ufeffx\"", 0},
		{"invalid UTF-8", slog.StringValue("a\xffb"), "\"a\ufffdb\"", 1},
		{"nil", slog.AnyValue(nil), `"<nil>"`, 0},
		{"R06 error", slog.AnyValue(errors.New("broken")), `"broken"`, 0},
		{"R04 struct", slog.AnyValue(stack{3}), `"{\"Depth\":3}"`, 0},
		{"R04 slice", slog.AnyValue([]string{"a", "b"}), `"[\"a\",\"b\"]"`, 0},
		{"R04 nil pointer", slog.AnyValue((*time.Time)(nil)), `"<nil>"`, 0},
		{"R62 nil LogValuer", slog.AnyValue((*stack)(nil)), `"!PANIC: runtime error: invalid memory address or nil pointer dereference"`, 0},
		{"panicking error", slog.AnyValue(explosive{}), `"!PANIC: Error"`, 0},
		{"panicking Stringer", slog.AnyValue(explosiveText{}), `"!PANIC: String"`, 0},
	} {
		h := testHandler(t, Options{})
		message, tally := encode(h, info("m", slog.Int("before", 1), slog.Attr{Key: "v", Value: x.in}, slog.Int("after", 2)))
		got, before := strings.CutPrefix(fields(t, message), `,"_before":1,"_v":`)
		got, after := strings.CutSuffix(got, `,"_after":2`)
		if !before || !after || tally.repaired != x.repaired || got != x.want {
			t.Errorf("%s: %s, %d repaired; want %s, %d", x.name, fields(t, message), tally.repaired, x.want, x.repaired)
		}
		keepsAll(t, message, 3)
	}
}

// The boundary of what the server's index takes.
func TestLongStringsAreCut(t *testing.T) {
	h := testHandler(t, Options{})
	for _, x := range []struct {
		in   string
		keep int
	}{
		{strings.Repeat("x", 32766), 32766},
		{strings.Repeat("x", 32767), 32766},
		{strings.Repeat("€", 10922), 32766},
		{strings.Repeat("€", 10923), 32766},
		{"x" + strings.Repeat("€", 10922), 32764},
		{strings.Repeat("\n", 10) + strings.Repeat("y", 32767), 32766},
	} {
		message, tally := encode(h, info("m", slog.String("v", x.in)))
		var fields struct {
			V         string `json:"_v"`
			Truncated int    `json:"_truncated"`
		}
		if err := json.Unmarshal([]byte(message), &fields); err != nil {
			t.Fatal(err)
		}
		if fields.V != x.in[:x.keep] || fields.Truncated != len(x.in)-x.keep || tally.cut != fields.Truncated || tally.over || !utf8.ValidString(fields.V) {
			t.Errorf("of %d bytes %d are kept, %d cut, want %d kept", len(x.in), len(fields.V), fields.Truncated, x.keep)
		}
		keepsAll(t, message, 1)
	}
}

// A text may be short enough until it is repaired.
func TestLongInvalidStrings(t *testing.T) {
	h := testHandler(t, Options{})
	for _, n := range []int{10922, 10923, 20_000, 32766, 40_000} {
		message, tally := encode(h, info("m", slog.String("v", strings.Repeat("\xff", n))))
		doc := keepsAll(t, message, 1)
		if got := doc.Fields["v"].(string); len(got) != 3*min(n, 10922) || tally.repaired != 1 || (tally.cut > 0) != (n > 10922) {
			t.Errorf("%d bytes became %d, %+v", n, len(got), tally)
		}
	}
}

func TestBlank(t *testing.T) {
	for s, want := range map[string]bool{
		"": true, " ": true, "\x00\x1f": true, "\u3000": true, "\u2028 \t": true, "x": false, " x": false, "\u00a0": false, "\u202f": false,
		"\u0085": false, "\u200b": false, "\xff": false, "\x7f": false, "\ufeff": false,
	} {
		if blank(s) != want {
			t.Errorf("blank(%q) = %v", s, !want)
		}
		if want && !mayBeBlank(s) {
			t.Errorf("mayBeBlank(%q) is false", s)
		}
	}
}
