package gelf

import (
	"log/slog"
	"slices"
)

// scope is what WithAttrs and WithGroup add to every record of a handler. It does not change.
type scope struct {
	bound    []byte   // the attributes, encoded
	names    nameSet  // the names that are taken
	groups   []string // the open groups
	prefix   []byte   // and their part of names
	mendedAt int
	tally    // of bound
}

// newScope returns the scope of a handler without attributes or groups.
func newScope(sequence bool) *scope {
	if sequence {
		return &scope{names: newNameSet("seq", "run")}
	}
	return &scope{names: newNameSet()}
}

// withAttrs returns s with as bound, encoded by e.
func (s *scope) withAttrs(e *encoder, as []slog.Attr, limit int) *scope {
	e.begin(s, nil, limit)
	e.enter(s)
	e.walker.Attrs(as)
	e.leave()
	t := new(scope)
	*t = *s
	t.bound = slices.Clone(e.buf)
	t.names = e.names.clone()
	t.tally = e.tally
	return t
}

// withGroup returns s with a group opened.
func (s *scope) withGroup(name string) *scope {
	t := new(scope)
	*t = *s
	t.groups = append(slices.Clip(s.groups), name)
	var mended bool
	if t.prefix, mended = appendGroup(slices.Clip(s.prefix), name); mended && s.mendedAt == 0 {
		t.mendedAt = len(s.prefix) + 1
	}
	return t
}
