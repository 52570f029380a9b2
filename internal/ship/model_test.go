package ship

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/jitter"
	"github.com/wholelog/wholelog/resolve"
)

// chaos is a link that acknowledges later and out of order, breaks, refuses, halves and goes away, as its random source says.
type chaos struct {
	mu      sync.Mutex
	rnd     *rand.Rand
	pending sync.WaitGroup
}

func (c *chaos) intn(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rnd.IntN(n)
}

func (c *chaos) send(l *fakeLink, b *Batch) error {
	n := b.Len()
	switch c.intn(12) {
	case 0: // breaks after k records were taken
		l.take(b, 0, c.intn(n+1))
		return errors.New("broken")
	case 1: // says exactly what was taken, then breaks
		k := c.intn(n + 1)
		l.take(b, 0, k)
		b.Settle(0, k, Outcome{Do: Delivered})
		return errors.New("broken, but we know where")
	case 2: // takes a prefix, wants the rest elsewhere
		k := c.intn(n + 1)
		l.take(b, 0, k)
		b.Settle(0, k, Outcome{Do: Delivered})
		b.Settle(k, n, Outcome{Do: Requeue, Cause: delivery.CauseBusy, Err: errors.New("busy")})
		return nil
	case 3:
		b.Settle(0, n, Outcome{Do: Halve, Reason: delivery.ReasonBadEvent})
		return nil
	case 4: // one by one, backwards, from another goroutine; perhaps the peer goes away in between
		l.take(b, 0, n)
		gone := c.intn(4) == 0
		c.pending.Go(func() {
			for i := n - 1; i >= 0; i-- {
				time.Sleep(time.Duration(c.intn(5)) * time.Millisecond)
				if gone && i == n/2 {
					l.leave()
				}
				select {
				case <-l.closed:
					return // as the contract says: nothing is settled after Close
				default:
					b.Settle(i, i+1, Outcome{Do: Delivered})
				}
			}
		})
		return nil
	case 5: // half open: never answers, until the link is closed
		if c.intn(3) == 0 {
			select {
			case <-l.closed:
			case <-time.After(time.Duration(c.intn(300)) * time.Millisecond):
			}
			return errLinkClosed
		}
	case 6:
		b.Settle(0, n, Outcome{Do: Resend, Err: errors.New("timeout")})
		return nil
	case 7:
		b.Settle(0, 1, Outcome{Do: Drop, Reason: delivery.ReasonRejected})
		l.take(b, 1, n)
		b.Settle(1, n, Outcome{Do: Delivered})
		b.Settle(0, n, Outcome{Do: Delivered}) // twice: the second has no effect
		return nil
	case 8:
		panic("a protocol's bug")
	}
	l.deliver(b)
	return nil
}

// leave is the peer going away.
func (l *fakeLink) leave() {
	l.net.mu.Lock()
	defer l.net.mu.Unlock()
	select {
	case <-l.gone:
	default:
		close(l.gone)
	}
}

// Whatever happens, every record is in exactly one place: at a receiver, told to OnDrop, or pending; and duplicates are explained
// by Resent. Random faults, Flush and Close at random moments, fixed seeds.
func TestModel(t *testing.T) {
	rounds := 400
	if testing.Short() {
		rounds = 50
	}
	for seed := range rounds {
		synctest.Test(t, func(t *testing.T) { modelRound(t, uint64(seed)) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func modelRound(t *testing.T, seed uint64) {
	c := &chaos{rnd: rand.New(rand.NewPCG(seed, 1))}
	net := newFakeNet(Limits{
		LinksPerAddr: 1 + c.intn(2), BatchRecords: c.intn(9), Window: c.intn(2) * 500, Blind: c.intn(2) == 0,
		Linger: time.Duration(c.intn(3)) * time.Millisecond, MaxAge: time.Duration(c.intn(2)) * 50 * time.Millisecond,
	})
	net.send = c.send
	a := addrs(3)
	set := &answer{set: a[:1+c.intn(3)]}
	var mu sync.Mutex
	dropped := make(map[string]delivery.Reason)
	sums := make(map[delivery.Reason]uint64)
	o := delivery.Options{
		QueueBytes: 512 << 10, Overflow: delivery.Overflow(c.intn(3)), MaxBlock: time.Millisecond,
		Backoff: jitter.Backoff{Base: time.Millisecond, Max: 20 * time.Millisecond}, Tries: 2 + c.intn(4),
		RetryFor:   time.Duration(c.intn(3)) * 40 * time.Millisecond,
		RecordRate: c.intn(2) * 500, ByteRate: c.intn(2) * (1 << 20), Reserve: float64(c.intn(3)-1) / 4, Summary: c.intn(2) == 0,
		CloseTimeout: time.Duration(1+c.intn(1000)) * time.Millisecond, Sync: c.intn(5) == 0,
		OnDrop: func(d delivery.Drop) {
			mu.Lock()
			defer mu.Unlock()
			sums[d.Reason] += uint64(d.Records)
			if d.Records == 1 && d.Data != nil {
				dropped[string(d.Data)] = d.Reason
			}
		},
	}
	r := resolve.Options{Resolver: set, Refresh: 100 * time.Millisecond, Policy: resolve.Policy(c.intn(2))}
	e := newTestEngine(net, o, r)
	e.encodeOwn, e.summary.on = func(dst []byte, r slog.Record) []byte { return append(dst, r.Message...) }, o.Summary

	var accepted sync.Map
	var n, refused int
	var wg sync.WaitGroup
	var count sync.Mutex
	for w := range 3 {
		wg.Go(func() {
			for i := range 40 {
				m := fmt.Sprintf("%d-%03d", w, i)
				if c.intn(20) == 0 {
					m += string(make([]byte, 30<<10))
				}
				err := e.Put(slog.Level(4*c.intn(3)), []byte(m))
				if errors.Is(err, delivery.ErrClosed) && !errors.As(err, new(delivery.Drop)) {
					return
				}
				count.Lock()
				n++
				if err != nil {
					refused++
				}
				count.Unlock()
				accepted.Store(m, true)
				if c.intn(4) == 0 {
					time.Sleep(time.Duration(c.intn(20)) * time.Millisecond)
				}
				balancedNow(t, e)
			}
		})
	}
	wg.Go(func() {
		for range c.intn(4) {
			time.Sleep(time.Duration(c.intn(100)) * time.Millisecond)
			ctx, cancel := context.WithTimeout(context.Background(), time.Duration(c.intn(200))*time.Millisecond)
			_ = e.Flush(ctx)
			cancel()
			set.change(nil, a[:1+c.intn(3)]...)
		}
		if c.intn(3) == 0 {
			_ = e.Close()
		}
	})
	wg.Wait()
	if c.intn(2) == 0 {
		mustFlush(t, e)
		if s := e.Stats(); s.Pending != 0 {
			t.Errorf("pending after Flush: %+v", s)
		}
	}
	_ = e.Close()
	c.pending.Wait()

	s := e.Stats()
	balanced(t, s)
	if s.Pending != 0 || s.PendingBytes != 0 || s.Accepted != uint64(n) || net.open != 0 {
		t.Errorf("seed %d: accepted %d, open links %d, %+v", seed, n, net.open, s)
	}
	mu.Lock()
	defer mu.Unlock()
	for reason, k := range s.Reasons {
		if sums[reason] != k {
			t.Errorf("seed %d: OnDrop said %d for %s, Stats %d", seed, sums[reason], reason, k)
		}
	}
	arrived := make(map[string]int)
	for _, addr := range a {
		for _, m := range net.received(addr) {
			arrived[m]++
		}
	}
	var missing, dups uint64
	accepted.Range(func(m, _ any) bool {
		k := arrived[m.(string)]
		if k == 0 {
			missing++
		} else {
			dups += uint64(k - 1)
		}
		return true
	})
	if missing > s.Dropped || uint64(len(arrived)) < s.Delivered || dups > s.Resent {
		t.Errorf("seed %d: %d never arrived but %d dropped; %d arrived, %d delivered; %d duplicates, %d resent",
			seed, missing, s.Dropped, len(arrived), s.Delivered, dups, s.Resent)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.arena.used > segmentBytes*2 && e.arena.last != nil && e.arena.last.open > 0 {
		t.Errorf("seed %d: the arena still holds %d bytes", seed, e.arena.used)
	}
}

func balancedNow(t *testing.T, e *Engine) {
	s := e.Stats()
	if s.Accepted != s.Delivered+s.Dropped+s.Pending {
		t.Errorf("counters do not add up: %+v", s)
	}
}
