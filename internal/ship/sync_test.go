package ship

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/resolve"
)

// In Sync mode many callers at once lose nothing to one address that hangs: waiting for another caller's turn there is no evidence
// against it, and does not cost a record its tries at the others.
func TestSyncCallersShareASlowAddress(t *testing.T) {
	for _, callers := range []int{1, 30, 200} {
		synctest.Test(t, func(t *testing.T) {
			net := newFakeNet(Limits{})
			a := addrs(3)
			net.send = func(l *fakeLink, b *Batch) error {
				if l.addr == a[0] {
					<-l.ctx.Done()
					return l.ctx.Err()
				}
				l.deliver(b)
				return nil
			}
			e := newTestEngine(net, delivery.Options{Sync: true}, resolveTo(a...))
			var failed atomic.Int64
			var wg sync.WaitGroup
			began := time.Now()
			for range callers {
				wg.Go(func() {
					if e.Put(slog.LevelInfo, []byte("m")) != nil {
						failed.Add(1)
					}
				})
			}
			wg.Wait()
			s := e.Stats()
			balanced(t, s)
			if failed.Load() > 0 || time.Since(began) > 2*time.Second {
				t.Errorf("%d of %d lost in %v, with two of three addresses healthy", failed.Load(), callers, time.Since(began))
			}
			for _, ep := range s.Endpoints { // who hung there, not who waited
				if ep.Errors[delivery.CauseTimeout] > 1 || ep.Addr.String() != a[0] && len(ep.Errors) > 0 {
					t.Errorf("%d callers: %s has %v", callers, ep.Addr, ep.Errors)
				}
			}
			_ = e.Close()
		})
	}
}

// Close waits for the call that is under way, and says that its record is lost when it is.
func TestSyncCloseCountsWhatIsUnderWay(t *testing.T) {
	for _, answers := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			net := newFakeNet(Limits{})
			net.send = func(l *fakeLink, b *Batch) error {
				if !answers {
					return l.hang()
				}
				time.Sleep(500 * time.Millisecond)
				l.deliver(b)
				return nil
			}
			e := newTestEngine(net, delivery.Options{Sync: true, CloseTimeout: time.Second, SyncTimeout: time.Minute}, resolveTo(addrs(1)...))
			put := make(chan error, 1)
			go func() { put <- e.Put(slog.LevelInfo, []byte("m")) }()
			time.Sleep(100 * time.Millisecond)
			err := e.Close()
			s := e.Stats()
			balanced(t, s)
			if s.Pending != 0 || errors.Is(err, delivery.ErrClosed) == answers || (s.Delivered == 1) != answers {
				t.Errorf("answers=%v: Close: %v, %+v", answers, err, s)
			}
			if err := <-put; errors.Is(err, delivery.ErrClosed) == answers {
				t.Errorf("answers=%v: Put: %v", answers, err)
			}
		})
	}
}

// R55: a link that Ready or Put opened in Sync mode to an address that left meanwhile is closed, by the next call or by Close.
func TestR55_SyncClosesLinksOfAddressesThatLeft(t *testing.T) {
	for _, by := range []string{"Ready", "Put"} {
		for _, next := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/another call=%v", by, next), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					net := newFakeNet(Limits{})
					a := addrs(2)
					gate := make(chan struct{})
					net.meet = func(l *fakeLink, call string) {
						if call == "dial" && l.addr == a[0] {
							<-gate
						}
					}
					name := &answer{set: a[:1]}
					e := newTestEngine(net, delivery.Options{Sync: true}, resolve.Options{Resolver: name, Refresh: time.Second})
					if by == "Ready" {
						go func() { _ = e.Ready(context.Background()) }()
					} else {
						go func() { _ = e.Put(slog.LevelInfo, []byte("m")) }()
					}
					time.Sleep(time.Millisecond)
					name.change(nil, a[1])
					for range 5 {
						time.Sleep(time.Second)
						go func() { _ = e.Put(slog.LevelInfo, []byte("m")) }()
					}
					close(gate)
					time.Sleep(10 * time.Second)
					if next {
						_ = e.Put(slog.LevelInfo, []byte("m"))
						if open, _ := net.counts(a[0]); open != 1 {
							t.Errorf("%d links open, one address", open)
						}
					}
					err := e.Close()
					if open, _ := net.counts(a[0]); err != nil || open != 0 {
						t.Errorf("Close: %v, %d links open", err, open)
					}
				})
			})
		}
	}
}

// SyncTimeout bounds a log call though the link does not look at the time; the next address is tried within it.
func TestSyncTimeoutEndsASendThatHangs(t *testing.T) {
	for _, addresses := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			net := newFakeNet(Limits{})
			net.send = func(l *fakeLink, b *Batch) error {
				if l.addr == addrs(1)[0] {
					return l.hang()
				}
				l.deliver(b)
				return nil
			}
			e := newTestEngine(net, delivery.Options{Sync: true, SyncTimeout: time.Second}, resolveTo(addrs(addresses)...))
			began := time.Now()
			err := e.Put(slog.LevelInfo, []byte("m"))
			if took := time.Since(began); took > time.Second || (err == nil) != (addresses == 2) {
				t.Errorf("%d addresses: %v after %v", addresses, err, took)
			}
			_ = e.Close()
			balanced(t, e.Stats())
		})
	}
}

// A receiver may close idle links at all addresses at once, and Sync mode notices with the next record: no call fails for it. One that
// breaks new links too costs two tries and no more.
func TestSyncDeadLinksAtAllAddresses(t *testing.T) {
	for _, c := range []struct {
		fresh     bool // a new link works
		delivered uint64
		dials     int // of both addresses
	}{{true, 3, 3}, {false, 2, 4}} {
		synctest.Test(t, func(t *testing.T) {
			net, a := newFakeNet(Limits{}), addrs(2)
			old := make(map[*fakeLink]bool)
			broken := false
			net.send = func(l *fakeLink, b *Batch) error {
				if broken && (old[l] || !c.fresh) {
					return errLinkClosed
				}
				old[l] = true
				l.deliver(b)
				return nil
			}
			e := newTestEngine(net, delivery.Options{Sync: true, OnError: func(error) {}, OnDrop: func(delivery.Drop) {}}, resolveTo(a...))
			for i := range 3 {
				broken = i == 2
				if err := e.Put(slog.LevelInfo, []byte("m")); (err == nil) != (i < int(c.delivered)) {
					t.Errorf("record %d: %v", i, err)
				}
			}
			s := e.Stats()
			balanced(t, s)
			_, dials0 := net.counts(a[0])
			_, dials1 := net.counts(a[1])
			if s.Delivered != c.delivered || dials0+dials1 != c.dials {
				t.Errorf("%d and %d dials, %+v", dials0, dials1, s)
			}
			_ = e.Close()
		})
	}
}
