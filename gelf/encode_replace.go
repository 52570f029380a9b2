package gelf

import "log/slog"

// replaced appends the time, level and source as ReplaceAttr wants them, and returns the message. It calls ReplaceAttr in
// slog's order.
func (e *encoder) replaced(r *slog.Record) (message string) {
	if !r.Time.IsZero() {
		t, bad := e.walker.ReplacedTime(r.Time)
		e.mended(bad)
		e.timestamp(t)
	}
	if s, _, ok, bad := e.walker.ReplacedLevel(r.Level); ok {
		e.mended(bad)
		e.level(s)
	}
	if e.config.addSource && r.PC != 0 {
		if src, text, ok := e.walker.ReplacedSource(r.Source()); ok && src != nil {
			e.source(src)
		} else if ok {
			e.Attr(slog.SourceKey, slog.KindString, text)
		}
	}
	message, _ = e.walker.ReplacedMessage(r.Message)
	return message
}

// mended counts something that the server could not have read.
func (e *encoder) mended(bad bool) {
	if bad {
		e.repaired++
	}
}
