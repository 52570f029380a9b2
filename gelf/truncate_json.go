package gelf

import (
	"bytes"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// The keys that truncation knows, as the encoder writes them.
const (
	shortKey     = `"short_message"`
	fullKey      = `"full_message"`
	truncatedKey = `"_truncated"`
)

// parseRecord takes data apart: one JSON object, valid as all that comes from the encoder. It answers false for anything else it
// cannot follow.
func parseRecord(data []byte) (*record, bool) {
	var (
		fields, texts, others []*field
		short, full           *field
		before                int
	)
	s := scanner{data}
	if !s.skip('{') {
		return nil, false
	}
	for first := true; !s.skip('}'); first = false {
		if !first && !s.skip(',') {
			return nil, false
		}
		key := s.value()
		if len(key) == 0 || key[0] != '"' || !s.skip(':') {
			return nil, false
		}
		value := s.value()
		if len(value) == 0 {
			return nil, false
		}
		f := &field{key: key, value: value}
		isText := value[0] == '"' && len(value) > len(`""`)
		switch string(key) {
		case truncatedKey:
			// One field with one sum. A user's field of that name gives way and counts as cut itself.
			if n, err := strconv.ParseUint(string(value), 10, 62); err == nil {
				before += int(n)
			} else {
				before += len(value)
			}
			continue
		case `"version"`, `"host"`, `"timestamp"`, `"level"`:
		case shortKey:
			if isText && short == nil {
				short = f
				f.split(visible(value[1 : len(value)-1]))
			}
		case fullKey:
			if isText && full == nil {
				full = f
				f.split(0)
			}
		default:
			if isText {
				texts = append(texts, f)
				f.split(0)
			} else {
				others = append(others, f)
			}
		}
		fields = append(fields, f)
	}
	return newRecord(fields, short, full, texts, others, before), true
}

// split turns a string's value into its opening quote with the first n bytes, which stay, and its text, which may be cut.
func (f *field) split(n int) {
	f.value, f.text = f.value[:1+n], f.value[1+n:len(f.value)-1]
}

// scanner walks over valid JSON.
type scanner struct{ rest []byte }

// skip steps over white space and then over c, if c is next.
func (s *scanner) skip(c byte) bool {
	s.rest = bytes.TrimLeft(s.rest, " \t\r\n")
	if len(s.rest) == 0 || s.rest[0] != c {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

// value steps over one value and returns it; empty when there is none, or no end of it.
func (s *scanner) value() []byte {
	s.rest = bytes.TrimLeft(s.rest, " \t\r\n")
	depth, inside := 0, false
	for i := 0; i < len(s.rest); i++ {
		c := s.rest[i]
		switch {
		case inside:
			if c == '\\' {
				i++
			} else if c == '"' {
				inside = false
			}
		case c == '"':
			inside = true
		case c == '{' || c == '[':
			depth++
		case (c == '}' || c == ']') && depth > 0:
			depth--
		case depth == 0 && strings.IndexByte(",:]} \t\r\n", c) >= 0:
			return s.take(i) // the end of a number or a word
		default:
			continue
		}
		if !inside && depth == 0 {
			return s.take(i + 1)
		}
	}
	return nil
}

// take steps over n bytes.
func (s *scanner) take(n int) []byte {
	v := s.rest[:n]
	s.rest = s.rest[n:]
	return v
}

// boundary returns the last place at or before n at which the inside of a JSON string may end: not in a character, not in an
// escape, not between two escapes that are one character.
func boundary(text []byte, n int) int {
	if n >= len(text) {
		return len(text)
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	from := max(0, n-5) // an escape is 6 bytes long at most
	if i := bytes.LastIndexByte(text[from:n], '\\'); i >= 0 && escapes(text, from+i) {
		if _, size := character(text[from+i:]); from+i+min(size, 6) > n {
			n = from + i
		}
	}
	if n >= 6 && text[n-6] == '\\' && escapes(text, n-6) {
		if _, size := character(text[n-6:]); size > 6 {
			n -= 6
		}
	}
	return n
}

// escapes says whether the backslash at i begins an escape, and is not itself the second half of one.
func escapes(text []byte, i int) bool {
	run := 0
	for i >= run && text[i-run] == '\\' {
		run++
	}
	return run%2 == 1
}

// character returns the first character of the inside of a JSON string and the bytes it takes there (RFC 8259 section 7).
func character(text []byte) (rune, int) {
	if text[0] != '\\' || len(text) == 1 {
		return utf8.DecodeRune(text)
	}
	switch text[1] {
	case 'n', 'r', 't', 'b', 'f':
		return '\n', 2 // blank and one byte long, which is all that anybody asks
	case 'u':
		r, ok := unit(text)
		if !ok {
			return utf8.RuneError, min(6, len(text))
		}
		if low, ok := unit(text[6:]); ok {
			if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
				return pair, 12
			}
		}
		if utf16.IsSurrogate(r) {
			r = utf8.RuneError
		}
		return r, 6
	}
	return rune(text[1]), 2
}

// unit reads the UTF-16 code unit of a \u escape.
func unit(text []byte) (rune, bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	return rune(n), err == nil
}

// decodedLen is the length of the inside of a JSON string without its escapes.
func decodedLen(text []byte) int {
	n := 0
	for {
		i := bytes.IndexByte(text, '\\')
		if i < 0 {
			return n + len(text)
		}
		r, size := character(text[i:])
		n += i + utf8.RuneLen(r)
		text = text[i+size:]
	}
}

// visible returns the end of the first character that a receiver would not trim away, or the whole length when there is none.
func visible(text []byte) int {
	for i := 0; i < len(text); {
		r, size := character(text[i:])
		i += size
		if r > ' ' && !unicode.IsSpace(r) {
			return i
		}
	}
	return len(text)
}
