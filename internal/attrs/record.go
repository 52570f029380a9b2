package attrs

import (
	"context"
	"log/slog"
	"time"

	"github.com/wholelog/wholelog/internal/severity"
)

// Enabled says whether level is at least what the Leveler of a handler's options asks for; nil asks for slog.LevelInfo, and so does
// one that panics: it must not silence the program.
func Enabled(l slog.Leveler, level slog.Level) bool { return level >= minLevel(l) }

func minLevel(l slog.Leveler) (level slog.Level) {
	if l == nil {
		return slog.LevelInfo
	}
	defer func() {
		if recover() != nil {
			level = slog.LevelInfo
		}
	}()
	return l.Level()
}

// FromContext calls the FromContext of a handler's options, with a context that is never nil. A panic in it shows as an attribute.
func FromContext(ctx context.Context, from func(context.Context) []slog.Attr) (as []slog.Attr) {
	defer func() {
		if p := recover(); p != nil {
			as = []slog.Attr{slog.String("from_context", PanicText(p))}
		}
	}()
	if ctx == nil {
		ctx = context.Background()
	}
	return from(ctx)
}

// ReplacedTime asks Replace about a record's time, which is not zero. What it returns is zero when the time was removed; repaired
// says that Replace returned something that cannot be read as a time.
func (w *Walker) ReplacedTime(t time.Time) (out time.Time, repaired bool) {
	a := w.Replaced(nil, slog.Time(slog.TimeKey, t.Round(0)))
	switch a.Value.Kind() {
	case slog.KindTime:
		return a.Value.Time(), false
	case slog.KindInt64: // seconds since 1970, as in the example of slog.HandlerOptions
		return time.Unix(a.Value.Int64(), 0), false
	}
	if removed(a) {
		return time.Time{}, false
	}
	return t, true
}

// ReplacedLevel asks Replace about a record's level, and returns the severity of what it answers and the answer itself; ok is false
// when the level was removed, repaired true when the answer cannot be read as a level.
func (w *Walker) ReplacedLevel(l slog.Level) (s severity.Severity, v slog.Value, ok, repaired bool) {
	a := w.Replaced(nil, slog.Any(slog.LevelKey, l))
	s = severity.Of(l)
	if removed(a) {
		return s, a.Value, false, false
	}
	switch v := a.Value.Any().(type) {
	case slog.Level:
		return severity.Of(v), a.Value, true, false
	case int64: // a severity, since that is what the field holds
		if v >= int64(severity.Emergency) && v <= int64(severity.Debug) {
			return severity.Severity(v), a.Value, true, false
		}
	case string:
		var named slog.Level
		if named.UnmarshalText([]byte(v)) == nil {
			return severity.Of(named), a.Value, true, false
		}
	}
	return s, a.Value, true, true
}

// ReplacedSource asks Replace about a record's source. It returns the source, or else the text that is to stand for it; neither
// when it was removed.
func (w *Walker) ReplacedSource(src *slog.Source) (out *slog.Source, text slog.Value, ok bool) {
	a := w.Replaced(nil, slog.Any(slog.SourceKey, src))
	if src, is := a.Value.Any().(*slog.Source); is {
		return src, slog.Value{}, src != nil
	}
	if removed(a) {
		return nil, slog.Value{}, false
	}
	return nil, w.Text(a.Value), true
}

// ReplacedMessage asks Replace about a record's message; ok is false when it was removed.
func (w *Walker) ReplacedMessage(message string) (out string, ok bool) {
	a := w.Replaced(nil, slog.String(slog.MessageKey, message))
	if removed(a) {
		return "", false
	}
	return w.Text(a.Value).String(), true
}

// removed returns whether Replace took an attribute away.
func removed(a slog.Attr) bool { return a.Value.Kind() == slog.KindAny && a.Value.Any() == nil }
