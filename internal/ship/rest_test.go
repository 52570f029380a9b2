package ship

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/jitter"
	"github.com/wholelog/wholelog/resolve"
)

// R59: when an address asks for rest, nothing is sent to it before that is over, and what was dealt behind the refused records does
// not overtake them.
func TestR59_OrderAcrossARest(t *testing.T) {
	for _, after := range []time.Duration{0, 10 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			net := newFakeNet(Limits{BatchRecords: 5})
			rest := max(3*time.Second, after)
			var failed, next time.Time
			net.send = func(l *fakeLink, b *Batch) error {
				if failed.IsZero() {
					time.Sleep(20 * time.Millisecond) // others are dealt meanwhile
					failed = time.Now()
					b.Settle(0, b.Len(), Outcome{Do: Requeue, Cause: delivery.CauseBusy, Err: errors.New("503"), After: after})
					return nil
				}
				if next.IsZero() {
					next = time.Now()
				}
				l.deliver(b)
				return nil
			}
			e := newTestEngine(net, delivery.Options{
				Backoff: jitter.Backoff{Base: 3 * time.Second, Max: 3 * time.Second, Mode: jitter.None},
			}, resolveTo(addrs(1)...))
			for i := range 10 {
				_ = e.Put(slog.LevelInfo, fmt.Appendf(nil, "%02d", i))
			}
			time.Sleep(time.Minute)
			if got := net.received(addrs(1)[0]); len(got) != 10 || !slices.IsSorted(got) {
				t.Errorf("arrived %v", got)
			}
			if d := next.Sub(failed); d < rest || d > rest+100*time.Millisecond {
				t.Errorf("used again after %v, its rest was %v", d, rest)
			}
			_ = e.Close()
		})
	}
}

// Who flushes or closes does not wait beside addresses that only rest: with no other one they are tried at once.
func TestR56_FlushAndCloseTryWhatRests(t *testing.T) {
	for _, blind := range []bool{false, true} {
		for _, call := range []string{"Flush", "Close"} {
			t.Run(fmt.Sprintf("%s/blind=%v", call, blind), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					net := newFakeNet(Limits{Blind: blind})
					first := true
					net.send = func(l *fakeLink, b *Batch) error {
						if first {
							first = false
							return l.requeue(b)
						}
						l.deliver(b)
						return nil
					}
					e := newTestEngine(net, delivery.Options{
						Backoff: jitter.Backoff{Base: 20 * time.Second, Mode: jitter.None},
					}, resolveTo(addrs(1)...))
					_ = e.Put(slog.LevelInfo, []byte("m"))
					time.Sleep(time.Second)
					for range 100 {
						_ = e.Put(slog.LevelInfo, []byte("m"))
					}
					time.Sleep(time.Second)
					if n := net.total(); n != 0 {
						t.Errorf("%d arrived at an address that rests", n)
					}
					began := time.Now()
					if call == "Flush" {
						mustFlush(t, e)
					}
					err := e.Close()
					if took := time.Since(began); err != nil || took > time.Second || net.total() != 101 {
						t.Errorf("%v after %v, %d of 101 arrived at a receiver that is up", err, took, net.total())
					}
				})
			})
		}
	}
}

// RetryFor holds wherever a record waits: also for what was dealt to a link that hangs, but was not sent.
func TestRetryForHoldsBehindALink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newFakeNet(Limits{BatchRecords: 1})
		net.send = func(l *fakeLink, _ *Batch) error { return l.hang() }
		e := newTestEngine(net, delivery.Options{RetryFor: time.Second, CloseTimeout: time.Second, SendTimeout: time.Hour}, resolveTo(addrs(1)...))
		for range 3 {
			_ = e.Put(slog.LevelInfo, []byte("m"))
		}
		time.Sleep(5 * time.Second)
		s := e.Stats()
		balanced(t, s)
		if s.Pending != 1 || s.Reasons[delivery.ReasonRetryExpired] != 2 { // the link has one
			t.Errorf("%+v", s)
		}
		_ = e.Close()
	})
}

// An address that leaves and comes back, as an unsteady name server makes it, has not been forgotten: it goes on resting.
func TestRestOutlivesAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newFakeNet(Limits{})
		a := addrs(2)
		net.setRefuse(a[0], errors.New("refused"))
		name := &answer{set: a}
		e := newTestEngine(net, delivery.Options{
			Backoff: jitter.Backoff{Base: time.Minute, Max: 10 * time.Minute, Mode: jitter.None},
		}, resolve.Options{Resolver: name, Refresh: 100 * time.Millisecond})
		left := 0 // how often it was seen to be away
		for i := range 50 {
			_ = e.Put(slog.LevelInfo, []byte("m"))
			if name.change(nil, a...); i%2 == 1 {
				name.change(nil, a[1])
			}
			time.Sleep(time.Second)
			for _, ep := range e.Stats().Endpoints {
				if ep.Addr.String() == a[0] && ep.State == "gone" {
					left++
				}
			}
		}
		if _, dials := net.counts(a[0]); dials != 1 || left < 10 {
			t.Errorf("dialled %d times within a rest of a minute; away %d times of 50", dials, left)
		}
		if n := len(net.received(a[1])); n != 50 {
			t.Errorf("%d of 50 arrived", n)
		}
		_ = e.Close()
	})
}

// What an address certainly did not take goes to another one at once, though it does not rest and it would be its turn again.
func TestARequeuedRecordGoesElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newFakeNet(Limits{})
		a := addrs(2)
		refused := 0
		net.send = func(l *fakeLink, b *Batch) error {
			if l.addr == a[0] {
				refused += b.Len()
				b.Settle(0, b.Len(), Outcome{Do: Requeue})
				return nil
			}
			l.deliver(b)
			return nil
		}
		e := newTestEngine(net, delivery.Options{}, resolve.Options{Resolver: weighted{a[0]: 1000, a[1]: 1}})
		for range 20 {
			_ = e.Put(slog.LevelInfo, []byte("m"))
			mustFlush(t, e)
		}
		if _ = e.Close(); refused == 0 || refused > 20 || len(net.received(a[1])) != 20 {
			t.Errorf("20 records were refused %d times, %d arrived", refused, len(net.received(a[1])))
		}
	})
}
