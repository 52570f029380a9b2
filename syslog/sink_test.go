package syslog

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/wholelog/wholelog/internal/fake/syslogd"
	"github.com/wholelog/wholelog/internal/handlertest"
)

// named gives o the names that the tests' messages have.
func named(o Options) Options {
	for _, x := range []struct {
		field *string
		name  string
	}{{&o.Hostname, "h"}, {&o.AppName, "app"}, {&o.ProcID, "7"}} {
		if *x.field == "" {
			*x.field = x.name
		}
	}
	return o
}

// sinkHandler returns a handler over a real engine and a sink, for messages as tcp has them.
func sinkHandler(t testing.TB, o Options) (*Handler, *handlertest.Sink) {
	t.Helper()
	s := new(handlertest.Sink)
	return overSink(t, o, s), s
}

func overSink(t testing.TB, o Options, s *handlertest.Sink) *Handler {
	t.Helper()
	c, err := newConfig(target{scheme: "tcp", host: "127.0.0.1", port: "514"}, named(o))
	if err != nil {
		t.Fatal(err)
	}
	h := newHandler(c, s.Route(), o.Delivery)
	t.Cleanup(func() { h.Close() })
	return h
}

// testHandler is a handler that is only asked to encode.
func testHandler(t testing.TB, o Options) *Handler {
	h, _ := sinkHandler(t, o)
	return h
}

// encode returns what a record of h becomes, and what was done to it.
func encode(h slog.Handler, r slog.Record) (string, tally) {
	return encodeContext(context.Background(), h, r, 0)
}

func encodeContext(ctx context.Context, h slog.Handler, r slog.Record, seq uint64) (string, tally) {
	handler := h.(*Handler)
	e := handler.core.Borrow()
	defer handler.core.Return(e)
	e.record(ctx, handler.scope, seq, &r, handler.core.limit)
	return string(e.out), e.tally
}

var noon = time.Date(2026, 3, 1, 12, 30, 45, 123456789, time.UTC)

// head is what messages of info begin with.
const head = "<134>1 2026-03-01T12:30:45.123456Z h app 7 - "

// info is a record of a known time.
func info(message string, as ...slog.Attr) slog.Record {
	r := slog.NewRecord(noon, slog.LevelInfo, message, 0)
	r.AddAttrs(as...)
	return r
}

// parsed takes a message apart, and fails when a strict receiver would not take it.
func parsed(t testing.TB, message string) syslogd.Message {
	t.Helper()
	m, err := syslogd.Parse(message)
	if err != nil {
		t.Fatalf("%v: %.2000q", err, message)
	}
	return m
}
