package ship

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/jitter"
)

// R58: what waits for a hook that hangs is bounded, and all of it is told in sum when the hook goes on.
func TestR58_WhatWaitsForAHookIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		records, errs := 0, 0
		h := newHooks("test", delivery.Options{
			OnError: func(error) { <-gate; errs++ },
			OnDrop:  func(d delivery.Drop) { records += d.Records },
		})
		for range 3600 {
			h.trouble(delivery.CauseRefused, errors.New("refused"))
			h.trouble(delivery.CauseDNS, errors.New("no such host"))
			time.Sleep(time.Second)
		}
		for i := range 10_000 {
			h.drop(&delivery.Drop{Records: 1, Level: slog.Level(i), Reason: delivery.ReasonQueueFull, Data: make([]byte, 10<<10)})
		}
		h.mu.Lock()
		if len(h.errs) > 10 || len(h.drops) > maxDropKinds+1 || len(h.order) != len(h.drops) || h.dataBytes > maxDropData {
			t.Errorf("waiting: %d errors, %d kinds of loss (%d), %d bytes", len(h.errs), len(h.drops), len(h.order), h.dataBytes)
		}
		h.mu.Unlock()
		close(gate)
		if err := h.finish(time.Minute); err != nil || records != 10_000 || errs < 3 || h.dataBytes != 0 {
			t.Errorf("%v, %d of 10000 told, %d errors, %d bytes", err, records, errs, h.dataBytes)
		}
	})
}

// A hook that ends its goroutine, as t.FailNow does, does not silence the others.
func TestR58_AHookMayEndItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var told []string
		tell := func(what string) {
			mu.Lock()
			told = append(told, what)
			mu.Unlock()
			runtime.Goexit()
		}
		h := newHooks("test", delivery.Options{
			OnError: func(error) { tell("error") },
			OnDrop:  func(delivery.Drop) { tell("drop") },
		})
		for range 5 {
			h.trouble(delivery.CauseRefused, errors.New("refused"))
			h.send(func() { tell("summary") })
			h.drop(&delivery.Drop{Records: 1, Reason: delivery.ReasonRejected})
			time.Sleep(2 * time.Second)
		}
		if err := h.finish(time.Minute); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		if len(told) != 15 {
			t.Errorf("told %q", told)
		}
	})
}

// R49: what links keep for their next batch holds no record alive: the budget has let go of it.
func TestR49_SpareBatchesHoldNothing(t *testing.T) {
	const budget = 8 << 20
	before := heap()
	net := newFakeNet(Limits{})
	net.send = func(_ *fakeLink, b *Batch) error {
		b.Settle(0, b.Len(), Outcome{Do: Delivered})
		return nil
	}
	e := newTestEngine(net, delivery.Options{QueueBytes: budget}, resolveTo(addrs(20)...))
	defer e.Close()
	rec := make([]byte, e.MaxRecord())
	for range 60 { // the largest ones, one after the other through every link
		if err := e.Put(slog.LevelInfo, rec); err != nil {
			t.Fatal(err)
		}
		mustFlush(t, e)
	}
	if grown := heap() - before; grown > 2*budget {
		t.Errorf("nothing is pending, and the heap has grown by %d", grown)
	}
	runtime.KeepAlive(e)
}

// Under a load that never lets up, dealing ends after a few milliseconds all the same: the dispatcher has look-ups to start.
func TestR42_DealingEndsUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newTestEngine(newFakeNet(Limits{}), delivery.Options{}, resolveTo(addrs(3)...))
		if err := e.routes[0].pool.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		e.mu.Lock()
		e.state = running // without a dispatcher: the test deals
		e.ticking = true  // so that a record does not look at the clock
		e.mu.Unlock()
		const most = 10_000
		var looks atomic.Int64
		began := time.Now()
		e.clock.now = func() time.Time { // every look at the clock costs 100 µs, and meanwhile another record comes
			n := looks.Add(1)
			if n < most {
				e.mu.Lock()
				e.enqueue(e.arena.add(slog.LevelInfo, []byte("m")))
				e.mu.Unlock()
			}
			return began.Add(time.Duration(n) * 100 * time.Microsecond)
		}
		_ = e.Put(slog.LevelInfo, []byte("m"))
		e.deal(stamp{})
		if n := looks.Swap(most); n > 100 {
			t.Errorf("dealt for %v", time.Duration(n)*100*time.Microsecond)
		}
		e.wg.Go(e.dispatch)
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if s := e.Stats(); s.Delivered != s.Accepted {
			t.Errorf("%+v", s)
		}
	})
}

// What wakes a dispatcher that has parked, and what keeps one from parking that has just looked.
func TestWaking(t *testing.T) {
	for _, x := range []struct {
		name                     string
		working, ticking, hungry bool
		level                    slog.Level
		queued                   int // bytes
		wakes, presses           bool
	}{
		{name: "the first after idleness", wakes: true},
		{name: "one of many", ticking: true},
		{name: "a good fill", ticking: true, queued: 1 << 20, wakes: true, presses: true},
		{name: "an error", ticking: true, level: slog.LevelError, wakes: true, presses: true},
		{name: "an error that has to wait for a link", ticking: true, hungry: true, level: slog.LevelError, presses: true},
		{name: "an error while it works", working: true, ticking: true, level: slog.LevelError, presses: true},
		{name: "a good fill while it works", working: true, ticking: true, queued: 1 << 20, presses: true},
		{name: "a record while it works", working: true, ticking: true},
	} {
		t.Run(x.name, func(t *testing.T) {
			e := newTestEngine(newFakeNet(Limits{}), delivery.Options{}, resolveTo(addrs(1)...))
			e.mu.Lock()
			defer e.mu.Unlock()
			e.state = running // without a dispatcher
			for e.queue.bytes < x.queued {
				e.enqueue(e.arena.add(slog.LevelInfo, make([]byte, 10_000)))
			}
			e.parked, e.ticking, e.hungry = !x.working, x.ticking, x.hungry
			if got := e.enqueue(e.arena.add(x.level, []byte("m"))); got != x.wakes {
				t.Errorf("wakes: %v", got)
			}
			if got := e.pressing(); got != x.presses {
				t.Errorf("presses: %v", got)
			}
		})
	}
}

// R51: a record is charged to the rates once, however often it comes back without having left.
func TestR51_ARecordIsChargedOnce(t *testing.T) {
	for _, o := range []delivery.Options{{RecordRate: 500}, {ByteRate: 500}} {
		t.Run(fmt.Sprintf("%d/%d", o.RecordRate, o.ByteRate), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := newFakeNet(Limits{Blind: true})
				a := addrs(2)
				net.send = func(l *fakeLink, b *Batch) error {
					if l.addr == a[0] {
						return l.requeue(b)
					}
					l.deliver(b)
					return nil
				}
				o.Backoff = jitter.Backoff{Base: time.Millisecond, Max: time.Millisecond}
				e := newTestEngine(net, o, resolveTo(a...))
				began := time.Now()
				for range 1000 {
					_ = e.Put(slog.LevelInfo, []byte("m"))
				}
				mustFlush(t, e)
				if took := time.Since(began); took < 1900*time.Millisecond || took > 2200*time.Millisecond {
					t.Errorf("1000 records at 500/s, one of two addresses refusing: %v", took)
				}
				_ = e.Close()
			})
		})
	}
}
