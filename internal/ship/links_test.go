package ship

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/jitter"
	"github.com/wholelog/wholelog/resolve"
)

// A link that is full and makes no progress is passed over after 100 ms; the others take all, and when it recovers it gets its
// share again without a burst.
func TestStuckLinkIsPassedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newFakeNet(Limits{BatchRecords: 4})
		a := addrs(3)
		var mu sync.Mutex
		heal := make(chan struct{})
		net.send = func(l *fakeLink, b *Batch) error {
			mu.Lock()
			wait := heal
			mu.Unlock()
			if l.addr == a[0] {
				select {
				case <-wait:
				case <-l.closed:
					return errLinkClosed
				}
			}
			l.deliver(b)
			return nil
		}
		e := newTestEngine(net, delivery.Options{}, resolveTo(a...))
		defer e.Close()
		for range 300 {
			_ = e.Put(slog.LevelInfo, []byte("m"))
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Second)
		if n := len(net.received(a[1])) + len(net.received(a[2])); n < 300-8 || n != net.total() {
			t.Fatalf("the others got %d", n)
		}
		close(heal)
		time.Sleep(time.Second)
		before := [3]int{len(net.received(a[0])), len(net.received(a[1])), len(net.received(a[2]))}
		for range 300 {
			_ = e.Put(slog.LevelInfo, []byte("m"))
			time.Sleep(time.Millisecond)
		}
		mustFlush(t, e)
		for i := range a {
			if n := len(net.received(a[i])) - before[i]; n < 99 || n > 101 {
				t.Errorf("after recovery address %d got %d of 300", i, n)
			}
		}
	})
}

// A link that is slow but moves is waited for: the shares stay equal.
func TestSlowLinkIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newFakeNet(Limits{BatchRecords: 4})
		a := addrs(2)
		net.send = func(l *fakeLink, b *Batch) error {
			if l.addr == a[0] {
				time.Sleep(50 * time.Millisecond)
			}
			l.deliver(b)
			return nil
		}
		e := newTestEngine(net, delivery.Options{}, resolveTo(a...))
		defer e.Close()
		for range 400 {
			_ = e.Put(slog.LevelInfo, []byte("m"))
		}
		mustFlush(t, e)
		if n, m := len(net.received(a[0])), len(net.received(a[1])); n != 200 || m != 200 {
			t.Fatalf("shares %d and %d", n, m)
		}
	})
}

// A link that acknowledges later settles out of order; Flush waits for exactly what was before it, and asks by Nudge.
func TestAcknowledgedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newFakeNet(Limits{Window: 1 << 20, BatchRecords: 10})
		var mu sync.Mutex
		var open []*Batch
		net.send = func(l *fakeLink, b *Batch) error {
			l.take(b, 0, b.Len())
			mu.Lock()
			open = append(open, b)
			mu.Unlock()
			return nil
		}
		e := newTestEngine(net, delivery.Options{}, resolveTo(addrs(1)...))
		put := func() (batches []*Batch) { // usually one
			mu.Lock()
			before := len(open)
			mu.Unlock()
			for range 10 {
				_ = e.Put(slog.LevelInfo, []byte("m"))
			}
			time.Sleep(10 * time.Millisecond)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			return open[before:len(open):len(open)]
		}
		ack := func(batches []*Batch) {
			for _, b := range batches {
				b.Settle(0, b.Len(), Outcome{Do: Delivered})
			}
		}
		first, second := put(), put()
		flushed := make(chan error, 1)
		go func() { flushed <- e.Flush(context.Background()) }()
		synctest.Wait()
		third := put() // after the flush began: not its business
		net.mu.Lock()
		if net.nudges == 0 {
			t.Error("nobody was asked for outcomes")
		}
		net.mu.Unlock()
		ack(second)
		synctest.Wait()
		select {
		case <-flushed:
			t.Fatal("flushed before the first batch was acknowledged")
		default:
		}
		ack(first)
		if err := <-flushed; err != nil {
			t.Fatal(err)
		}
		if s := e.Stats(); s.Pending != 10 || s.Delivered != 20 {
			t.Fatalf("%+v", s)
		}
		ack(third)
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// What a link had not settled when its peer went away is sent elsewhere; what it settles too late is not heard.
func TestGoneTakesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newFakeNet(Limits{Window: 1 << 20})
		a := addrs(2)
		var first *fakeLink
		var held *Batch
		net.send = func(l *fakeLink, b *Batch) error {
			if first == nil {
				first, held = l, b
				l.take(b, 0, b.Len())
				return nil
			}
			if l == first {
				held = b
				return nil
			}
			l.deliver(b)
			return nil
		}
		e := newTestEngine(net, delivery.Options{}, resolveTo(a...))
		_ = e.Put(slog.LevelInfo, []byte("one"))
		synctest.Wait()
		first.leave()
		mustFlush(t, e)
		held.Settle(0, held.Len(), Outcome{Do: Drop, Reason: delivery.ReasonRejected})
		_ = e.Close()
		s := e.Stats()
		balanced(t, s)
		if s.Delivered != 1 || s.Resent != 1 || net.total() != 2 {
			t.Fatalf("arrived %d, %+v", net.total(), s)
		}
		for _, ep := range s.Endpoints {
			if ep.Addr.String() == first.addr && (ep.Errors[delivery.CausePeerClosed] != 1 || ep.LastError == "") {
				t.Fatalf("%+v", ep)
			}
		}
	})
}

// R42: when the answer changes, new records go to the new address, and the old link is drained, not cut.
func TestR42_AnswerChanges(t *testing.T) {
	for _, sync := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			net := newFakeNet(Limits{})
			a := addrs(2)
			name := &answer{set: a[:1]}
			e := newTestEngine(net, delivery.Options{Sync: sync}, resolve.Options{Resolver: name, Refresh: time.Second})
			defer e.Close()
			put := func(n int) {
				for range n {
					_ = e.Put(slog.LevelInfo, []byte("m"))
				}
				mustFlush(t, e)
			}
			put(10)
			name.change(nil, a[1])
			for range 20 { // a service that logs now and then
				time.Sleep(200 * time.Millisecond)
				put(1)
			}
			before := len(net.received(a[0]))
			put(10)
			if len(net.received(a[0])) != before || net.drains != 1 || net.open != 1 {
				t.Fatalf("sync=%v: old address got %d more, drained %d, open %d", sync, len(net.received(a[0]))-before, net.drains, net.open)
			}
			if st := e.Stats().Endpoints; len(st) != 2 || st[0].State == "gone" || st[1].State != "gone" {
				t.Fatalf("%+v", st)
			}
		})
	}
}

// PerProcess stays on one address until it is gone or fails again and again; handlers begin at different ones.
func TestPerProcess(t *testing.T) {
	starts := make(map[string]int)
	for range 60 {
		synctest.Test(t, func(t *testing.T) {
			net := newFakeNet(Limits{})
			a := addrs(3)
			e := newTestEngine(net, delivery.Options{Backoff: jitter.Backoff{Max: time.Second}},
				resolve.Options{Resolver: &answer{set: a}, Policy: resolve.PerProcess})
			defer e.Close()
			put := func() string {
				was := make(map[string]int)
				for _, x := range a {
					was[x] = len(net.received(x))
				}
				for range 30 {
					_ = e.Put(slog.LevelInfo, []byte("m"))
				}
				mustFlush(t, e)
				to := ""
				for _, x := range a {
					if n := len(net.received(x)) - was[x]; n == 30 {
						to = x
					} else if n != 0 {
						t.Fatalf("%s got %d", x, n)
					}
				}
				return to
			}
			one := put()
			starts[one]++
			if two := put(); two != one {
				t.Fatalf("moved from %s to %s", one, two)
			}
			net.mu.Lock()
			net.send = func(l *fakeLink, b *Batch) error {
				if l.addr == one {
					return errors.New("dead")
				}
				l.deliver(b)
				return nil
			}
			net.refuse[one] = errors.New("connection refused")
			net.mu.Unlock()
			three := put()
			if three == one {
				t.Fatal("stayed on a dead address")
			}
			if four := put(); four != three {
				t.Fatalf("moved from %s to %s", three, four)
			}
		})
	}
	if len(starts) != 3 {
		t.Fatalf("60 handlers began at %v", starts)
	}
}

// A dial that hangs holds nobody up: what was dealt to it goes elsewhere.
func TestSlowDial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := addrs(2)
		net := &slowDial{fakeNet: newFakeNet(Limits{}), addr: a[0]}
		e := newTestEngine(net, delivery.Options{DialTimeout: 3 * time.Second}, resolveTo(a...))
		for i := range 20 {
			_ = e.Put(slog.LevelInfo, fmt.Appendf(nil, "%d", i))
		}
		time.Sleep(200 * time.Millisecond)
		if n := len(net.received(a[1])); n != 20 {
			t.Fatalf("after 200 ms %d of 20 have arrived", n)
		}
		_ = e.Close()
	})
}

// slowDial is a network with one address that answers no dial.
type slowDial struct {
	*fakeNet
	addr string
}

func (n *slowDial) Dial(ctx context.Context, addr netip.AddrPort, m *Meter) (Link, error) {
	if addr.String() == n.addr {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return n.fakeNet.Dial(ctx, addr, m)
}

// Links are replaced at their age, in order: drained, not cut, and no loss or reconnect is counted.
func TestLinksAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newFakeNet(Limits{MaxAge: 10 * time.Second})
		e := newTestEngine(net, delivery.Options{}, resolveTo(addrs(1)...))
		for range 100 {
			_ = e.Put(slog.LevelInfo, []byte("m"))
			mustFlush(t, e)
			time.Sleep(time.Second)
		}
		_ = e.Close()
		s := e.Stats()
		if n := net.dials[addrs(1)[0]]; n < 8 || n > 13 || net.drains != n || s.Reconnects != 0 || s.Resent != 0 {
			t.Fatalf("%d links in 100 s, %d drained, %+v", n, net.drains, s)
		}
	})
}

// An address that failed gets its share again when it has rested and the ejection is over, which its third failure began and which
// lasts 30 s at most, though the others keep up; and no burst of what it missed.
func TestFailedAddressComesBack(t *testing.T) {
	for _, blind := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			net := newFakeNet(Limits{Blind: blind})
			a := addrs(3)
			left := 3
			net.send = func(l *fakeLink, b *Batch) error {
				if l.addr == a[0] && left > 0 {
					if left--; blind {
						b.Settle(0, b.Len(), Outcome{Do: Requeue, Cause: delivery.CauseRefused, Err: errors.New("refused")})
						return nil
					}
					return errors.New("broken")
				}
				l.deliver(b)
				return nil
			}
			e := newTestEngine(net, delivery.Options{Backoff: jitter.Backoff{Base: 200 * time.Millisecond, Max: time.Second}}, resolveTo(a...))
			defer e.Close()
			window := make([]int, 0, 60) // what the first address got in each second
			for range 60 {
				before := len(net.received(a[0]))
				for range 300 {
					_ = e.Put(slog.LevelInfo, []byte("m"))
					time.Sleep(time.Second / 300)
				}
				window = append(window, len(net.received(a[0]))-before)
			}
			mustFlush(t, e)
			for i, n := range window {
				if n > 105 || i > 36 && n < 95 {
					t.Fatalf("blind=%v: the address that failed got, second by second, %v", blind, window)
				}
			}
		})
	}
}
