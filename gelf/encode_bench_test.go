package gelf

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/resolve"
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

// encode returns what a record of h becomes, and what was done to it.
func encode(h slog.Handler, r slog.Record) (string, tally) {
	return encodeLimit(h, r, 1<<20)
}

func encodeLimit(h slog.Handler, r slog.Record, limit int) (string, tally) {
	handler := h.(*Handler)
	e := handler.core.encoder()
	e.record(context.Background(), &handler.scope, handler.core.head, 0, &r, limit)
	return string(e.buf), e.tally
}

// testHandler is a handler with Host "h" whose records go nowhere.
func testHandler(t testing.TB, o Options) *Handler {
	t.Helper()
	if o.Host == "" {
		o.Host = "h"
	}
	h, err := NewHandler("udp://127.0.0.1:12201", &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

func BenchmarkEncode(b *testing.B) {
	r := realistic()
	h := testHandler(b, Options{})
	s := slog.NewJSONHandler(io.Discard, nil)
	ctx := context.Background()
	b.Run("gelf", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			e := h.core.encoder()
			e.record(ctx, &h.scope, h.core.head, 0, &r, 1<<20)
			h.core.release(e)
		}
	})
	b.Run("slog", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.Handle(ctx, r)
		}
	})
	bound := h.WithAttrs([]slog.Attr{slog.String("service", "checkout"), slog.Int("pid", 4711), slog.Group("build", slog.String("version", "1.2.3"), slog.String("commit", "8fa31c2"))}).(*Handler)
	one := slog.NewRecord(r.Time, r.Level, r.Message, 0)
	one.AddAttrs(slog.Int("status", 201))
	b.Run("bound", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			e := bound.core.encoder()
			e.record(ctx, &bound.scope, bound.core.head, 0, &one, 1<<20)
			bound.core.release(e)
		}
	})
}

var _ = []any{delivery.Block, resolve.PerMessage}
