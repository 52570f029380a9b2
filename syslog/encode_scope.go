package syslog

import (
	"log/slog"
	"slices"
)

// scope is what WithAttrs and WithGroup add to every record of a handler. It does not change.
type scope struct {
	bound  []byte   // the attributes, encoded
	depth  int      // the objects that are open in bound; with JSON only
	groups []string // the open groups
	prefix []byte   // their part of names; with JSON what opens those of them that are not open in bound
	opens  int      // how many these are; with JSON only
	mended int      // names of groups in prefix that were mended: they count where something stands in these groups
	tally           // of bound
}

// enter makes what follows stand in the groups of s.
func (e *encoder) enter(s *scope) {
	e.before = len(e.buf)
	if e.config.attrs == AttrsJSON {
		e.buf = append(e.buf, s.prefix...)
		e.depth += s.opens
	} else {
		e.prefix = append(e.prefix[:0], s.prefix...)
	}
	e.entered = len(e.buf)
	e.walker.Begin(s.groups)
}

// leave ends what enter began. Groups without content leave no trace.
func (e *encoder) leave(s *scope) {
	switch {
	case len(e.buf) > e.entered:
		e.repaired += s.mended
	case e.entered > e.before:
		e.buf = e.buf[:e.before]
		e.depth -= s.opens
	}
	if e.walker.Exhausted() {
		e.leaveOut(len(e.buf), 1) // at least
	}
}

// withAttrs returns s with as bound, encoded by e into at most limit bytes.
func (s *scope) withAttrs(e *encoder, as []slog.Attr, limit int) *scope {
	e.buf, e.depth, e.limit, e.tally = append(e.buf[:0], s.bound...), s.depth, limit, s.tally
	e.enter(s)
	e.walker.Attrs(as)
	e.leave(s)
	t := new(scope)
	*t = *s
	t.tally = e.tally
	if len(e.buf) == len(s.bound) {
		return t // the groups stay to be opened
	}
	t.bound, t.depth, t.mended = slices.Clone(e.buf), e.depth, 0
	if e.config.attrs == AttrsJSON {
		t.prefix, t.opens = nil, 0
	}
	return t
}

// withGroup returns s with a group opened.
func (s *scope) withGroup(c *config, name string) *scope {
	t := new(scope)
	*t = *s
	t.groups = append(slices.Clip(s.groups), name)
	prefix := slices.Clip(s.prefix)
	switch c.attrs {
	case AttrsJSON:
		var bad bool
		t.prefix, bad = appendGroupStart(prefix, name, s.depth+s.opens, len(prefix) > 0, c.reserved(name))
		if bad {
			t.mended++
		}
		t.opens++
	case AttrsText:
		t.prefix = append(append(prefix, name...), '.')
	default:
		var changed bool
		if t.prefix, changed = appendCleanName(prefix, name); changed {
			t.mended++
		}
		t.prefix = append(t.prefix, '.')
	}
	return t
}
