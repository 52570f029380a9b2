package ship

import (
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/resolve"
)

// A link that returns from Send and never says what became of its records is ended, after SendTimeout without a sign of life and before
// another one has passed; what it had goes elsewhere. One that shows that it moves is left alone.
func TestALinkThatNeverSettlesIsEnded(t *testing.T) {
	const timeout = 10 * time.Second
	for _, moves := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			net := newFakeNet(Limits{Window: 1 << 20})
			forgets := true
			net.send = func(l *fakeLink, b *Batch) error {
				if !forgets {
					l.deliver(b)
					return nil
				}
				forgets = false
				l.acks.Go(func() { // polls, as one that waits for acknowledgements does
					for range 30 {
						select {
						case <-time.After(timeout / 2):
						case <-l.closed:
							return
						}
						if moves {
							l.meter.Wire(1)
						}
					}
					l.deliver(b)
				})
				return nil
			}
			e := newTestEngine(net, delivery.Options{SendTimeout: timeout}, resolveTo(addrs(1)...))
			defer e.Close()
			_ = e.Put(slog.LevelInfo, []byte("m"))
			began := time.Now()
			mustFlushWithin(t, e, time.Hour)
			took := time.Since(began)
			s := e.Stats()
			balanced(t, s)
			if moves && (took != 15*timeout || s.Resent != 0) || !moves && (took < timeout || took > 2*timeout+time.Second || s.Resent != 1) {
				t.Errorf("moves=%v: flushed after %v, %+v", moves, took, s)
			}
			if n := s.Endpoints[0].Errors[delivery.CauseTimeout]; n != s.Resent {
				t.Errorf("moves=%v: %d timeouts", moves, n)
			}
		})
	}
}

// The time of one Send does not count for the next, nor that of a link for the one after it.
func TestEachSendHasItsOwnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = time.Second
		net := newFakeNet(Limits{})
		net.send = func(l *fakeLink, b *Batch) error {
			time.Sleep(timeout - time.Millisecond) // nothing is seen to move
			l.deliver(b)
			return nil
		}
		e := newTestEngine(net, delivery.Options{SendTimeout: timeout}, resolveTo(addrs(1)...))
		for range 20 {
			_ = e.Put(slog.LevelInfo, []byte("m"))
			time.Sleep(timeout / 3)
		}
		mustFlush(t, e)
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if s := e.Stats(); s.Resent != 0 || s.Reconnects != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// The same when the address has left, and while links are replaced: what was silent then does not end the next link.
func TestSilenceEndsWithItsLink(t *testing.T) {
	for _, how := range []string{"age", "address left"} {
		synctest.Test(t, func(t *testing.T) {
			net := newFakeNet(Limits{Window: 1 << 20, MaxAge: 5 * time.Second})
			if how != "age" {
				net.limits.MaxAge = 0
			}
			var speaks atomic.Bool
			net.send = func(l *fakeLink, b *Batch) error {
				if speaks.Load() {
					l.deliver(b)
				}
				return nil
			}
			name := &answer{set: addrs(1)}
			e := newTestEngine(net, delivery.Options{SendTimeout: 10 * time.Second}, resolve.Options{Resolver: name, Refresh: time.Second})
			defer e.Close()
			_ = e.Put(slog.LevelInfo, []byte("m"))
			time.Sleep(time.Second)
			speaks.Store(true)
			if how != "age" {
				name.change(nil, addrs(2)[1])
			}
			for range 60 {
				_ = e.Put(slog.LevelInfo, []byte("m"))
				time.Sleep(time.Second)
			}
			mustFlush(t, e)
			s := e.Stats()
			if balanced(t, s); s.Delivered != 61 || s.Resent != 1 {
				t.Errorf("%s: %+v", how, s)
			}
		})
	}
}
