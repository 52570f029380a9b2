package syslog

import (
	"log/slog"
	"strconv"

	"github.com/wholelog/wholelog/internal/attrs"
)

// appendScalar appends a scalar that is not a string, as it is in all forms but for the quotes that JSON wants around some of them.
func appendScalar(dst []byte, kind slog.Kind, v slog.Value) []byte {
	switch kind {
	case slog.KindInt64:
		return attrs.AppendInt(dst, v.Int64())
	case slog.KindUint64:
		return attrs.AppendUint(dst, v.Uint64())
	case slog.KindFloat64:
		if b, finite := attrs.AppendFloat(dst, v.Float64()); finite {
			return b
		}
		return append(dst, attrs.FloatText(v.Float64())...)
	case slog.KindBool:
		return strconv.AppendBool(dst, v.Bool())
	case slog.KindDuration:
		return attrs.AppendInt(dst, int64(v.Duration()))
	}
	return attrs.AppendTime(dst, v.Time())
}

// keep takes b, which is buf with an attribute from start on, if there is room for it.
func (e *encoder) keep(start int, b []byte) {
	if len(b)+e.depth > e.limit {
		e.buf = b
		e.leaveOut(start, len(b)-start)
		return
	}
	e.buf = b
}

// leaveOut takes back an attribute, of size bytes, that the message has no room for.
func (e *encoder) leaveOut(start, size int) {
	e.buf = e.buf[:start]
	e.cut += size
	e.untold += size
}

// value completes the attribute that begins at start in b with the text s, whose opening quote is there already. What does not fit is
// cut, and the mark in the value tells.
func (e *encoder) value(start int, b []byte, s string, escaped appendFunc, end string) {
	limit := e.limit - e.depth - len(`"`)
	out, taken, bad := escaped(b, s, limit)
	if taken < len(s) {
		if limit-len(b) < minCut {
			e.buf = b
			e.leaveOut(start, len(b)-start+len(s))
			return
		}
		out, taken, bad = escaped(b, s, limit-markRoom)
		out = appendMark(out, len(s)-taken, end)
		e.cut += len(s) - taken
	}
	if bad {
		e.repaired++
	}
	e.keep(start, append(out, '"'))
}
