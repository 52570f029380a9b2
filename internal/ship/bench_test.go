package ship

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/resolve"
)

// sink is a transport that settles everything at once.
type sink struct{}

func (sink) Limits() Limits { return Limits{} }

func (sink) Dial(context.Context, netip.AddrPort, *Meter) (Link, error) { return sinkLink{}, nil }

type sinkLink struct{}

func (sinkLink) Send(_ context.Context, b *Batch) error {
	b.Settle(0, b.Len(), Outcome{Do: Delivered})
	return nil
}
func (sinkLink) Nudge()                      {}
func (sinkLink) Drain(context.Context) error { return nil }
func (sinkLink) Close() error                { return nil }
func (sinkLink) Gone() <-chan struct{}       { return nil }

// BenchmarkPut is the hand-off of one 500-byte record, against copying it under a mutex into as much memory as the queue may take:
// what a record costs has much to do with whether the memory it goes to is in a cache.
func BenchmarkPut(b *testing.B) {
	rec := bytes.Repeat([]byte("x"), 500)
	for _, budget := range []int{1 << 20, 16 << 20} {
		b.Run(fmt.Sprintf("mutex_copy_%dMiB", budget>>20), func(b *testing.B) {
			b.ReportAllocs()
			var mu sync.Mutex
			buf := make([]byte, 0, budget)
			for b.Loop() {
				mu.Lock()
				if cap(buf)-len(buf) < len(rec) {
					buf = buf[:0]
				}
				buf = append(buf, rec...)
				mu.Unlock()
			}
		})
		b.Run(fmt.Sprintf("put_%dMiB", budget>>20), func(b *testing.B) {
			b.ReportAllocs()
			e := newTestEngine(sink{}, delivery.Options{QueueBytes: budget, Overflow: delivery.DropNewest}, resolveTo(addrs(3)...))
			defer e.Close()
			for b.Loop() {
				_ = e.Put(slog.LevelInfo, rec)
			}
			s := e.Stats()
			b.ReportMetric(float64(s.Dropped)/float64(s.Accepted), "dropped/op")
		})
	}
}

// BenchmarkPick is the choice of a link for one record, by weight and health, against an atomic load and a counter: of three addresses,
// of which one has half a weight and one is degraded, and of thousands.
func BenchmarkPick(b *testing.B) {
	for _, n := range []int{3, 3000} {
		b.Run(fmt.Sprintf("of_%d", n), func(b *testing.B) {
			set := make(weighted)
			for i := range n {
				set[fmt.Sprintf("10.0.%d.%d:12201", i>>8, i&255)] = uint16(50 + 50*(i%2))
			}
			e := newTestEngine(sink{}, delivery.Options{}, resolve.Options{Resolver: set})
			defer e.Close()
			if err := e.Ready(context.Background()); err != nil {
				b.Fatal(err)
			}
			rt, r := e.routes[0], new(Rec)
			rt.pool.Observe(rt.pool.Snapshot().Endpoints[0].Addr, false, delivery.CauseBusy)
			e.links.Lock()
			defer e.links.Unlock()
			rt.follow()
			now := e.clock.stamp()
			rt.lineUp(now)
			b.ReportAllocs()
			for b.Loop() {
				if s, _ := rt.pick(r, now); s == nil {
					b.Fatal("none")
				}
			}
		})
	}
}

// BenchmarkStats is a snapshot of the counters of eight addresses with three causes each, against a copy of the same maps and rows.
func BenchmarkStats(b *testing.B) {
	e := newTestEngine(sink{}, delivery.Options{}, resolveTo(addrs(8)...))
	defer e.Close()
	if err := e.Ready(context.Background()); err != nil {
		b.Fatal(err)
	}
	e.links.Lock()
	for _, ep := range e.routes[0].eps {
		for _, c := range []delivery.Cause{delivery.CauseRefused, delivery.CauseReset, delivery.CausePeerClosed} {
			ep.errors[c] = 1
		}
	}
	e.links.Unlock()
	for _, reason := range []delivery.Reason{delivery.ReasonRejected, delivery.ReasonTooLarge} {
		_ = e.Refuse(slog.LevelInfo, 1, reason, nil)
	}
	full := e.Stats()
	b.Run("snapshot", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = e.Stats()
		}
	})
	b.Run("copy", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s := full
			s.Reasons = maps.Clone(full.Reasons)
			s.Endpoints = slices.Clone(full.Endpoints)
			for i := range s.Endpoints {
				s.Endpoints[i].Errors = maps.Clone(full.Endpoints[i].Errors)
			}
		}
	})
}
