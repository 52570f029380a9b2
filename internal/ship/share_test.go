package ship

import (
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/jitter"
	"github.com/wholelog/wholelog/resolve"
)

// What hanging addresses hold leaves the healthy ones, however few, their part of the budget: they take everything.
func TestR46_HangingAddressesDoNotUseUpTheBudget(t *testing.T) {
	for _, tc := range []struct{ all, hanging int }{{6, 5}, {20, 1}} {
		for _, blind := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d of %d/blind=%v", tc.hanging, tc.all, blind), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					net := newFakeNet(Limits{Blind: blind})
					hanging := make(map[string]bool)
					for _, a := range addrs(tc.hanging) {
						hanging[a] = true
					}
					net.send = func(l *fakeLink, b *Batch) error {
						if hanging[l.addr] {
							return l.hang()
						}
						l.deliver(b)
						return nil
					}
					e := newTestEngine(net, delivery.Options{
						QueueBytes: 512 << 10, Overflow: delivery.DropOldest, CloseTimeout: time.Second, SendTimeout: time.Hour,
					}, resolveTo(addrs(tc.all)...))
					rec := make([]byte, 1000)
					for range 4000 {
						_ = e.Put(slog.LevelInfo, rec)
						time.Sleep(time.Millisecond)
					}
					time.Sleep(2 * time.Second)
					s := e.Stats()
					balanced(t, s)
					if s.Dropped > 0 || s.PendingBytes > 256<<10 || s.Delivered < 3800 {
						t.Errorf("delivered %d, pending %d, lost %v", s.Delivered, s.Pending, s.Reasons)
					}
					_ = e.Close()
				})
			})
		}
	}
}

// PerProcess moves on from an address that refuses, however long all of them did, to any that is back.
func TestPerProcessFindsTheAddressThatIsBack(t *testing.T) {
	for _, blind := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			net := newFakeNet(Limits{Blind: blind})
			a := addrs(3)
			var mu sync.Mutex
			down := map[string]bool{a[0]: true, a[1]: true, a[2]: true}
			last := ""
			net.send = func(l *fakeLink, b *Batch) error {
				mu.Lock()
				defer mu.Unlock()
				if last = l.addr; down[l.addr] {
					return l.requeue(b)
				}
				l.deliver(b)
				return nil
			}
			e := newTestEngine(net, delivery.Options{}, resolve.Options{Resolver: &answer{set: a}, Policy: resolve.PerProcess})
			_ = e.Put(slog.LevelInfo, []byte("m"))
			time.Sleep(5 * time.Minute)
			mu.Lock()
			for _, x := range a { // all come back but the one in use
				down[x] = x == last
			}
			mu.Unlock()
			time.Sleep(5 * time.Minute)
			if s := e.Stats(); s.Delivered != 1 {
				t.Errorf("blind=%v: not delivered to any of the two that are back: %+v", blind, s.Endpoints)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// PerProcess moves on from an address that hangs, though it never said that anything is wrong.
func TestPerProcessLeavesAnAddressThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newFakeNet(Limits{Blind: true})
		first := ""
		net.send = func(l *fakeLink, b *Batch) error {
			net.mu.Lock()
			if first == "" {
				first = l.addr
			}
			hangs := l.addr == first
			net.mu.Unlock()
			if hangs {
				return l.hang()
			}
			l.deliver(b)
			return nil
		}
		e := newTestEngine(net, delivery.Options{CloseTimeout: time.Second, SendTimeout: time.Hour},
			resolve.Options{Resolver: &answer{set: addrs(3)}, Policy: resolve.PerProcess})
		for range 1000 {
			_ = e.Put(slog.LevelInfo, make([]byte, 1000))
		}
		time.Sleep(5 * time.Second)
		if n := net.total(); n < 900 {
			t.Errorf("%d of 1000 arrived within 5 s, %d are pending", n, e.Stats().Pending)
		}
		_ = e.Close()
		balanced(t, e.Stats())
	})
}

// An address that has rested gets its share from then on, not in a burst what it missed.
func TestNoBurstAfterARest(t *testing.T) {
	for _, blind := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			net := newFakeNet(Limits{Blind: blind})
			a := addrs(3)
			failed := false
			run, longest := 0, 0 // records to the first address with none to another between them
			net.send = func(l *fakeLink, b *Batch) error {
				net.mu.Lock()
				if l.addr == a[0] && !failed {
					failed = true
					net.mu.Unlock()
					return l.requeue(b)
				}
				if l.addr == a[0] {
					run += b.Len()
				} else {
					run = 0
				}
				longest = max(longest, run)
				net.mu.Unlock()
				l.deliver(b)
				return nil
			}
			e := newTestEngine(net, delivery.Options{
				Backoff: jitter.Backoff{Base: 5 * time.Second, Max: 5 * time.Second, Mode: jitter.None},
			}, resolveTo(a...))
			for range 6000 {
				_ = e.Put(slog.LevelInfo, []byte("m"))
				time.Sleep(2 * time.Millisecond)
			}
			mustFlush(t, e)
			if n := len(net.received(a[0])); longest > 20 || n < 1000 {
				t.Errorf("blind=%v: the address that had failed got %d records, up to %d in a row", blind, n, longest)
			}
			_ = e.Close()
		})
	}
}
