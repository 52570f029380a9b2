package handlertest

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/wholelog/wholelog/internal/pool"
	"github.com/wholelog/wholelog/internal/ship"
	"github.com/wholelog/wholelog/resolve"
)

// Sink is a transport and its only link: it keeps every record and says that it was delivered. The zero value is ready.
type Sink struct {
	Discard bool  // it keeps nothing
	Dead    error // what every dial ends with

	mu      sync.Mutex
	records []string
}

// Route is the way to the sink, which is at 127.0.0.1:9.
func (s *Sink) Route() ship.Route {
	at := resolve.Options{Resolver: resolve.Static("127.0.0.1:9")}
	return ship.Route{Transport: s, Pool: pool.New(pool.Config{Options: at})}
}

// Dial implements [ship.Transport].
func (s *Sink) Dial(context.Context, netip.AddrPort, *ship.Meter) (ship.Link, error) {
	return s, s.Dead
}

// Limits implements [ship.Transport].
func (s *Sink) Limits() ship.Limits { return ship.Limits{} }

// Send implements [ship.Link].
func (s *Sink) Send(_ context.Context, b *ship.Batch) error {
	if !s.Discard {
		s.mu.Lock()
		for i := range b.Len() {
			s.records = append(s.records, string(b.At(i).Bytes()))
		}
		s.mu.Unlock()
	}
	b.Settle(0, b.Len(), ship.Outcome{Do: ship.Delivered})
	return nil
}

// Nudge implements [ship.Link].
func (s *Sink) Nudge() {}

// Drain implements [ship.Link].
func (s *Sink) Drain(context.Context) error { return nil }

// Close implements [ship.Link].
func (s *Sink) Close() error { return nil }

// Gone implements [ship.Link].
func (s *Sink) Gone() <-chan struct{} { return nil }

// Sent flushes h, whose records go to s, and returns what arrived since the last call.
func (s *Sink) Sent(t testing.TB, h interface{ Flush(context.Context) error }) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := h.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	records := slices.Clone(s.records)
	s.records = nil
	return records
}
