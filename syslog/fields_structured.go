package syslog

import (
	"bytes"
	"log/slog"

	"github.com/wholelog/wholelog/internal/attrs"
)

// structured writes attributes as SD-PARAMs (RFC 5424, section 6.3): ` group.name="value"` each.
type structured struct{ *encoder }

// paramMarkEnd is markEnd as a PARAM-VALUE holds it.
const paramMarkEnd = ` bytes\]`

// Attr implements [attrs.Visitor].
func (e structured) Attr(key string, kind slog.Kind, v slog.Value) {
	start := len(e.buf)
	b := append(e.param(append(e.buf, ' '), key), '=', '"')
	if kind == slog.KindString {
		e.value(start, b, v.String(), attrs.AppendParam, paramMarkEnd)
		return
	}
	e.keep(start, append(appendScalar(b, kind, v), '"')) // no scalar has anything to escape
}

// Doc implements [attrs.Visitor]: the value is the text of the document.
func (e structured) Doc(key string, doc []byte) {
	start := len(e.buf)
	e.value(start, append(e.param(append(e.buf, ' '), key), '=', '"'), string(doc), attrs.AppendParam, paramMarkEnd)
}

// Open implements [attrs.Visitor].
func (e structured) Open(name string) (mark int) {
	mark = len(e.prefix)
	var changed bool
	if e.prefix, changed = appendCleanName(e.prefix, name); changed {
		e.repaired++
	}
	e.prefix = append(e.prefix, '.')
	return mark
}

// Close implements [attrs.Visitor]. An empty group has left no trace.
func (e structured) Close(mark int, _ bool) { e.prefix = e.prefix[:mark] }

// param appends a PARAM-NAME, which has at most 32 characters. Of a longer one the outer groups go first: the inner names tell more.
func (e structured) param(dst []byte, key string) []byte {
	if len(e.prefix)+len(key) <= maxName && validName(key) {
		return append(append(dst, e.prefix...), key...)
	}
	e.repaired++
	var room [2 * maxName]byte
	name, _ := appendCleanName(room[:0], key)
	prefix := e.prefix
	for len(prefix) > 0 && len(prefix)+len(name) > maxName {
		_, prefix, _ = bytes.Cut(prefix, []byte{'.'})
	}
	dst = append(dst, prefix...)
	return append(dst, name[:min(len(name), maxName)]...)
}

// validName says whether name can be a PARAM-NAME or the part of one, apart from its length.
func validName(name string) bool {
	for i := range len(name) {
		if !nameChar(rune(name[i])) {
			return false
		}
	}
	return name != ""
}

// nameChar says whether r may stand in an SD-NAME (RFC 5424, section 6).
func nameChar(r rune) bool { return r > ' ' && r < 0x7f && r != '=' && r != ']' && r != '"' }

// appendCleanName appends name with every character that an SD-NAME cannot have replaced by an underscore; changed says that there
// were some. A name without characters becomes one.
func appendCleanName(dst []byte, name string) (out []byte, changed bool) {
	if name == "" {
		return append(dst, '_'), true
	}
	for _, r := range name {
		if !nameChar(r) {
			r, changed = '_', true
		}
		dst = append(dst, byte(r))
	}
	return dst, changed
}
