package gelf

import (
	"log/slog"
	"time"

	"github.com/wholelog/wholelog/internal/severity"
)

// replaced appends the time, level and source as ReplaceAttr wants them, and returns the message. It calls ReplaceAttr in
// slog's order.
func (e *encoder) replaced(r *slog.Record) (message string) {
	if !r.Time.IsZero() {
		e.replacedTime(r.Time)
	}
	e.replacedLevel(r.Level)
	if e.config.addSource && r.PC != 0 {
		a := e.walker.Replaced(nil, slog.Any(slog.SourceKey, r.Source()))
		if src, ok := a.Value.Any().(*slog.Source); ok {
			e.source(src)
		} else if !removed(a) {
			e.Attr(slog.SourceKey, slog.KindString, e.walker.Text(a.Value))
		}
	}
	a := e.walker.Replaced(nil, slog.String(slog.MessageKey, r.Message))
	if removed(a) {
		return ""
	}
	return e.walker.Text(a.Value).String()
}

func (e *encoder) replacedTime(t time.Time) {
	a := e.walker.Replaced(nil, slog.Time(slog.TimeKey, t.Round(0)))
	switch a.Value.Kind() {
	case slog.KindTime:
		e.timestamp(a.Value.Time())
	case slog.KindInt64: // seconds since 1970, as in the example of slog.HandlerOptions
		e.timestamp(time.Unix(a.Value.Int64(), 0))
	default:
		if !removed(a) {
			e.timestamp(t) // nothing that the server could read as a time
			e.repaired++
		}
	}
}

func (e *encoder) replacedLevel(l slog.Level) {
	a := e.walker.Replaced(nil, slog.Any(slog.LevelKey, l))
	if removed(a) {
		return
	}
	switch v := a.Value.Any().(type) {
	case slog.Level:
		e.level(severity.Of(v))
		return
	case int64: // a severity, since that is what the field holds
		if v >= int64(severity.Emergency) && v <= int64(severity.Debug) {
			e.level(severity.Severity(v))
			return
		}
	case string:
		var named slog.Level
		if named.UnmarshalText([]byte(v)) == nil {
			e.level(severity.Of(named))
			return
		}
	}
	e.level(severity.Of(l)) // nothing that the server could read as a level
	e.repaired++
}

// removed returns whether ReplaceAttr took an attribute away.
func removed(a slog.Attr) bool {
	return a.Value.Kind() == slog.KindAny && a.Value.Any() == nil
}
