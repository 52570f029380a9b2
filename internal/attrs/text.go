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
	if len(s) <= limit-len(dst) && Clean(s) {
		return append(dst, s...), len(s), false
	}
	return appendText(dst, s, limit)
}

func appendText(dst []byte, s string, limit int) (out []byte, taken int, repaired bool) {
	for i := 0; ; {
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
		before := len(dst)
		var size int
		var bad bool
		if dst, size, bad = appendChar(dst, s[i:]); len(dst) > limit {
			return dst[:before], i, repaired
		}
		i += size
		repaired = repaired || bad
	}
}

// appendChar appends the first character of s, which is not clean, and returns how many bytes of s it has.
func appendChar(dst []byte, s string) (out []byte, size int, repaired bool) {
	switch c := s[0]; {
	case c >= utf8.RuneSelf:
		r, size := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && size == 1 {
			return append(dst, "\uFFFD"...), 1, true
		}
		return append(dst, s[:size]...), size, false
	case c == '"' || c == '\\':
		return append(dst, '\\', c), 1, false
	case c == '\n':
		return append(dst, '\\', 'n'), 1, false
	case c == '\r':
		return append(dst, '\\', 'r'), 1, false
	case c == '\t':
		return append(dst, '\\', 't'), 1, false
	default:
		return append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15]), 1, false
	}
}

const (
	ones  = 0x0101010101010101
	highs = 0x80 * ones

	filler = 'x' * (ones &^ 0xffffff) // five clean bytes
)

// Clean returns whether s is ASCII and stands in a JSON string as it is. It looks at 32 bytes, then at eight at a time; the last
// step overlaps the one before, and short texts make one word of overlapping parts.
func Clean(s string) bool {
	n := len(s)
	switch {
	case n >= 8:
		i := 0
		for ; i+32 <= n; i += 32 {
			t := s[i : i+32]
			if (rough(load64(t, 0))|rough(load64(t, 8))|rough(load64(t, 16))|rough(load64(t, 24)))&highs != 0 {
				return false
			}
		}
		for ; i < n-8; i += 8 {
			if careful(load64(s, i)) != 0 {
				return false
			}
		}
		return careful(load64(s, n-8)) == 0
	case n >= 4:
		return careful(load32(s, 0)|load32(s, n-4)<<32) == 0
	case n > 0:
		return careful(filler|uint64(s[0])<<16|uint64(s[n/2])<<8|uint64(s[n-1])) == 0
	}
	return true
}

// clean returns the length of the prefix of s that is Clean.
func clean(s string) int {
	i := 0
	for ; i+8 <= len(s); i += 8 {
		if care := careful(load64(s, i)); care != 0 {
			return i + bits.TrailingZeros64(care)/8
		}
	}
	for ; i < len(s) && Clean(s[i:i+1]); i++ {
	}
	return i
}

// careful sets the highest bit of each of eight bytes that needs care. For an ASCII byte each sum below has the highest bit
// unless the byte is a control character, a quote or a backslash. A byte that is not ASCII is seen by itself; what it carries
// over disturbs only the bytes above it, so that of those set the lowest is always exact.
func careful(w uint64) uint64 {
	const all = 0x7f * ones
	return ^((w + 0x60*ones) & ((w ^ '"'*ones) + all) & ((w ^ '\\'*ones) + all) &^ w) & highs
}

// rough has a highest bit set if careful has one, but not always the same: what is below a space borrows, and so does a byte that equals
// the one it is compared with.
func rough(w uint64) uint64 {
	return w | (w - ' '*ones) | ((w ^ '"'*ones) - ones) | ((w ^ '\\'*ones) - ones)
}

// load64 reads eight bytes, the first one lowest. The compiler turns it into one load.
func load64(s string, i int) uint64 {
	s = s[i : i+8]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

func load32(s string, i int) uint64 {
	s = s[i : i+4]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24
}

// AppendFloat appends a finite f as a JSON number. It always has a fraction or an exponent ("3.0", "1e+20"): a receiver that
// types a field by the first value it sees must not take a float for an integer, nor read a large one as an integer that
// overflows. For NaN and the infinities, which JSON has not, it appends nothing and returns false; [FloatText] names them.
func AppendFloat(dst []byte, f float64) ([]byte, bool) {
	const (
		exact = 1e15 // decimals of up to 15 digits are all different floats
		milli = 1000
	)
	abs := math.Abs(f)
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return dst, false
	case abs < exact && f == math.Trunc(f):
		return append(AppendInt(dst, int64(f)), ".0"...), true
	case abs < exact/milli && float64(int64(f*milli))/milli == f:
		return appendMillis(dst, int64(f*milli)), true
	case abs < 1e-6 || abs >= exact:
		return strconv.AppendFloat(dst, f, 'e', -1, 64), true
	default:
		return strconv.AppendFloat(dst, f, 'f', -1, 64), true
	}
}

// appendMillis appends n/1000. Most measured values have no more than three decimals; then these are the shortest that stand
// for the float, and found ten times faster than by strconv.
func appendMillis(dst []byte, n int64) []byte {
	if n < 0 {
		dst, n = append(dst, '-'), -n
	}
	dst = AppendInt(dst, n/1000)
	n %= 1000
	dst = append(dst, '.', byte('0'+n/100), byte('0'+n/10%10), byte('0'+n%10))
	for dst[len(dst)-1] == '0' {
		dst = dst[:len(dst)-1]
	}
	return dst
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
