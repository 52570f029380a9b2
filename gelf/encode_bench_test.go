package gelf

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/wholelog/wholelog/delivery"
)

// realistic is a record as services log it: a message of 80 bytes and ten attributes, a group among them.
func realistic() slog.Record {
	r := slog.NewRecord(time.Date(2026, 3, 1, 12, 30, 45, 123456789, time.UTC), slog.LevelInfo,
		"request completed: the upstream answered within its budget, nothing was retried.", 0)
	r.AddAttrs(
		slog.String("service", "checkout"),
		slog.String("method", "POST"),
		slog.String("path", "/api/v1/orders/8731/payments"),
		slog.Int("status", 201),
		slog.Duration("elapsed", 18*time.Millisecond),
		slog.Int64("bytes_in", 1834),
		slog.Float64("cpu_ms", 3.25),
		slog.String("trace_id", "4bf92f3577b34da6a3ce929d0e0e4736"),
		slog.Group("user", slog.String("id", "u-19283"), slog.String("plan", "business")),
		slog.String("remote", "203.0.113.17:51882"),
	)
	return r
}

// BenchmarkEncode is the encoder alone, BenchmarkHandle with the hand-off to the queue; "slog" is the standard library's JSON
// handler on the same record, to compare with in one run.
func BenchmarkEncode(b *testing.B) {
	ctx := context.Background()
	h := testHandler(b, Options{})
	encode := func(h *Handler, r *slog.Record) func(*testing.B) {
		return func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				e := h.core.encoder()
				e.record(ctx, h.scope, h.core.head, 0, r, 1<<20)
				h.core.release(e)
			}
		}
	}
	r := realistic()
	b.Run("gelf", encode(h, &r))
	b.Run("slog", benchmarkSlog)
	bound := h.WithAttrs([]slog.Attr{
		slog.String("service", "checkout"), slog.Int("pid", 4711),
		slog.Group("build", slog.String("version", "1.2.3"), slog.String("commit", "8fa31c2")),
	}).(*Handler)
	one := slog.NewRecord(r.Time, r.Level, r.Message, 0)
	one.AddAttrs(slog.Int("status", 201))
	b.Run("bound", encode(bound, &one))
}

func BenchmarkHandle(b *testing.B) {
	ctx := context.Background()
	b.Run("gelf", func(b *testing.B) {
		h, s := sinkHandler(b, Options{Delivery: delivery.Options{Overflow: delivery.DropNewest}})
		s.discard = true
		r := realistic()
		b.ReportAllocs()
		for b.Loop() {
			h.Handle(ctx, r)
		}
	})
	b.Run("slog", benchmarkSlog)
}

func benchmarkSlog(b *testing.B) {
	h := slog.NewJSONHandler(io.Discard, nil)
	r := realistic()
	b.ReportAllocs()
	for b.Loop() {
		h.Handle(context.Background(), r)
	}
}

func TestEncodeDoesNotAllocate(t *testing.T) {
	h := testHandler(t, Options{Sequence: true})
	scope := h.WithAttrs([]slog.Attr{slog.String("service", "shop")}).WithGroup("g").(*Handler).scope
	r := realistic()
	e := h.core.encoder()
	if n := testing.AllocsPerRun(1000, func() {
		e.record(context.Background(), scope, h.core.head, 1, &r, 1<<20)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
