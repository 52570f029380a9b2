package ship

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/jitter"
	"github.com/wholelog/wholelog/resolve"
)

// The goodbye to an old link does not cost a log call of Sync mode its record, with the default times: neither when the link has reached
// its age nor when its address left.
func TestSyncGoodbyeThatHangsCostsNoRecord(t *testing.T) {
	for _, why := range []string{"age", "address left"} {
		synctest.Test(t, func(t *testing.T) {
			net := newFakeNet(Limits{})
			if why == "age" {
				net.limits.MaxAge = time.Second
			}
			net.meet = hangInDrain
			a := addrs(2)
			name := &answer{set: a[:1]}
			e := newTestEngine(net, delivery.Options{Sync: true}, resolve.Options{Resolver: name, Refresh: time.Second})
			defer e.Close()
			for i := range 10 {
				if why != "age" {
					name.change(nil, a[i/5%2])
				}
				if err := e.Put(slog.LevelInfo, []byte("m")); err != nil {
					t.Errorf("%s, record %d: %v", why, i, err)
				}
				time.Sleep(4 * time.Second)
			}
			if net.total() != 10 {
				t.Errorf("%s: %d of 10 arrived", why, net.total())
			}
		})
	}
}

// Close ends a Ready of Sync mode that is under way, and no link stays behind, even if a dial returns one after Close did.
func TestR55_SyncReadyDuringClose(t *testing.T) {
	for _, heeds := range []bool{true, false} { // the dial, its context
		synctest.Test(t, func(t *testing.T) {
			before := inBubble()
			net := &stubborn{fakeNet: newFakeNet(Limits{}), heeds: heeds}
			e := newTestEngine(net, delivery.Options{Sync: true, CloseTimeout: time.Second}, resolveTo(addrs(1)...))
			ready := make(chan error, 1)
			go func() { ready <- e.Ready(context.Background()) }()
			time.Sleep(time.Second)
			began := time.Now()
			_ = e.Close()
			if took := time.Since(began); took > time.Second+grace || heeds && took > 0 {
				t.Errorf("heeds=%v: Close took %v", heeds, took)
			}
			if err := <-ready; !errors.Is(err, delivery.ErrClosed) {
				t.Errorf("heeds=%v: Ready: %v", heeds, err)
			}
			synctest.Wait()
			if open, _ := net.counts(""); open != 0 || inBubble() != before {
				t.Errorf("heeds=%v: %d links open, %d goroutines more", heeds, open, inBubble()-before)
			}
		})
	}
}

// stubborn is a network whose dials take a minute, and end with their context or not.
type stubborn struct {
	*fakeNet
	heeds bool
}

func (n *stubborn) Dial(ctx context.Context, addr netip.AddrPort, m *Meter) (Link, error) {
	done := ctx.Done()
	if !n.heeds {
		done = nil
	}
	select {
	case <-done:
		return nil, ctx.Err()
	case <-time.After(time.Minute):
	}
	return n.fakeNet.Dial(ctx, addr, m)
}

// moody is a resolver that answers differently every time: other addresses, none, an error.
type moody struct {
	*dice
	most int
}

func (m moody) Resolve(context.Context) (a resolve.Answer, err error) {
	switch m.intn(4) {
	case 0:
		return a, errors.New("server failure")
	case 1:
		return a, nil
	}
	for range 1 + m.intn(m.most) {
		addr := netip.AddrFrom4([4]byte{10, 0, byte(m.intn(8)), byte(m.intn(256))})
		a.Endpoints = append(a.Endpoints, resolve.Endpoint{Addr: netip.AddrPortFrom(addr, 514), Weight: uint16(m.intn(1000)), Priority: uint16(m.intn(2))})
	}
	return a, nil
}

// R42, R50: a set of addresses that is another one at each look-up, of thousands in all, loses nothing and leaves nothing behind.
func TestR42_R50_AnotherSetAtEachLookUp(t *testing.T) {
	thousands := 2000
	if raceEnabled {
		thousands = 200
	}
	for _, most := range []int{3, thousands} {
		for _, policy := range []resolve.Policy{resolve.PerMessage, resolve.PerProcess} {
			for _, syncMode := range []bool{false, true} {
				t.Run(fmt.Sprintf("%d/%v/sync=%v", most, policy, syncMode), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						before := inBubble()
						d := newDice(uint64(most))
						net := newFakeNet(Limits{LinksPerAddr: 2, BatchRecords: 5, Window: 1000})
						net.send = func(l *fakeLink, b *Batch) error {
							if !syncMode && d.oneIn(50) { // there each address is tried once
								return errors.New("broken")
							}
							l.deliver(b)
							return nil
						}
						e := newTestEngine(net, delivery.Options{
							Sync: syncMode, Tries: 100, MaxBlock: time.Hour, Backoff: jitter.Backoff{Max: 50 * time.Millisecond},
						}, resolve.Options{Resolver: moody{d, most}, Refresh: 100 * time.Millisecond, Policy: policy})
						const n = 500
						for range n {
							_ = e.Put(slog.LevelInfo, []byte("m"))
							time.Sleep(d.ms(20))
						}
						mustFlush(t, e)
						err := e.Close()
						synctest.Wait() // for goroutines that have nothing left to do but to end
						s := e.Stats()
						balanced(t, s)
						if s.Accepted != n || s.Pending != 0 || s.Delivered != uint64(net.total()) ||
							s.Dropped != s.Reasons[delivery.ReasonNoEndpoint] || !syncMode && (s.Dropped != 0 || err != nil) {
							t.Errorf("%d arrived, Close: %v, %d delivered, %d dropped %v", net.total(), err, s.Delivered, s.Dropped, s.Reasons)
						}
						if open, _ := net.counts(""); open != 0 || len(net.misused) > 0 || inBubble() != before || s.Lookups < 5 {
							t.Errorf("%d links open, misused %v, %d goroutines more, %d look-ups", open, net.misused, inBubble()-before, s.Lookups)
						}
					})
				})
			}
		}
	}
}

// Options that are as large, or as small, as they may be do not overflow into something else.
func TestOptionsAtTheirLimits(t *testing.T) {
	const forever = time.Duration(math.MaxInt64)
	huge := delivery.Options{
		QueueBytes: math.MaxInt, Reserve: 0.5, MaxBlock: forever, RecordRate: math.MaxInt, ByteRate: math.MaxInt, RetryFor: forever,
		Tries: math.MaxInt, DialTimeout: forever, SendTimeout: forever, CloseTimeout: forever, SyncTimeout: forever,
		Backoff: jitter.Backoff{Base: forever, Max: forever, Factor: math.MaxFloat64},
	}
	tiny := delivery.Options{
		QueueBytes: 512 << 10, Reserve: -1, MaxBlock: 1, RetryFor: 0, Tries: 1, DialTimeout: 1, SendTimeout: 1, CloseTimeout: 1, SyncTimeout: 1,
		RecordRate: 1, ByteRate: 1, Backoff: jitter.Backoff{Base: 1, Max: 1, Factor: 1},
	}
	for name, o := range map[string]delivery.Options{"huge": huge, "tiny": tiny} {
		for _, syncMode := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/sync=%v", name, syncMode), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					if err := o.Validate(); err != nil {
						t.Fatal(err)
					}
					net := newFakeNet(Limits{MaxAge: forever, BatchBytes: math.MaxInt, BatchRecords: math.MaxInt, Window: math.MaxInt / 4})
					o.Sync = syncMode
					e := newTestEngine(net, o, resolveTo(addrs(2)...))
					for range 100 {
						_ = e.Put(slog.LevelInfo, []byte("m"))
					}
					time.Sleep(time.Second)
					began := time.Now()
					err := e.Close()
					s := e.Stats()
					balanced(t, s)
					if s.Accepted != 100 || s.Pending != 0 || s.Delivered != uint64(net.total()) || time.Since(began) > 3*grace {
						t.Errorf("Close: %v after %v, %+v", err, time.Since(began), s)
					}
					if name == "huge" && (s.Delivered != 100 || err != nil) {
						t.Errorf("Close: %v, %+v", err, s)
					}
				})
			})
		}
	}
}

// A Trace that ends its goroutine, as t.FailNow does, ends a link and no more: its records leave by another one.
func TestATraceThatEndsItsGoroutine(t *testing.T) {
	for _, addresses := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			before := inBubble()
			net := newFakeNet(Limits{})
			net.send = func(l *fakeLink, b *Batch) error {
				l.meter.Chose(addrPort("127.0.0.1:5000"), b.Len(), 1, "")
				l.deliver(b)
				return nil
			}
			var calls atomic.Int64
			o := resolveTo(addrs(addresses)...)
			o.Trace = func(resolve.Choice) {
				if calls.Add(1) <= 2 {
					runtime.Goexit()
				}
			}
			e := newTestEngine(net, delivery.Options{}, o)
			for range 10 {
				_ = e.Put(slog.LevelInfo, []byte("m"))
			}
			mustFlush(t, e)
			err := e.Close()
			synctest.Wait()
			s := e.Stats()
			balanced(t, s)
			open, _ := net.counts("")
			if err != nil || s.Delivered != 10 || net.total() != 10 || open != 0 || inBubble() != before {
				t.Errorf("%d addresses: %v, %d arrived, %d links open, %d goroutines more, %+v", addresses, err, net.total(), open, inBubble()-before, s)
			}
		})
	}
}

// In Sync mode that ends the caller, and what it logged is counted all the same.
func TestATraceThatEndsItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newFakeNet(Limits{})
		ends := true
		net.send = func(l *fakeLink, b *Batch) error {
			l.meter.Chose(addrPort("127.0.0.1:5000"), b.Len(), 1, "")
			l.deliver(b)
			return nil
		}
		o := resolveTo(addrs(1)...)
		o.Trace = func(resolve.Choice) {
			if ends {
				ends = false
				runtime.Goexit()
			}
		}
		e := newTestEngine(net, delivery.Options{Sync: true}, o)
		for range 3 {
			var wg sync.WaitGroup
			wg.Go(func() { _ = e.Put(slog.LevelInfo, []byte("m")) })
			wg.Wait()
		}
		err := e.Close()
		s := e.Stats()
		balanced(t, s)
		if err != nil || s.Delivered != 2 || s.Reasons[delivery.ReasonPanicked] != 1 {
			t.Errorf("%v, %+v", err, s)
		}
	})
}

// Flush, Ready and Stats at any time with Close: before it, during it and after it; with contexts that are over already.
func TestEveryCallAroundClose(t *testing.T) {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	for _, syncMode := range []bool{false, true} {
		for _, dead := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				before := inBubble()
				net := newFakeNet(Limits{})
				name := &answer{set: addrs(2)}
				if dead {
					name.change(errors.New("no such host"))
				}
				e := newTestEngine(net, delivery.Options{Sync: syncMode, CloseTimeout: time.Second}, resolve.Options{Resolver: name})
				var wg sync.WaitGroup
				for i := range 8 {
					wg.Go(func() {
						for n := range 50 {
							ctx := over
							if n%2 == 0 {
								short, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
								defer cancel()
								ctx = short
							}
							began := time.Now()
							switch (i + n) % 4 {
							case 0:
								_ = e.Put(slog.LevelInfo, []byte("m"))
								began = time.Now() // it has its own time
							case 1:
								_ = e.Flush(ctx)
							case 2:
								if err := e.Ready(ctx); err == nil && dead {
									t.Error("ready without an address")
								}
							case 3:
								balanced(t, e.Stats())
							}
							if took := time.Since(began); took > 5*time.Millisecond {
								t.Errorf("call %d took %v", (i+n)%4, took)
							}
							time.Sleep(10 * time.Millisecond)
						}
					})
				}
				time.Sleep(250 * time.Millisecond)
				for range 2 {
					wg.Go(func() { _ = e.Close() })
				}
				wg.Wait()
				if err := e.Flush(over); err != nil {
					t.Errorf("Flush after Close: %v", err)
				}
				if err := e.Ready(over); !errors.Is(err, delivery.ErrClosed) {
					t.Errorf("Ready after Close: %v", err)
				}
				synctest.Wait()
				s := e.Stats()
				balanced(t, s)
				if open, _ := net.counts(""); s.Pending != 0 || open != 0 || inBubble() != before {
					t.Errorf("sync=%v dead=%v: %d links open, %d goroutines more, %+v", syncMode, dead, open, inBubble()-before, s)
				}
			})
		}
	}
}
