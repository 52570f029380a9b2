package attrs

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

const noLimit = math.MaxInt

func TestAppendText(t *testing.T) {
	for _, x := range []struct {
		in, want string
		repaired bool
	}{
		{in: "", want: ""},
		{in: "plain", want: "plain"},
		{in: "exactly8", want: "exactly8"},
		{in: `say "hi"`, want: `say \"hi\"`},
		{in: `C:\temp`, want: `C:\\temp`},
		{in: "a\nb\rc\td", want: `a\nb\rc\td`},
		{in: "\x00\x01\x1f\x7f", want: "\\u0000\\u0001\\u001f\x7f"},
		{in: "0123456789abcdef\x00", want: `0123456789abcdef\u0000`},
		{in: "grün 日本 🙂", want: "grün 日本 🙂"},
		{in: "\u2028\u2029\ufeff\ufffd", want: "\u2028\u2029\ufeff\ufffd"},
		{in: "a\xffb", want: "a\ufffdb", repaired: true},
		{in: "\xe2\x82", want: "\ufffd\ufffd", repaired: true},
		{in: "\xed\xa0\x80", want: "\ufffd\ufffd\ufffd", repaired: true}, // a surrogate
		{in: strings.Repeat("a", 100) + `"`, want: strings.Repeat("a", 100) + `\"`},
	} {
		got, taken, repaired := AppendText([]byte(">"), x.in, noLimit)
		if string(got) != ">"+x.want || taken != len(x.in) || repaired != x.repaired {
			t.Errorf("AppendText(%q) = %q, %d, %v; want %q, %d, %v", x.in, got, taken, repaired, ">"+x.want, len(x.in), x.repaired)
		}
	}
}

// Every byte at every place of a word is found.
func TestAppendTextEveryByteEveryPlace(t *testing.T) {
	for length := range 20 {
		for at := range length {
			for c := range 256 {
				in := []byte(strings.Repeat("x", length))
				in[at] = byte(c)
				got, _, _ := AppendText(nil, string(in), noLimit)
				var back string
				if err := json.Unmarshal([]byte(`"`+string(got)+`"`), &back); err != nil {
					t.Fatalf("%q became %q: %v", in, got, err)
				}
				if want := strings.ToValidUTF8(string(in), "\ufffd"); back != want {
					t.Fatalf("%q became %q, which reads %q", in, got, back)
				}
				if c < 0x20 && strings.IndexByte(string(got), byte(c)) >= 0 {
					t.Fatalf("%q became %q with the control character in it", in, got)
				}
			}
		}
	}
}

func TestR20_AppendTextStopsBetweenCharacters(t *testing.T) {
	in := "ab\"€\n" + strings.Repeat("x", 20) + "\x00🙂 end"
	whole, _, _ := AppendText(nil, in, noLimit)
	for limit := range len(whole) + 3 {
		got, taken, repaired := AppendText([]byte("0123"), in, 4+limit)
		got = got[4:]
		if len(got) > limit {
			t.Errorf("limit %d: %d bytes", limit, len(got))
		}
		again, _, _ := AppendText(nil, in[:taken], noLimit)
		if string(again) != string(got) || !utf8.ValidString(in[:taken]) || repaired {
			t.Errorf("limit %d: %q is not what the first %d bytes give", limit, got, taken)
		}
		if taken < len(in) {
			_, size := utf8.DecodeRuneInString(in[taken:])
			if more, _, _ := AppendText(nil, in[:taken+size], noLimit); len(more) <= limit {
				t.Errorf("limit %d: stopped at %d though the next character fits", limit, taken)
			}
		}
	}
	if got, taken, _ := AppendText([]byte("0123"), "x", 2); string(got) != "0123" || taken != 0 {
		t.Errorf("a limit that is passed already: %q, %d", got, taken)
	}
}

func TestAppendFloat(t *testing.T) {
	for f, want := range map[float64]string{
		0: "0.0", 1: "1.0", -3: "-3.0", 1.5: "1.5", -0.125: "-0.125", 0.1: "0.1", 3.25: "3.25", 99.99: "99.99", 1234.567: "1234.567",
		1e-7: "1e-07", 1e-6: "0.000001", 1e15: "1e+15", 1e19: "1e+19", 123456789012345: "123456789012345.0",
		math.MaxFloat64: "1.7976931348623157e+308", math.SmallestNonzeroFloat64: "5e-324", 0.30000000000000004: "0.30000000000000004",
	} {
		if got, ok := AppendFloat(nil, f); string(got) != want || !ok {
			t.Errorf("AppendFloat(%v) = %s, %v; want %s", f, got, ok, want)
		}
	}
	for f, want := range map[float64]string{math.Inf(1): "+Inf", math.Inf(-1): "-Inf"} {
		if got, ok := AppendFloat(nil, f); ok || len(got) > 0 || FloatText(f) != want {
			t.Errorf("AppendFloat(%v) = %s, %v, FloatText %s", f, got, ok, FloatText(f))
		}
	}
	if got, ok := AppendFloat(nil, math.NaN()); ok || len(got) > 0 || FloatText(math.NaN()) != "NaN" {
		t.Errorf("AppendFloat(NaN) = %s, %v", got, ok)
	}
}

// The shortest text that reads back as the same float, whichever branch made it.
func FuzzAppendFloat(f *testing.F) {
	for _, x := range []float64{0, 1.5, 0.1, 1e15, 1e12, 123.456, -0.001, 1e-7, 999999999999.999, 4503599627370496.5} {
		f.Add(math.Float64bits(x))
	}
	f.Fuzz(func(t *testing.T, bits uint64) {
		x := math.Float64frombits(bits)
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return
		}
		got, ok := AppendFloat(nil, x)
		back, err := strconv.ParseFloat(string(got), 64)
		if !ok || err != nil || back != x || !json.Valid(got) || !strings.ContainsAny(string(got), ".e") {
			t.Fatalf("AppendFloat(%v) = %s, %v", x, got, ok)
		}
		if shortest := strconv.FormatFloat(x, 'f', -1, 64); strings.Contains(shortest, ".") && !strings.Contains(string(got), "e") && string(got) != shortest {
			t.Fatalf("AppendFloat(%v) = %s, want %s", x, got, shortest)
		}
	})
}

func FuzzAppendText(f *testing.F) {
	f.Add("plain text", 100)
	f.Add("\x00\"\\\n é \xff 日本", 9)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		limit = max(0, limit%4096)
		got, taken, _ := AppendText(nil, s, limit)
		var back string
		if err := json.Unmarshal([]byte(`"`+string(got)+`"`), &back); err != nil || len(got) > limit {
			t.Fatalf("%q within %d: %q: %v", s, limit, got, err)
		}
		if back != strings.ToValidUTF8(back, "") || back != toValid(s[:taken]) {
			t.Fatalf("%q within %d reads %q", s, limit, back)
		}
	})
}

// toValid replaces each invalid byte by U+FFFD; strings.ToValidUTF8 replaces runs.
func toValid(s string) string { return string([]rune(s)) }

func TestR80_AppendTimeKeepsTheInstant(t *testing.T) {
	at := time.Date(2021, 7, 5, 12, 34, 56, 12345678, time.FixedZone("IST", 5*3600+1800))
	if got := string(AppendTime(nil, at)); got != "2021-07-05T12:34:56.012345678+05:30" {
		t.Error(got)
	}
	if got := string(AppendTime(nil, at.UTC())); got != "2021-07-05T07:04:56.012345678Z" {
		t.Error(got)
	}
}

func TestR20_Cut(t *testing.T) {
	for _, in := range []string{"", "plain", "a€b🙂c", "日本語", "🙂🙂"} {
		for n := -1; n <= len(in)+1; n++ {
			got := Cut(in, n)
			if len(got) > max(n, 0) || !utf8.ValidString(got) || !strings.HasPrefix(in, got) {
				t.Errorf("Cut(%q, %d) = %q", in, n, got)
			}
			if len(got) < min(n, len(in)) {
				if _, size := utf8.DecodeRuneInString(in[len(got):]); len(got)+size <= n {
					t.Errorf("Cut(%q, %d) = %q leaves out a character that fits", in, n, got)
				}
			}
		}
	}
	if got := Cut("\x80\x80\x80\x80\x80", 3); len(got) != 3 {
		t.Errorf("of invalid text %d bytes are left, want 3", len(got))
	}
}
