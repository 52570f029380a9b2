package ship

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/delivery"
)

// stalled never settles anything until its links are closed.
func stalled(limits Limits) *fakeNet {
	net := newFakeNet(limits)
	net.send = func(l *fakeLink, _ *Batch) error { <-l.closed; return errLinkClosed }
	return net
}

// R48: without blocking, a log call never waits; with blocking it waits MaxBlock at most, and after a wait in vain calls fail at
// once until a quarter of the budget is free.
func TestR48_LogCallsDoNotWaitForTheNetwork(t *testing.T) {
	rec := bytes.Repeat([]byte("x"), 1000)
	for _, policy := range []delivery.Overflow{delivery.DropNewest, delivery.DropOldest} {
		synctest.Test(t, func(t *testing.T) {
			e := newTestEngine(stalled(Limits{}), delivery.Options{QueueBytes: 512 << 10, Overflow: policy}, resolveTo(addrs(3)...))
			began := time.Now()
			for range 100_000 {
				_ = e.Put(slog.LevelInfo, rec)
			}
			s := e.Stats()
			balanced(t, s)
			if s.Waits != 0 || !time.Now().Equal(began) || s.Dropped == 0 || s.Pending == 0 {
				t.Fatalf("%v: %+v after %v", policy, s, time.Since(began))
			}
			_ = e.Close()
			balanced(t, e.Stats())
		})
	}
}

func TestR48_BlockIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := bytes.Repeat([]byte("x"), 1000)
		e := newTestEngine(stalled(Limits{}), delivery.Options{QueueBytes: 512 << 10, MaxBlock: 50 * time.Millisecond}, resolveTo(addrs(1)...))
		began := time.Now()
		var err error
		for err == nil {
			err = e.Put(slog.LevelInfo, rec)
		}
		var d delivery.Drop
		if !errors.As(err, &d) || d.Reason != delivery.ReasonQueueFull || !errors.Is(err, delivery.ErrQueueFull) {
			t.Fatalf("error %v", err)
		}
		if took := time.Since(began); took != 50*time.Millisecond {
			t.Fatalf("waited %v", took)
		}
		for range 1000 { // no second wait
			if err := e.Put(slog.LevelInfo, rec); err == nil {
				t.Fatal("accepted without room")
			}
		}
		s := e.Stats()
		if s.Waits != 1 || s.WaitTime != 50*time.Millisecond || time.Since(began) != 50*time.Millisecond {
			t.Fatalf("%+v", s)
		}
		_ = e.Close()
		balanced(t, e.Stats())
	})
}

// A caller that waits goes on as soon as there is room, and calls are accepted again once a quarter is free.
func TestBlockGoesOnWhenThereIsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := bytes.Repeat([]byte("x"), 1000)
		net := newFakeNet(Limits{})
		release := make(chan struct{})
		net.send = func(l *fakeLink, b *Batch) error {
			select {
			case <-release:
				l.deliver(b)
				return nil
			case <-l.closed:
				return errLinkClosed
			}
		}
		e := newTestEngine(net, delivery.Options{QueueBytes: 512 << 10, MaxBlock: time.Second}, resolveTo(addrs(1)...))
		accepted := 0
		for e.Put(slog.LevelInfo, rec) == nil {
			accepted++
		}
		time.AfterFunc(100*time.Millisecond, func() { close(release) })
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		began := time.Now()
		for range 2000 {
			if err := e.Put(slog.LevelInfo, rec); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took >= time.Second {
			t.Fatalf("took %v", took)
		}
		mustFlush(t, e)
		_ = e.Close()
		if s := e.Stats(); net.total() != accepted+2000 || s.Dropped != 1 {
			t.Fatalf("arrived %d of %d, %+v", net.total(), accepted+2000, s)
		}
	})
}

// Close ends the wait of a blocked caller; the record is counted as dropped because of it.
func TestCloseEndsABlockedPut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := bytes.Repeat([]byte("x"), 1000)
		e := newTestEngine(stalled(Limits{}), delivery.Options{QueueBytes: 512 << 10, MaxBlock: time.Hour}, resolveTo(addrs(1)...))
		result := make(chan error)
		go func() {
			for {
				if err := e.Put(slog.LevelInfo, rec); err != nil {
					result <- err
					return
				}
			}
		}()
		synctest.Wait()
		go func() { _ = e.Close() }()
		err := <-result
		var d delivery.Drop
		if !errors.Is(err, delivery.ErrClosed) || !errors.As(err, &d) || d.Reason != delivery.ReasonClosed {
			t.Fatalf("%v", err)
		}
		_ = e.Close()
		balanced(t, e.Stats())
	})
}

// DropOldest keeps the newest records, and always finds something to evict.
func TestDropOldestKeepsTheNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newFakeNet(Limits{})
		open := make(chan struct{})
		net.send = func(l *fakeLink, b *Batch) error {
			select {
			case <-open:
				l.deliver(b)
				return nil
			case <-l.closed:
				return errLinkClosed
			}
		}
		e := newTestEngine(net, delivery.Options{QueueBytes: 512 << 10, Overflow: delivery.DropOldest}, resolveTo(addrs(1)...))
		pad := bytes.Repeat([]byte("x"), 995)
		for i := range 5000 {
			if err := e.Put(slog.LevelInfo, append(fmt.Appendf(nil, "%05d", i), pad...)); err != nil {
				t.Fatal(err)
			}
			if i == 100 {
				synctest.Wait() // some are on their way
			}
		}
		close(open)
		mustFlush(t, e)
		_ = e.Close()
		got := net.received(addrs(1)[0])
		s := e.Stats()
		balanced(t, s)
		if !slices.IsSorted(got) || got[len(got)-1][:5] != "04999" || s.Reasons[delivery.ReasonEvicted] != s.Dropped || s.Dropped == 0 {
			t.Fatalf("last %s, %+v", got[len(got)-1][:5], s)
		}
		if len(got) < 200 {
			t.Fatalf("only %d of what fits were kept", len(got))
		}
	})
}

// Records larger than the limit are refused at once; the largest legal one passes, alone in its segment.
func TestTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newFakeNet(Limits{})
		e := newTestEngine(net, delivery.Options{QueueBytes: 1 << 20}, resolveTo(addrs(1)...))
		if e.MaxRecord() != 256<<10 {
			t.Fatalf("limit %d", e.MaxRecord())
		}
		if err := e.Put(slog.LevelInfo, make([]byte, 256<<10)); err != nil {
			t.Fatal(err)
		}
		err := e.Put(slog.LevelInfo, make([]byte, 256<<10+1))
		var d delivery.Drop
		if !errors.Is(err, delivery.ErrTooLarge) || !errors.As(err, &d) || d.Bytes != 256<<10+1 {
			t.Fatalf("%v", err)
		}
		mustFlush(t, e)
		_ = e.Close()
		balanced(t, e.Stats())
		if net.total() != 1 {
			t.Fatalf("arrived %d", net.total())
		}
	})
	if e := newTestEngine(sink{}, delivery.Options{QueueBytes: 1 << 30}, resolveTo(addrs(1)...)); e.MaxRecord() != 8_388_607 {
		t.Fatalf("limit of a large budget: %d", e.MaxRecord())
	}
}

// R49: a dead destination costs the budget and no more, in memory and in goroutines.
func TestR49_MemoryIsBounded(t *testing.T) {
	const budget = 4 << 20
	rec := bytes.Repeat([]byte("x"), 1000)
	for _, policy := range []delivery.Overflow{delivery.DropNewest, delivery.DropOldest} {
		synctest.Test(t, func(t *testing.T) {
			before, goroutines := heap(), inBubble()
			e := newTestEngine(stalled(Limits{}), delivery.Options{
				QueueBytes: budget, Overflow: policy, CloseTimeout: 50 * time.Millisecond, OnDrop: func(delivery.Drop) {},
			}, resolveTo(addrs(3)...))
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					for range 15_000 { // 60 MB in all
						_ = e.Put(slog.LevelInfo, rec)
					}
				})
			}
			wg.Wait()
			synctest.Wait() // what is about to end has ended
			grown := heap() - before
			if limit := int64(budget + budget/2); grown > limit {
				t.Errorf("%v: heap grew by %d, budget %d", policy, grown, budget)
			}
			if n := inBubble() - goroutines; n < 1 || n > 8 {
				t.Errorf("%v: %d goroutines more", policy, n)
			}
			e.mu.Lock()
			if e.arena.used+e.arena.spareCost > budget {
				t.Errorf("%v: charged %d of %d", policy, e.arena.used+e.arena.spareCost, budget)
			}
			e.mu.Unlock()
			_ = e.Close()
			balanced(t, e.Stats())
		})
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A log call allocates nothing, whether the record is taken or the queue is full.
func TestPutAllocatesNothing(t *testing.T) {
	rec := bytes.Repeat([]byte("x"), 500)
	e := newTestEngine(sink{}, delivery.Options{Overflow: delivery.DropNewest}, resolveTo(addrs(3)...))
	defer e.Close()
	for range 50_000 { // segments and batches are in circulation
		_ = e.Put(slog.LevelInfo, rec)
	}
	_ = e.Flush(context.Background())
	if n := testing.AllocsPerRun(20_000, func() { _ = e.Put(slog.LevelInfo, rec) }); n != 0 {
		t.Errorf("delivering: %v allocations", n)
	}
	net := stalled(Limits{})
	full := newTestEngine(net, delivery.Options{QueueBytes: 512 << 10, Overflow: delivery.DropNewest, CloseTimeout: time.Millisecond}, resolveTo(addrs(1)...))
	defer full.Close()
	for full.Put(slog.LevelInfo, rec) == nil {
	}
	if n := testing.AllocsPerRun(20_000, func() { _ = full.Put(slog.LevelInfo, rec) }); n != 0 {
		t.Errorf("full: %v allocations", n)
	}
}
