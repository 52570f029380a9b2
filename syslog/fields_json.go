package syslog

import (
	"log/slog"

	"github.com/wholelog/wholelog/internal/attrs"
)

// asJSON writes attributes as members of the object that begins with the message: `,"name":value` each, groups as objects.
type asJSON struct{ *encoder }

// Attr implements [attrs.Visitor].
func (e asJSON) Attr(key string, kind slog.Kind, v slog.Value) {
	start := len(e.buf)
	b := e.name(key)
	switch {
	case kind == slog.KindString:
		e.value(start, append(b, '"'), v.String(), attrs.AppendJSONLine, markEnd)
		return
	case kind == slog.KindTime:
		b = append(appendScalar(append(b, '"'), kind, v), '"')
	case kind == slog.KindFloat64:
		f := v.Float64()
		var finite bool
		if b, finite = attrs.AppendFloat(b, f); !finite { // JSON has no number for it
			b = append(append(append(b, '"'), attrs.FloatText(f)...), '"')
			e.repaired++
		}
	default:
		b = appendScalar(b, kind, v)
	}
	e.keep(start, b)
}

// Doc implements [attrs.Visitor]. The document becomes a part of ours, as a whole or not at all.
func (e asJSON) Doc(key string, doc []byte) {
	start := len(e.buf)
	b, bad := attrs.AppendDocLine(e.name(key), doc)
	if bad {
		e.repaired++
	}
	e.keep(start, b)
}

// Open implements [attrs.Visitor].
func (e asJSON) Open(name string) (mark int) {
	mark = len(e.buf)
	var bad bool
	if e.buf, bad = appendGroupStart(e.buf, name, e.depth, e.first(), !e.own && e.config.reserved(name)); bad {
		e.repaired++
	}
	e.depth++
	return mark
}

// Close implements [attrs.Visitor]. A group that is empty, or of which nothing found room, vanishes.
func (e asJSON) Close(mark int, _ bool) {
	e.depth--
	if e.first() {
		e.buf = e.buf[:mark]
		return
	}
	e.buf = append(e.buf, '}')
}

// name appends a member's name. One of the object itself that is the record's own gets an underscore at its end.
func (e asJSON) name(key string) []byte {
	b, bad := appendMember(e.buf, key, e.depth, e.first(), !e.own && e.config.reserved(key))
	if bad {
		e.repaired++
	}
	return b
}

// first says whether an object was opened and has no member yet.
func (e asJSON) first() bool { return len(e.buf) > 0 && e.buf[len(e.buf)-1] == '{' }

// appendMember appends a member's name with the comma in front, which the first member of an object lacks.
func appendMember(dst []byte, name string, depth int, first, reserved bool) (out []byte, bad bool) {
	if !first {
		dst = append(dst, ',')
	}
	dst, _, bad = attrs.AppendJSONLine(append(dst, '"'), name, len(dst)+8*len(name)+1)
	if depth == 0 && reserved {
		dst, bad = append(dst, '_'), true
	}
	return append(dst, '"', ':'), bad
}

// appendGroupStart appends what opens a group.
func appendGroupStart(dst []byte, name string, depth int, first, reserved bool) (out []byte, bad bool) {
	dst, bad = appendMember(dst, name, depth, first, reserved)
	return append(dst, '{'), bad
}

// reserved says whether a member of this name is the record's own.
func (c *config) reserved(name string) bool {
	switch name {
	case "msg", "level":
		return true
	case slog.SourceKey:
		return c.addSource
	case "seq", "run":
		return c.sequence && c.format == RFC3164
	}
	return false
}
