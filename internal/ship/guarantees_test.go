package ship

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/jitter"
)

// kind is a fake of links; fault is how often something goes wrong: once in so many times, or never.
type kind struct {
	name    string
	ordered bool // links keep order across whatever happens, while there is one to one address
	make    func(d *dice, fault int) *fakeNet
}

// kinds are all of them.
var kinds = []kind{
	{"datagram", false, func(d *dice, fault int) *fakeNet {
		return datagramLinks(func(*fakeLink) bool { return d.fault(fault) })
	}},
	{"stream", true, func(d *dice, fault int) *fakeNet {
		return streamLinks(Limits{BatchRecords: 9}, func() int {
			if d.fault(fault) {
				return d.intn(2000)
			}
			return -1
		}, func() bool { return d.oneIn(2) })
	}},
	{"request", false, func(d *dice, fault int) *fakeNet {
		return requestLinks(Limits{BatchRecords: 12, Linger: 5 * time.Millisecond}, func() time.Duration { return d.ms(20) }, func(n int) (int, Outcome) {
			if !d.fault(fault) {
				return n, Outcome{Do: Delivered}
			}
			k := d.intn(n + 1)
			return k, []Outcome{
				{Do: Requeue, Cause: delivery.CauseBusy, Err: errors.New("503"), After: d.ms(50)},
				{Do: Drop, Reason: delivery.ReasonBadEvent, Err: errors.New("code 12")},
				{Do: Resend, Cause: delivery.CauseTimeout, Err: errors.New("no answer")},
				{Do: Halve, Reason: delivery.ReasonBadEvent, Err: errors.New("413")},
			}[d.intn(4)]
		})
	}},
	{"request without an answer", false, func(d *dice, fault int) *fakeNet {
		return requestLinks(Limits{BatchRecords: 12}, func() time.Duration { return d.ms(20) }, func(n int) (int, Outcome) {
			if d.fault(fault) {
				return -1, Outcome{}
			}
			return n, Outcome{Do: Delivered}
		})
	}},
	{"acknowledged", false, func(d *dice, fault int) *fakeNet {
		return ackedLinks(Limits{BatchRecords: 7, Window: 4000}, func() time.Duration { return d.ms(20) }, func() bool { return d.fault(10 * fault) })
	}},
	{"half-open", true, func(d *dice, fault int) *fakeNet {
		return halfOpenLinks(Limits{BatchRecords: 9}, 700, 3*time.Second, func() bool { return d.fault(fault) })
	}},
}

// fault is true once in n throws, never for n = 0.
func (d *dice) fault(n int) bool { return n > 0 && d.oneIn(n) }

// eachLinkKind runs f in a bubble for every kind, number of addresses and links, and overflow policy.
func eachLinkKind(t *testing.T, f func(t *testing.T, k kind, d *dice, addresses, links int, policy delivery.Overflow)) {
	for _, k := range kinds {
		for _, n := range [][2]int{{1, 1}, {3, 1}, {2, 3}} {
			for _, policy := range []delivery.Overflow{delivery.Block, delivery.DropNewest, delivery.DropOldest} {
				t.Run(fmt.Sprintf("%s/%d addresses, %d links/%v", k.name, n[0], n[1], policy), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { f(t, k, newDice(uint64(n[0]+n[1])), n[0], n[1], policy) })
				})
			}
		}
	}
}

// R50: whatever kind of link it is and however it fails, the counters add up at every moment, Flush brings everything away, and every
// record is where they say.
func TestR50_EveryKindOfLinkThatFails(t *testing.T) {
	eachLinkKind(t, func(t *testing.T, k kind, d *dice, addresses, links int, policy delivery.Overflow) {
		net := k.make(d, 4)
		net.limits.LinksPerAddr = links
		b := newBook()
		e := newTestEngine(net, delivery.Options{
			QueueBytes: 512 << 10, Overflow: policy, Tries: 50, OnDrop: b.onDrop, SendTimeout: time.Second,
			Backoff: jitter.Backoff{Base: time.Millisecond, Max: 100 * time.Millisecond},
		}, resolveTo(addrs(addresses)...))
		defer e.Close()
		for i := range 240 {
			b.log(e, i, d.intn(60), slog.Level(d.intn(2))*slog.LevelWarn)
			if d.oneIn(8) {
				time.Sleep(d.ms(30))
				synctest.Wait()
				b.check(t, e, net)
			}
		}
		mustFlush(t, e)
		synctest.Wait()
		b.check(t, e, net)
		if s := e.Stats(); s.Pending != 0 {
			t.Errorf("pending after Flush: %+v", s)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		b.check(t, e, net)
		if k.ordered && addresses == 1 && links == 1 && !inOrder(net.received(addrs(1)[0])) {
			t.Errorf("out of order: %.6q", net.received(addrs(1)[0]))
		}
	})
}

// R47, R59: while nothing fails, each record goes to exactly one address and there once, in order over one link.
func TestR47_EveryKindOfLinkThatWorks(t *testing.T) {
	eachLinkKind(t, func(t *testing.T, k kind, d *dice, addresses, links int, policy delivery.Overflow) {
		net := k.make(d, 0)
		net.limits.LinksPerAddr = links
		b := newBook()
		e := newTestEngine(net, delivery.Options{Overflow: policy, OnDrop: b.onDrop}, resolveTo(addrs(addresses)...))
		for i := range 300 {
			b.log(e, i, d.intn(60), slog.LevelInfo)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		b.check(t, e, net)
		if s := e.Stats(); s.Delivered != 300 || s.Resent != 0 || net.total() != 300 {
			t.Errorf("arrived %d, %+v", net.total(), s)
		}
		if addresses == 1 && links == 1 && !inOrder(net.received(addrs(1)[0])) {
			t.Errorf("out of order: %.6q", net.received(addrs(1)[0]))
		}
	})
}

// R55, R56: whatever kind of link it is, one that never says a word again does not keep Flush longer than its context nor Close
// longer than CloseTimeout. What was not confirmed is dropped, counted and told; no link and no goroutine is left.
func TestR55_R56_EveryKindOfLinkThatHangs(t *testing.T) {
	const wait, limit = 300 * time.Millisecond, 2 * time.Second
	never := func() time.Duration { return never }
	hanging := map[string]*fakeNet{
		"stream that reads nothing":   streamLinks(Limits{}, func() int { return 0 }, func() bool { return true }),
		"stream that stalls":          streamLinks(Limits{}, func() int { return 100 }, func() bool { return true }),
		"request without an answer":   requestLinks(Limits{}, never, nil),
		"request taken, no answer":    requestLinks(Limits{}, func() time.Duration { return 0 }, func(int) (int, Outcome) { return -1, Outcome{} }),
		"never acknowledged":          ackedLinks(Limits{Window: 1 << 20}, never, nil),
		"half-open, buffer left":      halfOpenLinks(Limits{Window: 1 << 20}, 1<<20, time.Hour, func() bool { return true }),
		"half-open, buffer used up":   halfOpenLinks(Limits{}, 50, time.Hour, func() bool { return true }),
		"datagrams to a deaf address": datagramLinks(func(*fakeLink) bool { return true }),
	}
	for name, net := range hanging {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				before := inBubble()
				b := newBook()
				e := newTestEngine(net, delivery.Options{OnDrop: b.onDrop, CloseTimeout: limit, SendTimeout: time.Hour}, resolveTo(addrs(2)...))
				for i := range 100 {
					b.log(e, i, 20, slog.LevelInfo)
				}
				ctx, cancel := context.WithTimeout(t.Context(), wait)
				defer cancel()
				began := time.Now()
				err := e.Flush(ctx)
				took := time.Since(began)
				blind := net.limits.Blind // what is deaf to datagrams takes them all
				if took > wait || !blind && (took != wait || !errors.Is(err, context.DeadlineExceeded)) {
					t.Errorf("Flush: %v after %v", err, took)
				}
				synctest.Wait()
				b.check(t, e, net)
				began = time.Now()
				err = e.Close()
				if took := time.Since(began); took > limit || !blind && !errors.Is(err, delivery.ErrClosed) {
					t.Errorf("Close: %v after %v", err, took)
				}
				b.check(t, e, net)
				if s := e.Stats(); s.Pending != 0 || s.Dropped != s.Reasons[delivery.ReasonClosed] {
					t.Errorf("%+v", s)
				}
				synctest.Wait()
				if open, _ := net.counts(""); open != 0 || inBubble() != before {
					t.Errorf("%d links open, %d goroutines more", open, inBubble()-before)
				}
			})
		})
	}
}

// A link that was closed because nothing moved within SendTimeout is over, even if its Send then returns without an error: what it had
// is sent again, and the cause is a timeout.
func TestSendTimeoutEndsALinkWhoseSendReturnsNil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newFakeNet(Limits{})
		first := true
		net.send = func(l *fakeLink, b *Batch) error {
			if first {
				first = false
				<-l.closed
				return nil
			}
			l.deliver(b)
			return nil
		}
		b := newBook()
		e := newTestEngine(net, delivery.Options{SendTimeout: time.Second, OnDrop: b.onDrop}, resolveTo(addrs(1)...))
		defer e.Close()
		b.log(e, 1, 10, slog.LevelInfo)
		mustFlush(t, e)
		synctest.Wait()
		b.check(t, e, net)
		if s := e.Stats(); s.Resent != 1 || s.Reconnects != 1 || s.Endpoints[0].Errors[delivery.CauseTimeout] != 1 {
			t.Errorf("%+v", s)
		}
	})
}
