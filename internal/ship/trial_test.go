package ship

import (
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/jitter"
)

// The pool is told of open connections, of which a blind transport has none.
func TestConnected(t *testing.T) {
	for _, blind := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			net := newFakeNet(Limits{Blind: blind})
			a := addrs(2)
			net.setRefuse(a[1], errors.New("refused"))
			e := newTestEngine(net, delivery.Options{}, resolveTo(a...))
			rt := e.routes[0]
			if rt.connected(addrPort(a[0])) {
				t.Error("connected before the first record")
			}
			steadily(e, 100, time.Second)
			if got := [2]bool{rt.connected(addrPort(a[0])), rt.connected(addrPort(a[1]))}; got != [2]bool{!blind, false} {
				t.Errorf("blind=%v: connected %v", blind, got)
			}
			_ = e.Close()
			if rt.connected(addrPort(a[0])) {
				t.Error("connected after Close")
			}
		})
	}
}

// After an ejection one record is on trial: a receiver that is still bad gets no more than that each time, and the others' records do
// not wait for it.
func TestOneRecordIsOnTrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newFakeNet(Limits{BatchRecords: 10})
		a := addrs(3)
		sick := time.Now()
		spoilt := 0
		net.send = func(l *fakeLink, b *Batch) error {
			if l.addr == a[0] && time.Since(sick) > time.Second {
				net.mu.Lock()
				if time.Since(sick) > 10*time.Second {
					spoilt += b.Len()
				}
				net.mu.Unlock()
				time.Sleep(50 * time.Millisecond)
				return l.requeue(b)
			}
			l.deliver(b)
			return nil
		}
		e := newTestEngine(net, delivery.Options{Backoff: jitter.Backoff{Base: time.Millisecond, Max: time.Millisecond}}, resolveTo(a...))
		steadily(e, 1000, 100*time.Second)
		mustFlush(t, e)
		if spoilt > 10 || spoilt < 2 {
			t.Errorf("%d records met the bad receiver in 90 s", spoilt)
		}
		if s := e.Stats(); s.Waits != 0 || s.Delivered != 100_000 {
			t.Errorf("%+v", s)
		}
		_ = e.Close()
	})
}

// R76: of 200 handlers that lose a destination at the same instant, no more than 60 make their first retry within any tenth of the
// first backoff step.
func TestR76_FirstRetriesAreSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const handlers, step = 200, 250 * time.Millisecond
		var mu sync.Mutex
		var retries []time.Time
		var engines []*Engine
		for range handlers {
			net := newFakeNet(Limits{})
			net.setRefuse(addrs(1)[0], errors.New("refused"))
			dials := 0
			net.meet = func(_ *fakeLink, call string) {
				if call != "dial" {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				if dials++; dials == 2 {
					retries = append(retries, time.Now())
				}
			}
			engines = append(engines, newTestEngine(net, delivery.Options{CloseTimeout: time.Millisecond}, resolveTo(addrs(1)...)))
		}
		for _, e := range engines {
			_ = e.Put(slog.LevelInfo, []byte("m"))
		}
		time.Sleep(10 * time.Second)
		mu.Lock()
		slices.SortFunc(retries, time.Time.Compare)
		mu.Unlock()
		if len(retries) != handlers {
			t.Fatalf("%d of %d retried", len(retries), handlers)
		}
		for i := range retries {
			if i+60 < len(retries) && retries[i+60].Sub(retries[i]) < step/10 {
				t.Errorf("61 retries within %v", retries[i+60].Sub(retries[i]))
				break
			}
		}
		for _, e := range engines {
			_ = e.Close()
		}
	})
}
