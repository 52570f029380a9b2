package syslog

import (
	"bytes"
	"log/slog"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/wholelog/wholelog/internal/attrs"
)

// asText writes attributes behind the text: ` group.name=value` each, with names and values quoted as slog's TextHandler does.
type asText struct{ *encoder }

// Attr implements [attrs.Visitor].
func (e asText) Attr(key string, kind slog.Kind, v slog.Value) {
	start := len(e.buf)
	b := e.name(key)
	if kind != slog.KindString {
		e.keep(start, appendScalar(b, kind, v)) // no scalar needs quotes
		return
	}
	e.string(start, b, v.String())
}

// Doc implements [attrs.Visitor]: the value is the text of the document.
func (e asText) Doc(key string, doc []byte) {
	start := len(e.buf)
	e.string(start, e.name(key), string(doc))
}

func (e asText) string(start int, b []byte, s string) {
	if s != "" && len(b)+len(s) <= e.limit && !strings.ContainsFunc(s, needsQuote) {
		e.buf = append(b, s...)
		return
	}
	e.value(start, b, s, appendQuoted, markEnd)
}

// appendQuoted is an appendFunc that writes the opening quote itself. What strconv makes of invalid UTF-8 (\xff) mends nothing.
func appendQuoted(dst []byte, s string, limit int) (out []byte, taken int, repaired bool) {
	for n := min(len(s), max(limit-len(dst)-len(`"`), 0)); ; n /= 2 {
		part := attrs.Cut(s, n)
		out = strconv.AppendQuote(dst, part)
		if out = out[:len(out)-len(`"`)]; len(out) <= limit || n == 0 {
			return out, len(part), false
		}
	}
}

// Open implements [attrs.Visitor].
func (e asText) Open(name string) (mark int) {
	mark = len(e.prefix)
	e.prefix = append(append(e.prefix, name...), '.')
	return mark
}

// Close implements [attrs.Visitor]. An empty group has left no trace.
func (e asText) Close(mark int, _ bool) { e.prefix = e.prefix[:mark] }

// name appends an attribute's name.
func (e asText) name(key string) []byte {
	b := append(e.buf, ' ')
	if len(e.prefix) == 0 && key == "" || strings.ContainsFunc(key, needsQuote) || bytes.ContainsFunc(e.prefix, needsQuote) {
		return append(strconv.AppendQuote(b, string(e.prefix)+key), '=')
	}
	return append(append(append(b, e.prefix...), key...), '=')
}

// needsQuote is slog's rule for the characters of a text that stands without quotes, with DEL as well.
func needsQuote(r rune) bool {
	return r <= ' ' || r == '=' || r == '"' || r == 0x7f || r == utf8.RuneError || r > 0x7f && (unicode.IsSpace(r) || !unicode.IsPrint(r))
}
