package attrs

import (
	"math/bits"
	"strings"
	"unicode/utf8"
)

// AppendLine appends s such that it stays on one line of plain text and holds no control character: \n \r \t become these two
// characters, other ASCII ones \xNN, and those of Unicode that readers take for line ends \u0085 \u2028 \u2029. A backslash stays
// as it is. It stops, between two characters, before dst would be longer than limit, and returns how many bytes of s it took.
// Invalid UTF-8 becomes U+FFFD, one for each byte, and is reported.
func AppendLine(dst []byte, s string, limit int) (out []byte, taken int, repaired bool) {
	if len(s) <= limit-len(dst) && calm(s) {
		return append(dst, s...), len(s), false
	}
	return appendPlain(dst, s, limit, false)
}

// AppendParam appends s as it stands between the quotes of a PARAM-VALUE (RFC 5424, section 6.3.3), in which " \ and ] have a
// backslash in front. Otherwise it does what [AppendLine] does, so that what a receiver reads is the same in both places.
func AppendParam(dst []byte, s string, limit int) (out []byte, taken int, repaired bool) {
	return appendPlain(dst, s, limit, true)
}

func appendPlain(dst []byte, s string, limit int, param bool) (out []byte, taken int, repaired bool) {
	for i := 0; ; {
		n := plain(s[i:], param)
		if room := limit - len(dst); n > room {
			n = max(room, 0) // plain text is ASCII: every cut is between characters
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
		if dst, size, bad = appendPlainChar(dst, s[i:], param); len(dst) > limit {
			return dst[:before], i, repaired
		}
		i += size
		repaired = repaired || bad
	}
}

// calm says whether s is ASCII without control characters, which is what nearly all texts are. It looks at 64 bytes, then at eight at a
// time; the last eight overlap those before.
func calm(s string) bool {
	var care uint64
	t := s
	for ; len(t) >= 64; t = t[64:] {
		care = unrest(load64(t, 0)) | unrest(load64(t, 8)) | unrest(load64(t, 16)) | unrest(load64(t, 24))
		care |= unrest(load64(t, 32)) | unrest(load64(t, 40)) | unrest(load64(t, 48)) | unrest(load64(t, 56))
		if care&highs != 0 {
			return false
		}
	}
	for ; len(t) >= 8; t = t[8:] {
		care |= unrest(load64(t, 0))
	}
	switch {
	case len(t) == 0:
	case len(s) >= 8:
		care |= unrest(load64(s, len(s)-8))
	case len(s) >= 4:
		care |= unrest(load32(s, 0) | load32(s, len(s)-4)<<32)
	default:
		care |= unrest(filler | uint64(s[0])<<16 | uint64(s[len(s)/2])<<8 | uint64(s[len(s)-1]))
	}
	return care&highs == 0
}

// unrest has a highest bit set if one of eight bytes is a control character or not ASCII, but not always that byte's: what is below a
// space borrows, DEL carries.
func unrest(w uint64) uint64 { return w | (w - ' '*ones) | (w + ones) }

// plain returns the length of the prefix of s that stands as it is.
func plain(s string, param bool) int {
	i := 0
	for ; i+8 <= len(s); i += 8 {
		if care := special(load64(s, i), param); care != 0 {
			return i + bits.TrailingZeros64(care)/8
		}
	}
	for ; i < len(s); i++ {
		if special(uint64(s[i])|'x'*(ones&^0xff), param) != 0 {
			return i
		}
	}
	return len(s)
}

// special has the highest bit set of each of eight bytes that is a control character, not ASCII or, in a param, escaped; like [careful],
// of those set the lowest is exact.
func special(w uint64, param bool) uint64 {
	const all = 0x7f * ones
	care := ^((w + 0x60*ones) & ((w ^ 0x7f*ones) + all)) | w
	if param {
		care |= ^(((w ^ '"'*ones) + all) & ((w ^ '\\'*ones) + all) & ((w ^ ']'*ones) + all))
	}
	return care & highs
}

// appendPlainChar appends the first character of s, which is not plain, and returns how many bytes of s it has.
func appendPlainChar(dst []byte, s string, param bool) (out []byte, size int, repaired bool) {
	c := s[0]
	if c == '"' || c == '\\' || c == ']' {
		return append(dst, '\\', c), 1, false
	}
	if c >= utf8.RuneSelf {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			return append(dst, "\uFFFD"...), 1, true
		case !lineEnd(r) && (r < 0x80 || r > 0x9f):
			return append(dst, s[:size]...), size, false
		}
		dst = appendBackslash(dst, param)
		return append(dst, 'u', hex[r>>12], hex[r>>8&15], hex[r>>4&15], hex[r&15]), size, false
	}
	dst = appendBackslash(dst, param)
	switch c {
	case '\n':
		return append(dst, 'n'), 1, false
	case '\r':
		return append(dst, 'r'), 1, false
	case '\t':
		return append(dst, 't'), 1, false
	}
	return append(dst, 'x', hex[c>>4], hex[c&15]), 1, false
}

// appendBackslash appends a backslash that a reader sees as one.
func appendBackslash(dst []byte, param bool) []byte {
	if param {
		dst = append(dst, '\\')
	}
	return append(dst, '\\')
}

// lineEnd says whether r is a line end that is not ASCII.
func lineEnd(r rune) bool { return r == '\u0085' || r == '\u2028' || r == '\u2029' }

// AppendJSONLine is [AppendText] for places that are read line by line: the control characters and line ends that JSON allows in a
// string (DEL, U+0080 to U+009F, U+2028, U+2029) are escaped as well. A NUL becomes the four characters \x00, and is reported: for
// receivers written in C (rsyslog's mmjsonparse) the string would end at \u0000.
func AppendJSONLine(dst []byte, s string, limit int) (out []byte, taken int, repaired bool) {
	for {
		n := allowed(s[taken:])
		var k int
		var bad bool
		dst, k, bad = AppendText(dst, s[taken:taken+n], limit)
		taken += k
		repaired = repaired || bad
		if k < n || taken == len(s) {
			return dst, taken, repaired
		}
		r, size := utf8.DecodeRuneInString(s[taken:])
		if len(dst)+len(`\u0000`) > limit {
			return dst, taken, repaired
		}
		if r == 0 {
			dst, repaired = append(dst, textNUL...), true
		} else {
			dst = append(dst, '\\', 'u', hex[r>>12], hex[r>>8&15], hex[r>>4&15], hex[r&15])
		}
		taken += size
	}
}

// docNUL is a NUL as a JSON document has it, and textNUL what stands there instead.
const docNUL, textNUL = `\u0000`, `\\x00`

// AppendDocLine appends a JSON document as [AppendJSONLine] appends the strings in it. What it holds besides strings is ASCII.
func AppendDocLine(dst, doc []byte) (out []byte, repaired bool) {
	s := string(doc)
	if plain(s, false) == len(s) && !strings.Contains(s, docNUL) {
		return append(dst, s...), false
	}
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			dst, repaired = append(dst, "\uFFFD"...), true
		case strings.HasPrefix(s[i:], docNUL):
			dst, repaired, size = append(dst, textNUL...), true, len(docNUL)
		case r == '\\' && i+1 < len(s): // what follows is no beginning of another escape
			dst, size = append(dst, s[i:i+2]...), 2
		case r >= 0x7f && r <= 0x9f || lineEnd(r):
			dst = append(dst, '\\', 'u', hex[r>>12], hex[r>>8&15], hex[r>>4&15], hex[r&15])
		default:
			dst = append(dst, s[i:i+size]...)
		}
		i += size
	}
	return dst, repaired
}

// allowed returns the length of the prefix of s without the characters that only [AppendJSONLine] escapes.
func allowed(s string) int {
	if plain(s, false) == len(s) {
		return len(s)
	}
	for i, r := range s {
		if r == 0 || r >= 0x7f && r <= 0x9f || lineEnd(r) {
			return i
		}
	}
	return len(s)
}
