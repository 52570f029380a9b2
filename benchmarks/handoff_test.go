package benchmarks

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/pool"
	"github.com/wholelog/wholelog/internal/ship"
	"github.com/wholelog/wholelog/resolve"
)

// settler is a transport and its link that settles everything at once.
type settler struct{}

func (settler) Limits() ship.Limits { return ship.Limits{} }

func (settler) Dial(context.Context, netip.AddrPort, *ship.Meter) (ship.Link, error) {
	return settler{}, nil
}

func (settler) Send(_ context.Context, b *ship.Batch) error {
	b.Settle(0, b.Len(), ship.Outcome{Do: ship.Delivered})
	return nil
}
func (settler) Nudge()                      {}
func (settler) Drain(context.Context) error { return nil }
func (settler) Close() error                { return nil }
func (settler) Gone() <-chan struct{}       { return nil }

// BenchmarkHandoff is the way of a 500-byte record from many goroutines to one consumer, copied, waiting when 16 MiB are full, until
// the last one has arrived.
func BenchmarkHandoff(b *testing.B) {
	rec := bytes.Repeat([]byte("x"), 500)
	for _, producers := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("put_%d", producers), func(b *testing.B) {
			e := ship.New(ship.Config{
				Name:    "benchmark",
				Main:    ship.Route{Transport: settler{}, Pool: pool.New(pool.Config{Options: resolve.Options{Resolver: resolve.Static("127.0.0.1:9")}})},
				Options: delivery.Options{MaxBlock: time.Minute},
			})
			defer e.Close()
			b.ReportAllocs()
			b.ResetTimer()
			produce(b.N, producers, func() { _ = e.Put(slog.LevelInfo, rec) })
			if err := e.Flush(context.Background()); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			if s := e.Stats(); s.Delivered < uint64(b.N) {
				b.Fatalf("%+v", s)
			}
		})
		b.Run(fmt.Sprintf("chan_pool_%d", producers), func(b *testing.B) { chanPool(b, producers, rec) })
		b.Run(fmt.Sprintf("mutex_slice_%d", producers), func(b *testing.B) { mutexSlice(b, producers, rec) })
	}
}

// produce calls put n times from many goroutines.
func produce(n, producers int, put func()) {
	var wg sync.WaitGroup
	for p := range producers {
		share := n / producers
		if p < n%producers {
			share++
		}
		wg.Go(func() {
			for range share {
				put()
			}
		})
	}
	wg.Wait()
}

// chanPool is the usual way: a channel of buffers from a sync.Pool.
func chanPool(b *testing.B, producers int, rec []byte) {
	buffers := sync.Pool{New: func() any { s := make([]byte, 0, 1024); return &s }}
	queue := make(chan *[]byte, 16<<20/len(rec))
	done := make(chan int)
	go func() {
		n := 0
		for s := range queue {
			n += len(*s)
			buffers.Put(s)
		}
		done <- n
	}()
	b.ReportAllocs()
	b.ResetTimer()
	produce(b.N, producers, func() {
		s := buffers.Get().(*[]byte)
		*s = append((*s)[:0], rec...)
		queue <- s
	})
	close(queue)
	if n := <-done; n != b.N*len(rec) {
		b.Fatal(n)
	}
	b.StopTimer()
}

// mutexSlice is a slice of pooled buffers under a mutex; the consumer takes all at once.
func mutexSlice(b *testing.B, producers int, rec []byte) {
	buffers := sync.Pool{New: func() any { s := make([]byte, 0, 1024); return &s }}
	var (
		mu     sync.Mutex
		change = sync.NewCond(&mu)
		queue  []*[]byte
		over   bool
		most   = 16 << 20 / len(rec)
		done   = make(chan int)
	)
	go func() {
		n := 0
		var batch []*[]byte
		for {
			mu.Lock()
			for len(queue) == 0 && !over {
				change.Wait()
			}
			batch, queue = queue, batch[:0]
			change.Broadcast()
			mu.Unlock()
			if len(batch) == 0 {
				done <- n
				return
			}
			for _, s := range batch {
				n += len(*s)
				buffers.Put(s)
			}
		}
	}()
	b.ReportAllocs()
	b.ResetTimer()
	produce(b.N, producers, func() {
		s := buffers.Get().(*[]byte)
		*s = append((*s)[:0], rec...)
		mu.Lock()
		for len(queue) >= most {
			change.Wait()
		}
		queue = append(queue, s)
		if len(queue) == 1 {
			change.Broadcast()
		}
		mu.Unlock()
	})
	mu.Lock()
	over = true
	change.Broadcast()
	mu.Unlock()
	if n := <-done; n != b.N*len(rec) {
		b.Fatal(n)
	}
	b.StopTimer()
}
