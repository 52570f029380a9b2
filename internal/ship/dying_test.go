package ship

import (
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/jitter"
)

// How a peer that accepts connections can die of each of them.
const (
	closesAtOnce  = "closes at once"                       // before a byte was sent
	resetsAtFirst = "resets at the first bytes"            // which nobody acknowledged
	closesSoon    = "acknowledges the first bytes, closes" // a balancer without servers: its kernel took them, nobody read them
	neverAnswers  = "reads the first bytes, then closes"   // with an acknowledgement of its own missing
)

var waysToDie = []string{closesAtOnce, resetsAtFirst, closesSoon, neverAnswers}

// dyingLinks are streams; to the addresses that dying names each ends in one of those ways. What a kernel acknowledged and nobody read
// is noted as lost.
func dyingLinks(how string, dying func(addr string) bool) *fakeNet {
	net := newFakeNet(Limits{Faint: how != neverAnswers, Window: 256 << 10})
	net.meet = func(l *fakeLink, call string) {
		if call == "gone" && how == closesAtOnce && dying(l.addr) {
			l.leave()
		}
	}
	net.send = func(l *fakeLink, b *Batch) error {
		if !dying(l.addr) {
			l.deliver(b)
			return nil
		}
		switch how {
		case resetsAtFirst:
			return errors.New("connection reset by peer")
		case closesSoon:
			l.note(net.lost, b, 0, b.Len())
			l.confirm(b, 0, b.Len())
		}
		l.acks.Go(func() {
			time.Sleep(5 * time.Millisecond)
			l.leave()
		})
		return nil
	}
	return net
}

// unread is how many records were acknowledged and nobody read.
func (n *fakeNet) unread() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.lost)
}

// A peer that accepts every connection and dies of it is dialled ever more rarely, as one that refuses is, whatever it acknowledged
// before. It costs few records, and when it is well all others arrive soon.
func TestAPeerThatDiesOfEveryConnection(t *testing.T) {
	for _, how := range waysToDie {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var well atomic.Bool
				net := dyingLinks(how, func(string) bool { return !well.Load() })
				a := addrs(1)
				e := newTestEngine(net, delivery.Options{}, resolveTo(a...))
				defer e.Close()
				const minutes = 10
				for i := range minutes * 60 {
					_ = e.Put(slog.LevelInfo, fmt.Appendf(nil, "%d", i))
					time.Sleep(time.Second)
				}
				s := e.Stats()
				balanced(t, s)
				// Delays of 0.25, 0.5, 1, … 30 s, of which half is waited on average.
				if _, dials := net.counts(a[0]); dials < 20 || dials > 90 {
					t.Errorf("dialled %d times in %d minutes", dials, minutes)
				}
				unread := net.unread()
				gone := unread + int(s.Reasons[delivery.ReasonTriesExhausted])
				if gone > 90 || s.Dropped != s.Reasons[delivery.ReasonTriesExhausted] || s.Dropped > 10 {
					t.Errorf("%d acknowledged and not read, %+v", unread, s)
				}
				well.Store(true)
				_ = e.Put(slog.LevelInfo, []byte("well"))
				time.Sleep(31 * time.Second)
				s = e.Stats()
				if balanced(t, s); s.Pending != 0 || net.total() != minutes*60+1-gone {
					t.Errorf("%d arrived, %d were lost before, %+v", net.total(), gone, s)
				}
			})
		})
	}
}

// The growing delay ends with real success: what breaks once a minute is dialled again within the first step each time.
func TestRealSuccessEndsTheDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const step = 100 * time.Millisecond
		net := newFakeNet(Limits{Faint: true})
		var last *fakeLink
		net.meet = func(l *fakeLink, call string) {
			if call == "dial" {
				last = l
			}
		}
		e := newTestEngine(net, delivery.Options{Backoff: jitter.Backoff{Base: step, Mode: jitter.None}}, resolveTo(addrs(1)...))
		defer e.Close()
		for i := range 6 {
			steadily(e, 10, 59*time.Second)
			last.leave()
			synctest.Wait()
			_ = e.Put(slog.LevelInfo, []byte("m"))
			time.Sleep(step + 50*time.Millisecond)
			if s := e.Stats(); s.Pending != 0 || s.Resent != 0 {
				t.Fatalf("break %d: %+v", i, s)
			}
			time.Sleep(time.Second - step)
		}
	})
}

// Nor does a peer that closes idle connections count as ill, though each link delivered only when it was young.
func TestIdleConnectionsThatAreClosedProveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newFakeNet(Limits{Faint: true})
		a := addrs(3)
		net.send = func(l *fakeLink, b *Batch) error {
			l.deliver(b)
			l.acks.Go(func() {
				select {
				case <-time.After(5 * time.Second):
					l.leave()
				case <-l.closed:
				}
			})
			return nil
		}
		e := newTestEngine(net, delivery.Options{}, resolveTo(a...))
		defer e.Close()
		for range 30 {
			for range 30 {
				_ = e.Put(slog.LevelInfo, []byte("m"))
			}
			time.Sleep(10 * time.Second)
			if s := states(e); s != "up up up" && s != "unknown unknown unknown" {
				t.Fatal(s)
			}
		}
		for _, addr := range a {
			if n := len(net.received(addr)); n != 300 {
				t.Errorf("%s got %d of 900", addr, n)
			}
		}
		for _, ep := range e.routes[0].eps {
			if ep.failures > 1 {
				t.Errorf("%v: %d failures in a row", ep.addr, ep.failures)
			}
		}
	})
}

// Among others such an address counts as down. Its share goes to them, and comes back when it is well.
func TestR46_APeerThatDiesOfEveryConnectionIsDown(t *testing.T) {
	for _, how := range waysToDie {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := addrs(3)
				var well atomic.Bool
				net := dyingLinks(how, func(addr string) bool { return !well.Load() && addr == a[0] })
				e := newTestEngine(net, delivery.Options{}, resolveTo(a...))
				defer e.Close()
				steadily(e, 30, 10*time.Second) // three failures, and the delays between them
				down := 0
				for range 30 {
					steadily(e, 30, 5*time.Second)
					if e.Stats().Endpoints[0].State == "down" {
						down++
					}
				}
				s := e.Stats()
				balanced(t, s)
				// It is tried after each ejection of 10 to 30 s.
				if _, dials := net.counts(a[0]); dials > 25 || down < 15 {
					t.Errorf("dialled %d times in 150 s, down %d times of 30", dials, down)
				}
				if n := net.unread(); s.Dropped != 0 || s.Waits != 0 || n > 300 {
					t.Errorf("%d acknowledged and not read, %+v", n, s)
				}
				well.Store(true)
				steadily(e, 30, 33*time.Second)
				before := len(net.received(a[0]))
				steadily(e, 30, 30*time.Second)
				mustFlush(t, e)
				if n := len(net.received(a[0])) - before; n < 298 || n > 302 {
					t.Errorf("well again, it gets %d of 900", n)
				}
			})
		})
	}
}
