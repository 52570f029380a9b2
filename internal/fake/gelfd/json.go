package gelfd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Limits of the server's parser: how deep containers may nest, and how many characters a number may have.
const (
	maxDepth  = 1000
	maxNumber = 1000
)

// kind of a JSON value.
type jsonKind uint8

const (
	jNull jsonKind = iota
	jBool
	jInt   // a number without fraction and exponent
	jFloat // any other number
	jString
	jObject
	jArray
)

// value is a JSON value as the server's parser understands it.
type value struct {
	kind    jsonKind
	text    string // of a string; of a number and a bool its literal
	members []member
	items   []value
}

type member struct {
	name  string
	value value
	again bool // the key came more than once; the value is the last one, the place the first
}

// get returns the member called name; ok is false when there is none, or v is no object.
func (v value) get(name string) (m value, ok bool) {
	for _, m := range v.members {
		if m.name == name {
			return m.value, true
		}
	}
	return value{}, false
}

// parser reads JSON with the liberties the server takes: raw control characters in strings, a comma behind the last element,
// lone surrogates, and repeated keys, of which the last one wins. encoding/json takes none but the last, and loses the order
// of keys, which decides between two that become one name.
type parser struct {
	s     string
	pos   int
	depth int
}

// parse reads the first value of text. more says that another value follows, which the server ignores and counts.
func parse(text []byte) (v value, more bool, err error) {
	// The server makes a string of the bytes before it parses: damaged UTF-8 becomes U+FFFD there.
	p := &parser{s: string(bytes.ToValidUTF8(text, []byte("\ufffd")))}
	if v, err = p.value(); err != nil {
		return value{}, false, err
	}
	if p.peek() == 0 && p.pos >= len(p.s) {
		return v, false, nil
	}
	if !strings.ContainsRune(`{["-0123456789tfn`, rune(p.s[p.pos])) {
		return value{}, false, p.fail("junk after the value")
	}
	return v, true, nil
}

func (p *parser) fail(what string) error {
	return fmt.Errorf("%s at byte %d", what, p.pos)
}

// peek skips white space and returns the next byte, or 0 at the end.
func (p *parser) peek() byte {
	for ; p.pos < len(p.s); p.pos++ {
		switch c := p.s[p.pos]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

func (p *parser) value() (value, error) {
	switch c := p.peek(); {
	case c == '{':
		return p.object()
	case c == '[':
		return p.array()
	case c == '"':
		s, err := p.str()
		return value{kind: jString, text: s}, err
	case c == '-' || '0' <= c && c <= '9':
		return p.number()
	}
	for _, word := range [...]string{"null", "true", "false"} {
		if strings.HasPrefix(p.s[p.pos:], word) {
			p.pos += len(word)
			kind := jBool
			if word == "null" {
				kind = jNull
			}
			return value{kind: kind, text: word}, nil
		}
	}
	return value{}, p.fail("no value")
}

// down enters a container.
func (p *parser) down() error {
	p.pos++
	if p.depth++; p.depth > maxDepth {
		return p.fail("nested too deeply")
	}
	return nil
}

// next moves to the next element of a container that ends with end, and says whether there is one.
func (p *parser) next(end byte, first bool) (bool, error) {
	c := p.peek()
	if !first && c == ',' {
		p.pos++
		c = p.peek()
	} else if !first && c != end {
		return false, p.fail("neither comma nor end")
	}
	if c == end {
		p.pos++
		p.depth--
		return false, nil
	}
	return true, nil
}

func (p *parser) object() (value, error) {
	v := value{kind: jObject}
	if err := p.down(); err != nil {
		return v, err
	}
	places := make(map[string]int)
	for first := true; ; first = false {
		if ok, err := p.next('}', first); !ok {
			return v, err
		}
		if p.peek() != '"' {
			return v, p.fail("no key")
		}
		name, err := p.str()
		if err != nil {
			return v, err
		}
		if p.peek() != ':' {
			return v, p.fail("no colon")
		}
		p.pos++
		m, err := p.value()
		if err != nil {
			return v, err
		}
		if i, again := places[name]; again {
			v.members[i] = member{name, m, true}
			continue
		}
		places[name] = len(v.members)
		v.members = append(v.members, member{name, m, false})
	}
}

func (p *parser) array() (value, error) {
	v := value{kind: jArray}
	if err := p.down(); err != nil {
		return v, err
	}
	for first := true; ; first = false {
		if ok, err := p.next(']', first); !ok {
			return v, err
		}
		item, err := p.value()
		if err != nil {
			return v, err
		}
		v.items = append(v.items, item)
	}
}

func (p *parser) number() (value, error) {
	start, kind := p.pos, jInt
	digits := func() (n int) {
		for ; p.pos < len(p.s) && '0' <= p.s[p.pos] && p.s[p.pos] <= '9'; p.pos++ {
			n++
		}
		return n
	}
	has := func(chars string) bool {
		if p.pos < len(p.s) && strings.IndexByte(chars, p.s[p.pos]) >= 0 {
			p.pos++
			return true
		}
		return false
	}
	has("-")
	zero := strings.HasPrefix(p.s[p.pos:], "0")
	if n := digits(); n == 0 || zero && n > 1 {
		return value{}, p.fail("no number")
	}
	if has(".") {
		kind = jFloat
		if digits() == 0 {
			return value{}, p.fail("no digits behind the point")
		}
	}
	if has("eE") {
		kind = jFloat
		has("+-")
		if digits() == 0 {
			return value{}, p.fail("no exponent")
		}
	}
	if p.pos-start > maxNumber {
		return value{}, p.fail("number too long")
	}
	return value{kind: kind, text: p.s[start:p.pos]}, nil
}

func (p *parser) str() (string, error) {
	p.pos++
	var b strings.Builder
	for {
		n := strings.IndexAny(p.s[p.pos:], `"\`)
		if n < 0 {
			return "", p.fail("unfinished string")
		}
		b.WriteString(p.s[p.pos : p.pos+n])
		p.pos += n + 1
		if p.s[p.pos-1] == '"' {
			return b.String(), nil
		}
		r, err := p.escape()
		if err != nil {
			return "", err
		}
		b.WriteRune(r)
	}
}

// escape reads what follows a backslash. A lone surrogate becomes U+FFFD, which is what is left of it in the index.
func (p *parser) escape() (rune, error) {
	if p.pos >= len(p.s) {
		return 0, p.fail("unfinished escape")
	}
	c := p.s[p.pos]
	p.pos++
	if i := strings.IndexByte(`"\/bfnrt`, c); i >= 0 {
		return rune("\"\\/\b\f\n\r\t"[i]), nil
	}
	if c != 'u' {
		return 0, p.fail("unknown escape")
	}
	r, err := p.hex4()
	if err != nil || !utf16.IsSurrogate(r) {
		return r, err
	}
	if strings.HasPrefix(p.s[p.pos:], `\u`) {
		back := p.pos
		p.pos += 2
		low, err := p.hex4()
		if err != nil {
			return 0, err
		}
		if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
			return pair, nil
		}
		p.pos = back
	}
	return utf8.RuneError, nil
}

func (p *parser) hex4() (rune, error) {
	if len(p.s)-p.pos < 4 {
		return 0, p.fail("unfinished escape")
	}
	n, err := strconv.ParseUint(p.s[p.pos:p.pos+4], 16, 16)
	if err != nil {
		return 0, p.fail("bad escape")
	}
	p.pos += 4
	return rune(n), nil
}

// String returns v as compact JSON: the form in which containers are stored.
func (v value) String() string {
	var b strings.Builder
	v.write(&b)
	return b.String()
}

func (v value) write(b *strings.Builder) {
	switch v.kind {
	case jString:
		quote(b, v.text)
	case jObject:
		b.WriteByte('{')
		for i, m := range v.members {
			if i > 0 {
				b.WriteByte(',')
			}
			quote(b, m.name)
			b.WriteByte(':')
			m.value.write(b)
		}
		b.WriteByte('}')
	case jArray:
		b.WriteByte('[')
		for i, item := range v.items {
			if i > 0 {
				b.WriteByte(',')
			}
			item.write(b)
		}
		b.WriteByte(']')
	default:
		b.WriteString(v.text)
	}
}

func quote(b *strings.Builder, s string) {
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always encodes, and a buffer takes everything
	b.Write(bytes.TrimSuffix(line.Bytes(), []byte("\n")))
}
