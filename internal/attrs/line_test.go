package attrs

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestLineAndParam(t *testing.T) {
	for _, x := range []struct {
		in, line, param string
		repaired        bool
	}{
		{in: "", line: "", param: ""},
		{in: "plain", line: "plain", param: "plain"},
		{in: strings.Repeat("0123456789abcdef", 5), line: strings.Repeat("0123456789abcdef", 5), param: strings.Repeat("0123456789abcdef", 5)},
		{in: `a"b\c]d[e`, line: `a"b\c]d[e`, param: `a\"b\\c\]d[e`},
		{in: "a\nb\rc\td", line: `a\nb\rc\td`, param: `a\\nb\\rc\\td`},
		{in: "\x00\x1b\x7f", line: `\x00\x1b\x7f`, param: `\\x00\\x1b\\x7f`},
		{in: "\u0085\u2028\u2029\u0080\u009f", line: `\u0085\u2028\u2029\u0080\u009f`, param: `\\u0085\\u2028\\u2029\\u0080\\u009f`},
		{in: "grün 日本 🙂\u00a0", line: "grün 日本 🙂\u00a0", param: "grün 日本 🙂\u00a0"},
		{in: "a\xffb\xe2\x82", line: "a\ufffdb\ufffd\ufffd", param: "a\ufffdb\ufffd\ufffd", repaired: true},
	} {
		for name, f := range map[string]struct {
			append func([]byte, string, int) ([]byte, int, bool)
			want   string
		}{"line": {AppendLine, x.line}, "param": {AppendParam, x.param}} {
			got, taken, repaired := f.append([]byte(">"), x.in, noLimit)
			if string(got) != ">"+f.want || taken != len(x.in) || repaired != x.repaired {
				t.Errorf("%s of %q: %q, %d, %v; want %q", name, x.in, got, taken, repaired, f.want)
			}
		}
	}
}

// Every byte at every place, before and behind the steps of 64 and of 8.
func TestPlainFindsEveryByteAtEveryPlace(t *testing.T) {
	for _, length := range []int{1, 2, 3, 4, 7, 8, 9, 63, 64, 65, 72, 135} {
		for at := range length {
			for c := range 256 {
				in := []byte(strings.Repeat("x", length))
				in[at] = byte(c)
				control := c < ' ' || c >= 0x7f
				if calm(string(in)) == control {
					t.Fatalf("%q is calm: %v", in, !control)
				}
				if got := plain(string(in), false) == length; got == control {
					t.Fatalf("%q is plain: %v", in, got)
				}
				if got := plain(string(in), true) == length; got == (control || strings.ContainsRune(`"\]`, rune(c))) {
					t.Fatalf("%q is plain in a PARAM-VALUE: %v", in, got)
				}
				if n := plain(string(in), true); n < at || n > at && n != length {
					t.Fatalf("%q is plain up to %d", in, n)
				}
			}
		}
	}
}

func TestAppendJSONLine(t *testing.T) {
	for _, x := range []struct {
		in, want string
		repaired bool
	}{
		{"", "", false},
		{"plain", "plain", false},
		{"a\"\\\n\x01", `a\"\\\n\u0001`, false},
		{"\x00a\x00b", `\\x00a\\x00b`, true},
		{"\x7f\u0085\u009f\u2028x\u2029", `\u007f\u0085\u009f\u2028x\u2029`, false},
		{"grün\u00a0日本\u007f🙂", `grün` + "\u00a0" + `日本\u007f🙂`, false},
	} {
		got, taken, repaired := AppendJSONLine(nil, x.in, noLimit)
		if string(got) != x.want || taken != len(x.in) || repaired != x.repaired {
			t.Errorf("%q: %q, %d, %v; want %q", x.in, got, taken, repaired, x.want)
		}
	}
}

func TestAppendDocLine(t *testing.T) {
	for _, x := range []struct {
		in, want string
		repaired bool
	}{
		{``, ``, false},
		{`{"a":[1,"x"]}`, `{"a":[1,"x"]}`, false},
		{"[\"\u007f\u0085\u2028 grün 🙂\"]", `["\u007f\u0085\u2028 grün 🙂"]`, false},
		{"[\"\xff\ufffd\"]", "[\"\ufffd\ufffd\"]", true},
		{`["\u0000a\u0000"]`, `["\\x00a\\x00"]`, true},
		{`["\\u0000", "\\\u0000"]`, `["\\u0000", "\\\\x00"]`, true}, // the first is a backslash and letters
		{`["\"\u2028"]`, `["\"\u2028"]`, false},
	} {
		got, repaired := AppendDocLine([]byte(">"), []byte(x.in))
		if string(got) != ">"+x.want || repaired != x.repaired {
			t.Errorf("%s: %s, %v; want %s", x.in, got, repaired, x.want)
		}
	}
}

func FuzzLine(f *testing.F) {
	f.Add("plain text", 100)
	f.Add("a\nb\x00\x7f\u2028\"\\]", 12)
	f.Add("\xff\xe2\x82€\u0085", 5)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		limit = min(max(limit, 0), 10*len(s))
		for name, f := range map[string]func([]byte, string, int) ([]byte, int, bool){"line": AppendLine, "param": AppendParam, "json": AppendJSONLine} {
			got, taken, repaired := f(nil, s, limit)
			mended := !utf8.ValidString(s[:taken]) || name == "json" && strings.Contains(s[:taken], "\x00")
			if len(got) > limit || taken > len(s) || !utf8.Valid(got) || repaired != mended && utf8.ValidString(s) {
				t.Fatalf("%s of %q: %q, %d, %v", name, s, got, taken, repaired)
			}
			if strings.ContainsFunc(string(got), func(r rune) bool { return r < ' ' || r >= 0x7f && r <= 0x9f || lineEnd(r) }) {
				t.Fatalf("%s of %q: %q", name, s, got)
			}
			if taken < len(s) && len(got)+len(`\\u2028`) <= limit {
				t.Fatalf("%s of %q stopped early: %q", name, s, got)
			}
			var back string
			if name == "json" && (json.Unmarshal([]byte(`"`+string(got)+`"`), &back) != nil || back != strings.ReplaceAll(s[:taken], "\x00", `\x00`) && utf8.ValidString(s)) {
				t.Fatalf("%s of %q: %q", name, s, got)
			}
		}
	})
}

func BenchmarkAppendLine(b *testing.B) {
	s := strings.Repeat("request completed: the upstream answered within its budget. ", 6)[:330]
	buf := make([]byte, 0, 1024)
	b.Run("line", func(b *testing.B) {
		for b.Loop() {
			AppendLine(buf, s, 1024)
		}
	})
	b.Run("copy", func(b *testing.B) {
		for b.Loop() {
			_ = append(buf, s...)
		}
	})
}
