package attrs

import (
	"math"
	"math/bits"
	"strconv"
	"time"
	"unicode/utf8"
)

const hex = "0123456789abcdef"

// AppendText appends s as it stands inside a JSON string, without the quotes. It stops, between two characters, before dst
// would be longer than limit, and returns how many bytes of s it took. Invalid UTF-8 becomes U+FFFD, one for each byte,
// and is reported. Control characters are escaped, so the result never holds a NUL or a line end.
func AppendText(dst []byte, s string, limit int) (out []byte, taken int, repaired bool) {
	i := 0
	for {
		n := clean(s[i:])
		if room := limit - len(dst); n > room {
			n = max(room, 0) // clean text is ASCII: every cut is between characters
			return append(dst, s[i:i+n]...), i + n, repaired
		}
		dst = append(dst, s[i:i+n]...)
		i += n
		if i == len(s) {
			return dst, i, repaired
		}
		size, bad := 1, false
		before := len(dst)
		switch c := s[i]; {
		case c >= utf8.RuneSelf:
			var r rune
			if r, size = utf8.DecodeRuneInString(s[i:]); r == utf8.RuneError && size == 1 {
				dst, bad = append(dst, "\uFFFD"...), true
			} else {
				dst = append(dst, s[i:i+size]...)
			}
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\r':
			dst = append(dst, '\\', 'r')
		case c == '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		if len(dst) > limit {
			return dst[:before], i, repaired
		}
		i += size
		repaired = repaired || bad
	}
}

const (
	ones  = 0x0101010101010101
	highs = 0x80 * ones
)

// clean returns the length of the prefix of s that needs no escaping and is ASCII. It looks at eight bytes at a time: in
// each term below, the highest bit of a byte is set when that byte needs care, and the lowest such byte is exact (a borrow
// only ever disturbs the bytes above it).
func clean(s string) int {
	i := 0
	for ; i+8 <= len(s); i += 8 {
		w := load64(s, i)
		quote := w ^ '"'*ones
		slash := w ^ '\\'*ones
		care := (w | (w-' '*ones)&^w | (quote-ones)&^quote | (slash-ones)&^slash) & highs
		if care != 0 {
			return i + bits.TrailingZeros64(care)/8
		}
	}
	for ; i < len(s); i++ {
		if c := s[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			break
		}
	}
	return i
}

// load64 reads eight bytes, the first one lowest. The compiler turns it into one load.
func load64(s string, i int) uint64 {
	s = s[i : i+8]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// AppendFloat appends a finite f as a JSON number. It always has a fraction or an exponent ("3.0", "1e+20"): a receiver that
// types a field by the first value it sees must not take a float for an integer, nor read a large one as an integer that
// overflows. For NaN and the infinities, which JSON has not, it appends nothing and returns false; [FloatText] names them.
func AppendFloat(dst []byte, f float64) ([]byte, bool) {
	const exact = 1e15 // whole numbers below it are printed digit by digit
	abs := math.Abs(f)
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return dst, false
	case abs < exact && f == math.Trunc(f):
		return append(strconv.AppendInt(dst, int64(f), 10), ".0"...), true
	case abs < 1e-6 || abs >= exact:
		return strconv.AppendFloat(dst, f, 'e', -1, 64), true
	default:
		return strconv.AppendFloat(dst, f, 'f', -1, 64), true
	}
}

// FloatText returns "NaN", "+Inf" or "-Inf".
func FloatText(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

// AppendTime appends t in RFC 3339 with nanoseconds as needed, in its own zone.
func AppendTime(dst []byte, t time.Time) []byte { return t.AppendFormat(dst, time.RFC3339Nano) }

// Cut returns the longest prefix of s of at most n bytes that does not end inside a character.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	n = max(n, 0)
	i := n
	for i > 0 && n-i < utf8.UTFMax-1 && !utf8.RuneStart(s[i]) {
		i--
	}
	// Of invalid text every byte stands alone, so there is nothing to go back for.
	if _, size := utf8.DecodeRuneInString(s[i:]); i+size > n {
		return s[:i]
	}
	return s[:n]
}
