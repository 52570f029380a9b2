package syslog

import (
	"encoding/json"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"
)

// Whatever a record holds, a strict receiver takes the message, and with JSON every value of it.
func FuzzEncode(f *testing.F) {
	f.Add("message", "key", "value", int64(1), 1.5, uint64(2), int64(0), uint16(1), uint8(0))
	f.Add("two\nlines", "id", "", int64(math.MinInt64), math.Inf(1), uint64(math.MaxUint64), int64(-62135596800), uint16(1), uint8(1))
	f.Add("\xff\x00\u2003", "a.b", " \t]", int64(0), math.NaN(), uint64(1<<63), int64(1625488496012), uint16(10), uint8(2))
	f.Add("\"\x01\u2028\x7f", "msg", "€\\", int64(9), 1e300, uint64(0), int64(1<<50), uint16(1000), uint8(1))
	f.Add("long \n", "k=\"]", "\x02", int64(1), 0.0, uint64(0), int64(1), uint16(40_000), uint8(5))
	f.Add("12 angry men", "", "\u0085", int64(1), 0.0, uint64(0), int64(1), uint16(1), uint8(9))
	f.Add("\ufeff\ufeff", "k", "\ufeff", int64(1), 0.0, uint64(0), int64(1), uint16(1), uint8(0))
	f.Fuzz(func(t *testing.T, message, key, text string, i int64, x float64, u uint64, ms int64, times uint16, o uint8) {
		message, text = repeated(message, times), repeated(text, times)
		options := Options{Attrs: Attrs(o % 3), Format: Format(o / 3 % 2), Sequence: o&8 != 0, MaxSize: 600 + int(u%7000)}
		h := testHandler(t, options)
		defer h.Close()
		with := h.WithAttrs([]slog.Attr{slog.String(key, text)}).WithGroup(text).WithGroup(key)
		r := slog.NewRecord(time.UnixMilli(ms), slog.Level(i%30), message, 0)
		r.AddAttrs(
			slog.Int64(key, i), slog.Float64(text, x), slog.Bool(key, i > 0), slog.Time("t", time.Unix(i, 0)),
			slog.Group(key, slog.Uint64(text, u), slog.String("s", message), slog.Duration("d", time.Duration(i))),
			slog.Any("m", map[string]any{key: text, "x": x, "u": u}), slog.Any("n", []string{message}), slog.Any("nil", nil),
		)
		got, tally := encodeContext(t.Context(), with, r, uint64(o&8)*u)
		m := parsed(t, got)
		if len(got) > options.MaxSize {
			t.Fatalf("%d bytes, limit %d", len(got), options.MaxSize)
		}
		if (tally.cut > 0) != strings.Contains(got, markStart) && !strings.Contains(message+key+text, markStart) {
			t.Fatalf("%+v, %s", tally, got)
		}
		if m.BOM && options.Format == RFC5424 {
			t.Fatalf("a byte order mark that nobody asked for: %q", got)
		}
		if doc, ok := strings.CutPrefix(m.Text, "@cee:"); options.Attrs == AttrsJSON && (!ok || !json.Valid([]byte(doc))) {
			t.Fatalf("%s", got)
		}
	})
}

// repeated makes large texts of small inputs, which fuzzing handles better.
func repeated(s string, times uint16) string {
	return strings.Repeat(s, min(int(times), 100_000/max(len(s), 1)))
}
