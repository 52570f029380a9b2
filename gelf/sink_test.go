package gelf

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/wholelog/wholelog/internal/ship"
	"github.com/wholelog/wholelog/resolve"
)

// sink is a transport and its only link: it keeps every record and says that it was delivered.
type sink struct {
	mu      sync.Mutex
	records []string
	discard bool
	dead    error // what every dial ends with
}

func (s *sink) Dial(context.Context, netip.AddrPort, *ship.Meter) (ship.Link, error) {
	return s, s.dead
}

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
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
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

// sinkHandler returns a handler with Host "h" over a real engine and a sink.
func sinkHandler(t testing.TB, o Options) (*Handler, *sink) {
	t.Helper()
	o.Host = "h"
	c, err := newConfig(target{scheme: "udp", host: "127.0.0.1", port: "12201"}, o)
	if err != nil {
		t.Fatal(err)
	}
	s := new(sink)
	main := newRoute(s, resolve.Options{Resolver: resolve.Static("127.0.0.1:12201")}, o.Delivery)
	h := newHandler(c, main, ship.Route{}, o.Delivery)
	t.Cleanup(func() { h.Close() })
	return h, s
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
	e := handler.core.encoder()
	defer handler.core.release(e)
	e.record(ctx, handler.scope, handler.core.head, 0, &r, limit)
	return string(e.buf), e.tally
}

// testHandler is a handler with Host "h" that is only asked to encode.
func testHandler(t testing.TB, o Options) *Handler {
	h, _ := sinkHandler(t, o)
	return h
}

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
