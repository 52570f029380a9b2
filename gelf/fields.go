package gelf

import (
	"log/slog"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/wholelog/wholelog/internal/attrs"
)

const (
	// maxField is the longest string, in bytes, of an attribute. Graylog indexes attributes as keywords, and the index refuses
	// the whole message when a keyword is longer.
	maxField = 32766
	// placeholder stands for text that is blank. Graylog drops blank fields, and rejects a message whose short_message is.
	placeholder = "-"
	// replacement is what invalid bytes become.
	replacement = string(utf8.RuneError)
)

// Attr implements [attrs.Visitor].
func (e *encoder) Attr(key string, kind slog.Kind, v slog.Value) {
	start := len(e.buf)
	b := e.key(key)
	switch kind {
	case slog.KindString:
		s, whole := v.String(), false
		if !mayBeBlank(s) && len(s) <= min(maxField, e.limit-len(b)-len(`""`)) {
			b, whole = attrs.AppendQuoted(b, s)
		}
		e.buf = b
		if !whole {
			e.text(start, s)
		}
		return
	case slog.KindInt64:
		b = attrs.AppendInt(b, v.Int64())
	case slog.KindUint64:
		if u := v.Uint64(); u <= math.MaxInt64 {
			b = attrs.AppendUint(b, u)
		} else { // the server's integers have 64 bits and a sign: this one would come out negative
			b = append(attrs.AppendUint(append(b, '"'), u), '"')
			e.repaired++
		}
	case slog.KindFloat64:
		var finite bool
		if b, finite = attrs.AppendFloat(b, v.Float64()); !finite { // no JSON; the server rejects the whole message
			b = append(append(append(b, '"'), attrs.FloatText(v.Float64())...), '"')
			e.repaired++
		}
	case slog.KindBool:
		b = append(strconv.AppendBool(append(b, '"'), v.Bool()), '"')
		e.repaired++ // the server drops a field that is a JSON boolean
	case slog.KindDuration:
		b = attrs.AppendInt(b, int64(v.Duration()))
	case slog.KindTime:
		b = append(attrs.AppendTime(append(b, '"'), v.Time()), '"')
	}
	e.buf = b
	if len(b) > e.limit {
		e.leaveOut(start, len(b)-start)
	}
}

// Doc implements [attrs.Visitor]. The server keeps an object or array as its JSON text, so that is what is sent.
func (e *encoder) Doc(key string, doc []byte) {
	start := len(e.buf)
	e.buf = e.key(key)
	e.text(start, string(doc))
}

// text appends s as the value of the attribute that begins at start.
func (e *encoder) text(start int, s string) {
	whole, repaired := len(s), false
	if mayBeBlank(s) && blank(s) {
		s, whole, repaired = placeholder, len(placeholder), true
	}
	s = attrs.Cut(s, maxField)
	cut := whole - len(s)
	if len(s) > maxField/len(replacement) && !utf8.ValidString(s) { // it grows when it is repaired
		grown := string([]rune(s))
		s, repaired = attrs.Cut(grown, maxField), true
		cut += len(grown) - len(s)
	}
	b, taken, bad := attrs.AppendText(append(e.buf, '"'), s, e.limit)
	e.buf = append(b, '"')
	if taken < len(s) {
		e.leaveOut(start, whole)
		return
	}
	e.cut += cut
	if repaired || bad {
		e.repaired++
	}
}

// leaveOut takes back an attribute, of size bytes, that the message has no room for.
func (e *encoder) leaveOut(start, size int) {
	e.buf = e.buf[:start]
	e.cut += size
	e.over = true
}

// Open implements [attrs.Visitor]: the names of a group's attributes begin with the group's.
func (e *encoder) Open(name string) (mark int) {
	mark = len(e.prefix)
	var mended bool
	e.prefix, mended = appendGroup(e.prefix, name)
	if mended && e.mendedAt == 0 {
		e.mendedAt = mark + 1
	}
	return mark
}

// Close implements [attrs.Visitor]. An empty group has left no trace.
func (e *encoder) Close(mark int, _ bool) {
	e.prefix = e.prefix[:mark]
	if e.mendedAt > mark {
		e.mendedAt = 0
	}
}

// appendGroup appends the part that a group has in the names of its attributes. mended says that it differs from "name.".
func appendGroup(prefix []byte, name string) (out []byte, mended bool) {
	switch {
	case len(prefix) >= maxName:
		return prefix, true
	case plainName(name) && len(prefix)+len(name) < maxName:
		return append(append(prefix, name...), '.'), false
	}
	if out, mended = appendCleanName(prefix, 0, name); len(out) >= maxName {
		return out, true
	}
	return append(out, '.'), mended
}

// key appends the attribute's name, made one that Graylog stores, with what stands around it.
func (e *encoder) key(key string) []byte {
	place := e.known.at(e.names.sum, key)
	if known := &e.known[place]; known.is(e.names.sum, e.prefix, key) {
		return e.knownKey(known)
	}
	if known := &e.known[place+1]; known.is(e.names.sum, e.prefix, key) {
		return e.knownKey(known)
	}
	return e.newKey(key, place)
}

// knownKey is key for a known name.
func (e *encoder) knownKey(known *knownName) []byte {
	e.names.know(known.hash)
	if known.changed || e.mendedAt > 0 {
		e.repaired++
	}
	return known.append(e.buf)
}

// newKey is key for a name that is not known. place is where it will be.
func (e *encoder) newKey(key string, place int) []byte {
	e.names.settle()
	taken := e.names.sum
	b := append(e.buf, nameStart...)
	start := len(b)
	b = append(b, e.prefix...)
	changed := false
	if plainName(key) && len(b)-start+len(key) <= maxName {
		b = append(b, key...)
	} else {
		b, changed = appendCleanName(b, start, key)
	}
	if isReservedPrefix(b[start:]) || !e.names.add(hashName(b[start:])) {
		b = e.names.free(b, start)
		changed = true
	}
	b = append(b, nameEnd...)
	e.known.remember(place, taken, e.prefix, key, b[len(e.buf):], e.names.sum-taken, changed)
	if changed || e.mendedAt > 0 {
		e.repaired++
	}
	return b
}

// blank returns whether Graylog takes s for blank: it trims everything up to the space, and then asks Java whether what is
// left is white space, which a no-break space is not.
func blank(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool {
		if r == '\u00A0' || r == '\u2007' || r == '\u202F' || r == '\u0085' {
			return true
		}
		return r > ' ' && !unicode.IsSpace(r)
	}) < 0
}

// mayBeBlank returns false for most texts that are not blank, and costs nothing.
func mayBeBlank(s string) bool { return s == "" || s[0] <= ' ' || s[0] >= utf8.RuneSelf }
