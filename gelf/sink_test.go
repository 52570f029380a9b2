package gelf

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/wholelog/wholelog/internal/handlertest"
	"github.com/wholelog/wholelog/internal/ship"
)

// sinkHandler returns a handler with Host "h" over a real engine and a sink.
func sinkHandler(t testing.TB, o Options) (*Handler, *handlertest.Sink) {
	t.Helper()
	s := new(handlertest.Sink)
	return overSink(t, o, s), s
}

func overSink(t testing.TB, o Options, s *handlertest.Sink) *Handler {
	t.Helper()
	o.Host = "h"
	c, err := newConfig(target{scheme: "udp", host: "127.0.0.1", port: "12201"}, o)
	if err != nil {
		t.Fatal(err)
	}
	h := newHandler(c, s.Route(), ship.Route{}, o.Delivery)
	t.Cleanup(func() { h.Close() })
	return h
}

// encode returns what a record of h becomes, and what was done to it.
func encode(h slog.Handler, r slog.Record) (string, tally) {
	return encodeLimit(h, r, 1<<20)
}

func encodeLimit(h slog.Handler, r slog.Record, limit int) (string, tally) {
	return encodeContext(context.Background(), h, r, limit)
}

func encodeContext(ctx context.Context, h slog.Handler, r slog.Record, limit int) (string, tally) {
	handler := h.(*Handler)
	e := handler.core.Borrow()
	defer handler.core.Return(e)
	e.record(ctx, handler.scope, handler.core.head, 0, &r, limit)
	return string(e.buf), e.tally
}

// testHandler is a handler with Host "h" that is only asked to encode.
func testHandler(t testing.TB, o Options) *Handler {
	h, _ := sinkHandler(t, o)
	return h
}

// noContext is a nil context, which handlers accept (R65).
var noContext context.Context

// info is a record without a time.
func info(message string, as ...slog.Attr) slog.Record {
	r := slog.NewRecord(time.Time{}, slog.LevelInfo, message, 0)
	r.AddAttrs(as...)
	return r
}

// fields returns the part of a message of info that its attributes became.
func fields(t testing.TB, message string) string {
	t.Helper()
	const before, after = `{"version":"1.1","host":"h","level":6`, `,"short_message":"m"}`
	if len(message) < len(before)+len(after) || message[:len(before)] != before || message[len(message)-len(after):] != after {
		t.Fatalf("unexpected frame: %s", message)
	}
	return message[len(before) : len(message)-len(after)]
}
