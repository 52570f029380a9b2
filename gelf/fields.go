package gelf

import (
	"log/slog"
	"math"
	"strconv"
	"strings"
	"unicode"

	"github.com/wholelog/wholelog/internal/attrs"
)

const (
	// maxField is the longest string, in bytes, of an attribute. Graylog indexes attributes as keywords, and the index refuses
	// the whole message when a keyword is longer.
	maxField = 32766
	// placeholder stands for text that is blank. Graylog drops blank fields, and rejects a message whose short_message is.
	placeholder = "-"
)

// Attr implements [attrs.Visitor].
func (e *encoder) Attr(key string, v slog.Value) {
	start := len(e.buf)
	b := e.key(key)
	switch v.Kind() {
	case slog.KindString:
		e.buf = b
		e.text(start, v.String())
		return
	case slog.KindInt64:
		b = strconv.AppendInt(b, v.Int64(), 10)
	case slog.KindUint64:
		if u := v.Uint64(); u <= math.MaxInt64 {
			b = strconv.AppendUint(b, u, 10)
		} else { // the server's integers have 64 bits and a sign: this one would come out negative
			b = append(strconv.AppendUint(append(b, '"'), u, 10), '"')
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
		b = strconv.AppendInt(b, int64(v.Duration()), 10)
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
	if blank(s) {
		s = placeholder
		e.repaired++
	}
	whole := len(s)
	s = attrs.Cut(s, maxField)
	b, taken, repaired := attrs.AppendText(append(e.buf, '"'), s, e.limit)
	e.buf = append(b, '"')
	if taken < len(s) {
		e.leaveOut(start, whole)
		return
	}
	e.cut += whole - len(s)
	if repaired {
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
	if len(prefix) >= maxName {
		return prefix, true
	}
	out, mended = appendCleanName(prefix, 0, name)
	return append(out, '.'), mended
}

// key appends the attribute's name, made one that Graylog stores, and the colon.
func (e *encoder) key(key string) []byte {
	b := append(e.buf, namePrefix...)
	start := len(b)
	mended := e.mendedAt > 0
	b = append(b, e.prefix...)
	if plainName(key) && len(b)-start+len(key) <= maxName {
		b = append(b, key...)
	} else {
		var changed bool
		b, changed = appendCleanName(b, start, key)
		mended = mended || changed
	}
	if isReservedPrefix(b[start:]) || !e.names.add(hashName(b[start:])) {
		b = e.names.free(b, start)
		mended = true
	}
	if mended {
		e.repaired++
	}
	return append(b, '"', ':')
}

// blank returns whether Graylog takes s for blank: it trims everything up to the space, and then asks Java whether what is
// left is white space, which a no-break space is not.
func blank(s string) bool {
	if s != "" && s[0] > ' ' && s[0] < 0x80 {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool {
		if r == '\u00A0' || r == '\u2007' || r == '\u202F' || r == '\u0085' {
			return true
		}
		return r > ' ' && !unicode.IsSpace(r)
	}) < 0
}
