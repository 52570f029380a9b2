package gelf

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/yardstick"
)

// BenchmarkEncode is the encoder alone, BenchmarkHandle with the hand-off to the queue; "slog" is the standard library's JSON
// handler on the same record, to compare with in one run.
func BenchmarkEncode(b *testing.B) {
	ctx := context.Background()
	h := testHandler(b, Options{})
	encode := func(h *Handler, r *slog.Record) func(*testing.B) {
		return func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				e := h.core.Borrow()
				e.record(ctx, h.scope, h.core.head, 0, r, 1<<20)
				h.core.Return(e)
			}
		}
	}
	r := yardstick.Record()
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
	b.Run("put", func(b *testing.B) {
		h, s := sinkHandler(b, Options{Delivery: delivery.Options{Overflow: delivery.DropNewest}})
		s.Discard = true
		r := yardstick.Record()
		b.ReportAllocs()
		for b.Loop() {
			h.Handle(ctx, r)
		}
	})
	b.Run("dead", func(b *testing.B) { // what a log call costs when nothing leaves and the queue is full
		h, s := sinkHandler(b, Options{Delivery: delivery.Options{Overflow: delivery.DropNewest, CloseTimeout: time.Millisecond}})
		s.Dead = errors.New("connection refused")
		r := yardstick.Record()
		for h.Handle(ctx, r) == nil {
		}
		b.ReportAllocs()
		for b.Loop() {
			h.Handle(ctx, r)
		}
	})
	b.Run("slog", benchmarkSlog)
}

// BenchmarkCall is a whole log call through slog, over a sink: with the attributes made in the call, and bound to the logger before.
func BenchmarkCall(b *testing.B) {
	ctx := context.Background()
	h, s := sinkHandler(b, Options{Delivery: delivery.Options{Overflow: delivery.DropNewest}})
	s.Discard = true
	b.Run("unbound", func(b *testing.B) {
		log := slog.New(h)
		b.ReportAllocs()
		for b.Loop() {
			log.LogAttrs(ctx, slog.LevelInfo, yardstick.Message, yardstick.Attrs()...)
		}
	})
	b.Run("bound", func(b *testing.B) {
		log := slog.New(h.WithAttrs(yardstick.Attrs()))
		b.ReportAllocs()
		for b.Loop() {
			log.LogAttrs(ctx, slog.LevelInfo, yardstick.Message)
		}
	})
}

func benchmarkSlog(b *testing.B) {
	h := slog.NewJSONHandler(io.Discard, nil)
	r := yardstick.Record()
	b.ReportAllocs()
	for b.Loop() {
		h.Handle(context.Background(), r)
	}
}

func TestEncodeDoesNotAllocate(t *testing.T) {
	h := testHandler(t, Options{Sequence: true})
	scope := h.WithAttrs([]slog.Attr{slog.String("service", "shop")}).WithGroup("g").(*Handler).scope
	r := yardstick.Record()
	e := h.core.Borrow()
	if n := testing.AllocsPerRun(1000, func() {
		e.record(context.Background(), scope, h.core.head, 1, &r, 1<<20)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
