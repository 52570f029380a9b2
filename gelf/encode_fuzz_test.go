package gelf

import (
	"encoding/json"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/wholelog/wholelog/delivery"
)

// Whatever a record holds, the receiver keeps the message and every field of it.
func FuzzEncode(f *testing.F) {
	f.Add("message", "key", "value", int64(1), 1.5, uint64(2), int64(0), uint16(1))
	f.Add("two\nlines", "id", "", int64(math.MinInt64), math.Inf(1), uint64(math.MaxUint64), int64(-62135596800), uint16(1))
	f.Add("\xff\x00\u2003", "a.b", " \t", int64(0), math.NaN(), uint64(1<<63), int64(1625488496012), uint16(10))
	f.Add("\"\x01", "gl2_x", "€", int64(9), 1e300, uint64(0), int64(1<<50), uint16(11_000))
	f.Add("long \n", "k", "\x02", int64(1), 0.0, uint64(0), int64(1), uint16(40_000))
	// The smallest queue has the smallest limit.
	root := testHandler(f, Options{Delivery: delivery.Options{QueueBytes: 512 << 10}})
	limit := root.core.MaxRecord()
	f.Fuzz(func(t *testing.T, message, key, text string, i int64, x float64, u uint64, ms int64, times uint16) {
		message, text = repeated(message, times), repeated(text, times)
		h := root.WithAttrs([]slog.Attr{slog.String(key, text)}).WithGroup(text)
		r := slog.NewRecord(time.UnixMilli(ms), slog.Level(i%30), message, 0)
		r.AddAttrs(
			slog.Int64(key, i), slog.Float64(text, x), slog.Bool(key, i > 0), slog.Time("t", time.Unix(i, 0)),
			slog.Group(key, slog.Uint64(text, u), slog.String("s", message), slog.Duration("d", time.Duration(i))),
			slog.Any("m", map[string]any{key: text, "x": x, "u": u}), slog.Any("n", []string{message}), slog.Any("nil", nil),
		)
		got, tally := encodeLimit(h, r, limit)
		attributes := 11
		if tally.over {
			attributes = 0 // some of them did not fit
		}
		doc := keepsAll(t, got, attributes)
		if !json.Valid([]byte(got)) || !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return r < ' ' }) {
			t.Fatalf("%q", got)
		}
		if len(got) > limit {
			t.Fatalf("%d bytes, limit %d", len(got), limit)
		}
		if (tally.cut > 0) != strings.Contains(got, `,"_truncated":`) || doc.Fields["message"] == "" {
			t.Fatalf("%+v, %s", tally, got)
		}
	})
}

// repeated makes large texts of small inputs, which fuzzing handles better.
func repeated(s string, times uint16) string {
	return strings.Repeat(s, min(int(times), 300_000/max(len(s), 1)))
}
