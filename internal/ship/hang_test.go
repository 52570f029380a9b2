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
	"github.com/wholelog/wholelog/resolve"
)

// R46: what waits behind a link that hangs goes to the others. Only what it was sent, which it may have taken, stays with it.
func TestR46_OthersTakeWhatWaitsBehindALinkThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newFakeNet(Limits{BatchRecords: 10})
		a := addrs(3)
		net.send = hangAt(a[0])
		e := newTestEngine(net, delivery.Options{}, resolveTo(a...))
		for i := range 300 {
			_ = e.Put(slog.LevelInfo, fmt.Appendf(nil, "%03d", i))
		}
		time.Sleep(2 * time.Second)
		s := e.Stats()
		balanced(t, s)
		if s.Pending > 10 || net.total() < 290 {
			t.Errorf("%d of 300 arrived, %d are pending", net.total(), s.Pending)
		}
		if err := e.Close(); !errors.Is(err, delivery.ErrClosed) {
			t.Errorf("Close: %v", err)
		}
		if s = e.Stats(); s.Pending != 0 || s.Reasons[delivery.ReasonClosed] != s.Dropped {
			t.Errorf("%+v", s)
		}
	})
}

// SendTimeout ends a Send in which nothing moves, even if the link does not look at the time. One that moves may take longer.
func TestSendTimeout(t *testing.T) {
	for _, moves := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			net := newFakeNet(Limits{})
			a := addrs(1)[0]
			first := true
			net.send = func(l *fakeLink, b *Batch) error {
				if first && !moves {
					first = false
					return l.hang()
				}
				for range 10 {
					time.Sleep(800 * time.Millisecond)
					l.meter.Wire(1)
				}
				l.deliver(b)
				return nil
			}
			e := newTestEngine(net, delivery.Options{SendTimeout: time.Second}, resolveTo(a))
			_ = e.Put(slog.LevelInfo, []byte("m"))
			mustFlush(t, e)
			s := e.Stats()
			balanced(t, s)
			want := 1
			if !moves {
				want = 2
			}
			if _, dials := net.counts(a); dials != want || s.Resent != uint64(want-1) || s.Reconnects != uint64(want-1) || net.total() != 1 {
				t.Errorf("moves=%v: %d dials, arrived %d, %+v", moves, dials, net.total(), s)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A goodbye that only Close ends is ended: when the engine closes, when the link has reached its age, when its address leaves.
func TestDrainThatHangs(t *testing.T) {
	for _, why := range []string{"close", "age", "address left"} {
		for _, sync := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/sync=%v", why, sync), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					net := newFakeNet(Limits{})
					if why == "age" {
						net.limits.MaxAge = time.Second
					}
					net.meet = hangInDrain
					a := addrs(2)
					name := &answer{set: a[:1]}
					e := newTestEngine(net, delivery.Options{Sync: sync, CloseTimeout: time.Second, SendTimeout: time.Second},
						resolve.Options{Resolver: name, Refresh: time.Second})
					put := func() {
						if err := e.Put(slog.LevelInfo, []byte("m")); err != nil {
							t.Error(err)
						}
						time.Sleep(4 * time.Second)
					}
					put()
					if why == "address left" {
						name.change(nil, a[1])
					}
					put()
					put()
					if n := net.total(); n != 3 {
						t.Errorf("%d of 3 arrived", n)
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

// An address that leaves while a Send to it hangs does not escape Close: the link is closed, and its record is counted.
func TestR50_CloseEndsALinkWhoseAddressLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newFakeNet(Limits{})
		a := addrs(2)
		name := &answer{set: a[:1]}
		net.send = hangAt(a[0])
		e := newTestEngine(net, delivery.Options{CloseTimeout: time.Second, SendTimeout: time.Hour},
			resolve.Options{Resolver: name, Refresh: time.Second})
		_ = e.Put(slog.LevelInfo, []byte("m"))
		time.Sleep(time.Second)
		name.change(nil, a[1])
		time.Sleep(10 * time.Second)
		err := e.Close()
		s := e.Stats()
		balanced(t, s)
		if open, _ := net.counts(a[0]); !errors.Is(err, delivery.ErrClosed) || open != 0 || s.Pending != 0 || s.Reasons[delivery.ReasonClosed] != 1 {
			t.Errorf("Close: %v, %d links open, %+v", err, open, s)
		}
	})
}

// A panic in any method of a link or in a dial ends that link at most. It never reaches who logs, flushes or closes.
func TestPanicsInALink(t *testing.T) {
	for _, in := range []string{"dial", "send", "nudge", "drain", "close", "gone"} {
		for _, sync := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/sync=%v", in, sync), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					net := newFakeNet(Limits{Window: 1 << 10})
					var panicked atomic.Bool
					net.meet = func(_ *fakeLink, call string) {
						if call == in {
							panicked.Store(true)
							panic("in " + call)
						}
					}
					net.send = func(l *fakeLink, b *Batch) error {
						if in == "send" && panicked.CompareAndSwap(false, true) {
							panic("in send")
						}
						go func() { // there is something to flush, and a link to nudge
							time.Sleep(200 * time.Millisecond)
							l.deliver(b)
						}()
						return nil
					}
					e := newTestEngine(net, delivery.Options{Sync: sync, CloseTimeout: 2 * time.Second}, resolveTo(addrs(2)...))
					for range 3 {
						_ = e.Put(slog.LevelInfo, []byte("m"))
					}
					time.Sleep(100 * time.Millisecond)
					err := e.Close()
					s := e.Stats()
					balanced(t, s)
					if s.Pending != 0 || s.Delivered != uint64(net.total()) || !panicked.Load() {
						t.Errorf("arrived %d, panicked %v, %+v", net.total(), panicked.Load(), s)
					}
					if in != "dial" && (err != nil || s.Dropped > 0) {
						t.Errorf("Close: %v, %+v", err, s)
					}
				})
			})
		}
	}
}
