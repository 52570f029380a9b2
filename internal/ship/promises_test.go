package ship

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/jitter"
	"github.com/wholelog/wholelog/resolve"
)

// R37, R40, R59: at whatever byte a stream stalls, the record that was being written is sent again, whole and before all later ones, on
// a new connection; the old one is never used again.
func TestR37_R40_AStreamThatStallsAtAnyByte(t *testing.T) {
	const records, size = 4, 10
	for k := range records * size {
		for _, known := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				first := true
				net := streamLinks(Limits{}, func() int {
					if first {
						first = false
						return k
					}
					return -1
				}, func() bool { return known })
				var began []string // the first record on each connection
				send := net.send
				net.send = func(l *fakeLink, b *Batch) error {
					if l.written == 0 {
						began = append(began, string(b.At(0).Bytes()))
					}
					return send(l, b)
				}
				b := newBook()
				e := newTestEngine(net, delivery.Options{SendTimeout: time.Second, OnDrop: b.onDrop}, resolveTo(addrs(1)...))
				defer e.Close()
				for i := range records {
					b.log(e, i, size-6, slog.LevelInfo)
				}
				mustFlush(t, e)
				synctest.Wait()
				b.check(t, e, net) // which finds a link that was used after an error
				want := k / size   // where nothing is known all of the batch comes again, and it may have begun with an earlier one
				if n, ok := number(began[len(began)-1]); len(began) != 2 || !ok || n > want || known && n < want {
					t.Errorf("stalled at byte %d: connections began with %q, the second should with record %d", k, began, want)
				}
				if _, dials := net.counts(addrs(1)[0]); dials != 2 || !inOrder(net.received(addrs(1)[0])) {
					t.Errorf("stalled at byte %d: %d dials, received %q", k, dials, net.received(addrs(1)[0]))
				}
			})
		}
	}
}

// R39: a destination that was lost for an hour, in whatever way, gets all that waited soon after it is back.
func TestR39_ALostDestinationIsNeverGivenUp(t *testing.T) {
	for _, how := range []string{"refuses", "reads nothing", "answers busy", "goes away", "has no address"} {
		for _, policy := range []resolve.Policy{resolve.PerMessage, resolve.PerProcess} {
			t.Run(fmt.Sprintf("%s/%v", how, policy), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					net, name := newFakeNet(Limits{}), &answer{set: addrs(2)}
					var mu sync.Mutex
					lost := true
					net.send = func(l *fakeLink, b *Batch) error {
						mu.Lock()
						now := lost
						mu.Unlock()
						switch {
						case now && how == "reads nothing":
							return l.hang()
						case now && how == "answers busy":
							return l.requeue(b)
						case now && how == "goes away":
							l.leave()
							return nil
						}
						l.deliver(b)
						return nil
					}
					refuse := func(err error) {
						for _, a := range addrs(2) {
							net.setRefuse(a, err)
						}
					}
					switch how {
					case "refuses":
						refuse(errors.New("connection refused"))
					case "has no address":
						name.change(errors.New("no such host"))
					}
					o := delivery.Options{Tries: 1 << 30, Backoff: jitter.Backoff{Max: time.Minute}}
					e := newTestEngine(net, o, resolve.Options{Resolver: name, Policy: policy, Refresh: time.Minute})
					defer e.Close()
					for range 20 {
						_ = e.Put(slog.LevelInfo, []byte("m"))
					}
					time.Sleep(time.Hour)
					if s := e.Stats(); s.Pending != 20 || net.total() != 0 {
						t.Errorf("after an hour %d arrived, %+v", net.total(), s)
					}
					mu.Lock()
					lost = false
					mu.Unlock()
					refuse(nil)
					name.change(nil, addrs(2)...)
					time.Sleep(3 * time.Minute)
					if s := e.Stats(); s.Delivered != 20 || net.total() != 20 {
						t.Errorf("three minutes after it was back %d of 20 had arrived, %+v", net.total(), s)
					}
				})
			})
		}
	}
}

// dialCounter is a network in which dials take a second and some fail; it notes how many to one address are under way at once.
type dialCounter struct {
	*fakeNet
	dice     *dice
	now, max map[netip.AddrPort]int
}

func (n *dialCounter) Dial(ctx context.Context, addr netip.AddrPort, m *Meter) (Link, error) {
	n.mu.Lock()
	n.now[addr]++
	n.max[addr] = max(n.max[addr], n.now[addr])
	n.mu.Unlock()
	time.Sleep(time.Second)
	n.mu.Lock()
	n.now[addr]--
	n.mu.Unlock()
	if n.dice.oneIn(3) {
		return nil, errors.New("connection refused")
	}
	return n.fakeNet.Dial(ctx, addr, m)
}

// At most one dial to an address is in progress, however many links it may have, who asks for them, how links break, and whether the
// address leaves and comes back meanwhile.
func TestOneDialPerAddress(t *testing.T) {
	for seed := range uint64(10) {
		synctest.Test(t, func(t *testing.T) {
			d := newDice(seed)
			net := &dialCounter{newFakeNet(Limits{LinksPerAddr: 4, BatchRecords: 2, MaxAge: 3 * time.Second}), d, make(map[netip.AddrPort]int), make(map[netip.AddrPort]int)}
			net.send = func(l *fakeLink, b *Batch) error {
				if d.oneIn(5) {
					return errors.New("broken")
				}
				time.Sleep(d.ms(50))
				l.deliver(b)
				return nil
			}
			a := addrs(2)
			name := &answer{set: a}
			e := newTestEngine(net, delivery.Options{
				Backoff: jitter.Backoff{Max: 100 * time.Millisecond}, MaxBlock: time.Minute, Tries: 1000, Sync: seed%2 == 1, SyncTimeout: 10 * time.Second,
			}, resolve.Options{Resolver: name, Refresh: 500 * time.Millisecond})
			defer e.Close()
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					for range 100 {
						_ = e.Put(slog.LevelInfo, []byte("m"))
						time.Sleep(d.ms(100))
						if d.oneIn(10) {
							ctx, cancel := context.WithTimeout(context.Background(), time.Second)
							_ = e.Ready(ctx)
							cancel()
						}
						if d.oneIn(20) {
							name.change(nil, a[:1+d.intn(2)]...)
						}
					}
				})
			}
			wg.Wait()
			_ = e.Close()
			balanced(t, e.Stats())
			for addr, most := range net.max {
				if most != 1 {
					t.Errorf("seed %d: %d dials to %s at once", seed, most, addr)
				}
			}
		})
	}
}

// Close does not sit out a rest: with a destination that keeps refusing it ends within CloseTimeout, however long the backoff, and says
// what it dropped.
func TestCloseInterruptsBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := inBubble()
		net := newFakeNet(Limits{})
		net.setRefuse(addrs(1)[0], errors.New("connection refused"))
		e := newTestEngine(net, delivery.Options{
			CloseTimeout: time.Second, Backoff: jitter.Backoff{Base: time.Hour, Max: time.Hour, Mode: jitter.None},
		}, resolveTo(addrs(1)...))
		_ = e.Put(slog.LevelInfo, []byte("m"))
		time.Sleep(time.Minute)
		began := time.Now()
		err := e.Close()
		if took := time.Since(began); took > time.Second || !errors.Is(err, delivery.ErrClosed) || !strings.Contains(err.Error(), "refused") {
			t.Errorf("Close: %v after %v", err, took)
		}
		synctest.Wait()
		if s := e.Stats(); s.Reasons[delivery.ReasonClosed] != 1 || inBubble() != before {
			t.Errorf("%d goroutines more, %+v", inBubble()-before, s)
		}
	})
}

// A clock that was set back by hours says nothing of a record's age any more: what may be tried for a minute only is given up, ages stay
// sensible, and later records are delivered as ever.
func TestClockThatSteppedBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newFakeNet(Limits{})
		net.setRefuse(addrs(1)[0], errors.New("connection refused"))
		var mu sync.Mutex
		var step time.Duration
		e := newTestEngine(net, delivery.Options{RetryFor: time.Minute, Backoff: jitter.Backoff{Max: time.Second}}, resolveTo(addrs(1)...))
		defer e.Close()
		e.clock.start = e.clock.start.Round(0) // the wall clock alone
		e.clock.now = func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return time.Now().Round(0).Add(step)
		}
		_ = e.Put(slog.LevelInfo, []byte("before"))
		time.Sleep(time.Second)
		mu.Lock()
		step = -3 * time.Hour
		mu.Unlock()
		time.Sleep(2 * time.Second)
		_ = e.Put(slog.LevelInfo, []byte("after"))
		time.Sleep(time.Second)
		s := e.Stats()
		if balanced(t, s); s.Reasons[delivery.ReasonRetryExpired] != 1 || s.Pending != 1 || s.OldestPending > 5*time.Second {
			t.Errorf("%+v", s)
		}
		net.setRefuse(addrs(1)[0], nil)
		mustFlush(t, e)
		if got := net.received(addrs(1)[0]); len(got) != 1 || got[0] != "after" {
			t.Errorf("%q", got)
		}
	})
}
