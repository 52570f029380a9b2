package syslog

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/wholelog/wholelog/internal/yardstick"
)

// BenchmarkEncode is the encoder alone: a ready text of 330 bytes, the same as a frame for TCP, and the yardstick's ten attributes in each
// form. The time moves on by a few microseconds from record to record, as it does under load.
func BenchmarkEncode(b *testing.B) {
	text := slog.NewRecord(time.Now(), slog.LevelInfo, strings.ReplaceAll(yardstick.Text(330, 1), "\n", " "), 0)
	attributes := yardstick.Record()
	for name, x := range map[string]struct {
		r      slog.Record
		form   Attrs
		framed bool
	}{
		"text":       {text, AttrsStructured, false},
		"framed":     {text, AttrsStructured, true},
		"structured": {attributes, AttrsStructured, false},
		"json":       {attributes, AttrsJSON, false},
		"astext":     {attributes, AttrsText, false},
	} {
		b.Run(name, func(b *testing.B) {
			h := testHandler(b, Options{Attrs: x.form})
			ctx, r := context.Background(), x.r
			var frame []byte
			b.ReportAllocs()
			for b.Loop() {
				r.Time = r.Time.Add(3 * time.Microsecond)
				e := h.core.Borrow()
				e.record(ctx, h.scope, 0, &r, h.core.limit)
				if x.framed {
					frame, _, _ = frameCounted(frame[:0], e.out)
				}
				h.core.Return(e)
			}
		})
	}
}
