package ship

import (
	"context"
	"errors"
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

// chaos is a kind of link that does everything a link may do: it acknowledges later and out of order, breaks, refuses, halves, goes away,
// forgets and panics, as its dice say.
type chaos struct{ *dice }

func (c chaos) send(l *fakeLink, b *Batch) error {
	n := b.Len()
	switch c.intn(12) {
	case 0: // breaks after k records were taken
		l.take(b, 0, c.intn(n+1))
		return errors.New("broken")
	case 1: // says exactly what was taken, then breaks
		k := c.intn(n + 1)
		l.take(b, 0, k)
		l.confirm(b, 0, k)
		return errors.New("broken, but we know where")
	case 2: // takes a prefix, wants the rest elsewhere
		k := c.intn(n + 1)
		l.take(b, 0, k)
		l.confirm(b, 0, k)
		b.Settle(k, n, Outcome{Do: Requeue, Cause: delivery.CauseBusy, Err: errors.New("busy")})
		return nil
	case 3:
		b.Settle(0, n, Outcome{Do: Halve, Reason: delivery.ReasonBadEvent})
		return nil
	case 4: // one by one, backwards, from another goroutine; perhaps the peer goes away in between
		l.take(b, 0, n)
		gone := c.oneIn(4)
		go func() {
			for i := n - 1; i >= 0; i-- {
				select {
				case <-time.After(c.ms(5)):
				case <-l.closed:
					return
				}
				if gone && i == n/2 {
					l.leave()
				}
				l.confirm(b, i, i+1)
			}
		}()
		return nil
	case 5: // half open: never answers, until the link is closed
		if c.oneIn(3) {
			select {
			case <-l.closed:
			case <-time.After(c.ms(300)):
			}
			return errLinkClosed
		}
	case 6:
		b.Settle(0, n, Outcome{Do: Resend, Err: errors.New("timeout")})
		return nil
	case 7:
		b.Settle(0, 1, Outcome{Do: Drop, Reason: delivery.ReasonRejected})
		l.take(b, 1, n)
		l.confirm(b, 1, n)
		b.Settle(0, n, Outcome{Do: Delivered}) // twice: the second has no effect
		return nil
	case 8:
		panic("a protocol's bug")
	case 9: // forgets to say what
		b.Settle(0, n, Outcome{})
		return nil
	}
	l.deliver(b)
	return nil
}

// Whatever happens, every record is in exactly one place: confirmed by a receiver, told to OnDrop, or pending; what arrived twice is
// explained by Resent; order is kept where it is promised. Random faults of every kind of link, addresses that come and go, Flush and
// Close at random moments, fixed seeds.
//
// To see one round again: go test -run 'TestModel/seed=1234$'
func TestModel(t *testing.T) {
	rounds := 3000
	if testing.Short() {
		rounds = 200
	}
	for seed := range rounds {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { modelRound(t, newDice(uint64(seed))) })
		})
	}
}

// modelNet throws a kind of link, its limits, and how often it fails.
func modelNet(d *dice) (net *fakeNet, ordered bool) {
	if d.oneIn(2) {
		k := kinds[d.intn(len(kinds))]
		net, ordered = k.make(d, 3+d.intn(6)), k.ordered
	} else {
		net = newFakeNet(Limits{
			BatchRecords: d.intn(9), Window: d.intn(2) * 500, Blind: d.oneIn(2), Faint: d.oneIn(2),
			Linger: d.ms(3), MaxAge: time.Duration(d.intn(2)) * 50 * time.Millisecond,
		})
		net.send = chaos{d}.send
	}
	net.limits.LinksPerAddr = 1 + d.intn(2)
	return net, ordered && net.limits.LinksPerAddr == 1
}

func modelRound(t *testing.T, d *dice) {
	net, ordered := modelNet(d)
	a := addrs(3)
	still := d.oneIn(3) // one address, that stays
	some := func(least int) []string {
		if still {
			return a[:1]
		}
		return a[:least+d.intn(4-least)]
	}
	name := &answer{set: some(1)}
	b := newBook()
	o := delivery.Options{
		QueueBytes: 512 << 10, Overflow: delivery.Overflow(d.intn(3)), MaxBlock: time.Millisecond,
		Backoff: jitter.Backoff{Base: time.Millisecond, Max: 20 * time.Millisecond}, Tries: 2 + d.intn(4),
		RetryFor:   time.Duration(d.intn(3)) * 40 * time.Millisecond,
		RecordRate: d.intn(2) * 500, ByteRate: d.intn(2) * (1 << 20), Reserve: float64(d.intn(3)-1) / 4, Summary: d.oneIn(2),
		CloseTimeout: time.Millisecond + d.ms(1000), SendTimeout: 10*time.Millisecond + d.ms(400), Sync: d.oneIn(5),
		OnDrop: b.onDrop,
	}
	e := newTestEngine(net, o, resolve.Options{Resolver: name, Refresh: 100 * time.Millisecond, Policy: resolve.Policy(d.intn(2))})
	defer e.Close()
	e.encodeOwn, e.summary.on = func(dst []byte, r slog.Record) []byte { return append(dst, r.Message...) }, o.Summary

	const writers, each = 3, 30
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				size := 0
				if d.oneIn(20) {
					size = 30 << 10
				}
				if !b.log(e, w*each+i, size, slog.Level(4*d.intn(3))) {
					return
				}
				if d.oneIn(4) {
					time.Sleep(d.ms(20))
					balanced(t, e.Stats())
				}
			}
		})
	}
	wg.Go(func() {
		for range d.intn(4) {
			time.Sleep(d.ms(100))
			ctx, cancel := context.WithTimeout(context.Background(), d.ms(200))
			_ = e.Flush(ctx)
			cancel()
			name.change(nil, some(0)...)
		}
		if d.oneIn(3) {
			_ = e.Close()
		}
	})
	wg.Wait()
	synctest.Wait()
	b.check(t, e, net)
	if name.change(nil, some(1)...); d.oneIn(2) {
		mustFlush(t, e)
		synctest.Wait()
		if b.check(t, e, net); e.Stats().Pending != 0 {
			t.Errorf("pending after Flush: %+v", e.Stats())
		}
	}
	_ = e.Close()
	synctest.Wait()
	b.check(t, e, net)
	if s := e.Stats(); s.Pending != 0 || s.PendingBytes != 0 || net.open != 0 {
		t.Errorf("%d links open, %+v", net.open, s)
	}
	if ordered && still {
		for w := range writers {
			if got := ofWriter(net.received(a[0]), w*each, each); !inOrder(got) {
				t.Errorf("out of order: %.6q", got)
			}
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.arena.used > segmentBytes*2 && e.arena.last != nil && e.arena.last.open > 0 {
		t.Errorf("the arena still holds %d bytes", e.arena.used)
	}
}

// ofWriter returns the records from the n numbers that one goroutine logged.
func ofWriter(got []string, from, n int) (own []string) {
	for _, m := range got {
		if id, ok := number(m); ok && id >= from && id < from+n {
			own = append(own, m)
		}
	}
	return own
}
