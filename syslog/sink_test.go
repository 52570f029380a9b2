package syslog

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/wholelog/wholelog/internal/fake/syslogd"
	"github.com/wholelog/wholelog/internal/ship"
	"github.com/wholelog/wholelog/resolve"
)

// sink is a transport and its only link: it keeps every record and says that it was delivered.
type sink struct {
	mu      sync.Mutex
	records []string
	discard bool
}

func (s *sink) Dial(context.Context, netip.AddrPort, *ship.Meter) (ship.Link, error) { return s, nil }

func (s *sink) Limits() ship.Limits { return ship.Limits{} }

func (s *sink) Send(_ context.Context, b *ship.Batch) error {
	if !s.discard {
		s.mu.Lock()
		for i := range b.Len() {
			s.records = append(s.records, string(b.At(i).Bytes()))
		}
		s.mu.Unlock()
	}
	b.Settle(0, b.Len(), ship.Outcome{Do: ship.Delivered})
	return nil
}

func (s *sink) Nudge()                      {}
func (s *sink) Drain(context.Context) error { return nil }
func (s *sink) Close() error                { return nil }
func (s *sink) Gone() <-chan struct{}       { return nil }

// sent flushes h and returns what arrived since the last call.
func (s *sink) sent(t testing.TB, h *Handler) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := h.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	records := s.records
	s.records = nil
	return records
}

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
func sinkHandler(t testing.TB, o Options) (*Handler, *sink) {
	t.Helper()
	c, err := newConfig(target{scheme: "tcp", host: "127.0.0.1", port: "514"}, named(o))
	if err != nil {
		t.Fatal(err)
	}
	s := new(sink)
	h := newHandler(c, s, resolve.Options{Resolver: resolve.Static("127.0.0.1:514")}, o.Delivery)
	t.Cleanup(func() { h.Close() })
	return h, s
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
	e := handler.core.encoder()
	defer handler.core.release(e)
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
