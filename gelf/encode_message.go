package gelf

import (
	"slices"
	"strings"

	"github.com/wholelog/wholelog/internal/attrs"
)

// message appends short_message, which is the first line of s that is not blank, and full_message when s has more.
func (e *encoder) message(s string) {
	// Nearly all texts are one line without anything to trim, escape or cut. (A line end is not clean.)
	if b := append(e.buf, `,`+shortKey+`:"`...); !mayBeBlank(s) && s[len(s)-1] > ' ' && len(s) < e.limit-len(b) && attrs.Clean(s) {
		e.buf = append(append(b, s...), '"')
		return
	}
	s = trim(s)
	short := firstLine(s)
	full := ""
	switch {
	case short == "":
		short = placeholder
		e.repaired++
	case len(short) < len(s):
		full = s
	}
	// A long text would have the buffer copied each time it doubles. One part in 16 is for what is escaped.
	e.buf = slices.Grow(e.buf, max(min(len(short)+len(full)+(len(short)+len(full))/16+tailRoom, e.limit-len(e.buf)), 0))
	whole := e.limit
	if room := whole - len(e.buf); full != "" && len(short)+len(full) > room {
		e.limit = len(e.buf) + room/4 // the first line must not take the room of the rest
	}
	bad := e.messageText(shortKey, short)
	e.limit = whole
	if full != "" {
		bad = e.messageText(fullKey, full) || bad
	}
	if bad {
		e.repaired++
	}
}

// messageText appends as much of s as there is room for, and returns whether it had invalid UTF-8.
func (e *encoder) messageText(key, s string) (bad bool) {
	b := append(append(append(e.buf, ','), key...), ':', '"')
	b, taken, bad := attrs.AppendText(b, s, e.limit)
	if taken > 0 {
		e.buf = append(b, '"')
	}
	if taken < len(s) {
		e.cut += len(s) - taken
		e.over = true
	}
	return bad
}

// trim removes what the server trims, which is everything up to the space at both ends.
func trim(s string) string {
	for s != "" && s[0] <= ' ' {
		s = s[1:]
	}
	for s != "" && s[len(s)-1] <= ' ' {
		s = s[:len(s)-1]
	}
	return s
}

// firstLine returns the first line of s that Graylog does not take for blank, trimmed.
func firstLine(s string) string {
	for line := range strings.SplitSeq(s, "\n") {
		if line = trim(line); !blank(line) {
			return line
		}
	}
	return ""
}
