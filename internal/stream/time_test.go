package stream

import (
	"context"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/delivery"
)

// pipe is a link over a connection without a kernel, in a bubble: a write lasts until the peer has read it. q stands for the kernel that
// tells what the peer's has acknowledged; nil: none tells.
func pipe(t *testing.T, c Config, q func(r *rig) queue) (*rig, net.Conn) {
	near, far := net.Pipe()
	tr := New(c)
	tr.dial = func(context.Context, string, string) (net.Conn, error) { return near, nil }
	r := &rig{t: t}
	tr.tune = func(net.Conn, *Config) (queue, error) {
		if q == nil {
			return nil, nil
		}
		return q(r), nil
	}
	l, err := tr.Dial(t.Context(), netip.AddrPort{}, r.meter())
	if err != nil {
		t.Fatal(err)
	}
	r.link = l.(*link)
	go func() {
		<-r.link.Gone()
		far.Close()
	}()
	return r, far
}

// drip reads n bytes at a time until the link ends.
func drip(r *rig, far net.Conn, every time.Duration, n int) {
	for {
		select {
		case <-time.After(every):
		case <-r.link.Gone():
			return
		}
		if _, err := far.Read(make([]byte, n)); err != nil {
			return
		}
	}
}

// never acknowledges.
func never(r *rig) queue {
	return func() (int, bool) { return int(r.link.wire.written.Load()), true }
}

// A write goes on as long as something moves, however long that takes; each move is told.
func TestSlowPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, far := pipe(t, config(), nil)
		go drip(r, far, 20*time.Second, 100) // each less than SendTimeout, but all of it is more
		start := time.Now()
		if err := r.send(strings.Repeat("x", 999)); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != 200*time.Second {
			t.Errorf("took %v", took)
		}
		if r.wire != 1000 || r.wires < 4 || r.settled() != "1 delivered" {
			t.Errorf("%d bytes with %d moves, %s", r.wire, r.wires, r.settled())
		}
		r.link.Close()
	})
}

// A write in which nothing moves ends after SendTimeout, whatever an earlier deadline left of it.
func TestSendTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, far := pipe(t, config(), nil)
		for range 2 {
			go func() { _, _ = io.ReadFull(far, make([]byte, 2)) }()
			if err := r.send("a"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Second)
		}
		start := time.Now()
		go func() { _, _ = io.ReadFull(far, make([]byte, 3)) }()
		err := r.send("b", "c", "d", "e")
		is(t, err, delivery.CauseTimeout, "")
		if took := time.Since(start); took < 30*time.Second || took > 60*time.Second {
			t.Errorf("took %v", took)
		}
		// b went whole and c in part; of d and e nothing left.
		if got := r.settled(); got != "2 delivered, 2 unsettled, 2 requeue" {
			t.Error(got)
		}
		r.link.Close()
	})
}

// In Sync mode the caller's time ends a write, moves or not.
func TestSendEndsWithItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, far := pipe(t, config(), nil)
		go drip(r, far, 100*time.Millisecond, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		is(t, r.link.Send(ctx, r.batch(strings.Repeat("x", 99))), delivery.CauseTimeout, "")
		if took := time.Since(start); took != time.Second {
			t.Errorf("took %v", took)
		}
		if got := r.settled(); got != "1 unsettled" {
			t.Error(got)
		}
		r.link.Close()
	})
}

// While something waits for the peer's word the kernel is asked, at first often, then ever more rarely. When nothing waits nobody asks:
// an idle link has no timer.
func TestAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked, acked atomic.Int64
		r, far := pipe(t, config(), func(r *rig) queue {
			return func() (int, bool) {
				asked.Add(1)
				return int(r.link.wire.written.Load()) - int(acked.Load()), true
			}
		})
		go func() { _, _ = io.Copy(io.Discard, far) }()
		questions := func(d time.Duration) int64 {
			synctest.Wait()
			before := asked.Load()
			time.Sleep(d)
			synctest.Wait()
			return asked.Load() - before
		}
		if n := questions(time.Hour); n != 0 {
			t.Errorf("%d questions though nothing was sent", n)
		}
		if err := r.send("a", "b"); err != nil {
			t.Fatal(err)
		}
		if n := questions(20 * time.Millisecond); n < 2 {
			t.Errorf("%d questions in the first 20 ms", n)
		}
		time.Sleep(time.Second)
		if n := questions(time.Second); n < 15 || n > 25 {
			t.Errorf("%d questions a second to one who waits long", n)
		}
		acked.Store(3) // a whole frame and a half
		time.Sleep(askLast)
		synctest.Wait()
		if got := r.settled(); got != "1 delivered, 1 unsettled" {
			t.Error(got)
		}
		time.Sleep(time.Second)
		acked.Store(4)
		r.link.Nudge()
		if got := r.settled(); got != "2 delivered" {
			t.Errorf("after a nudge: %s", got)
		}
		synctest.Wait()
		time.Sleep(askLast) // the timer that was set before the nudge
		if n := questions(time.Hour); n != 0 {
			t.Errorf("%d questions though nothing waits", n)
		}
		r.link.Close()
	})
}

// A nudge makes the next questions come soon.
func TestNudgeHurries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		r, far := pipe(t, config(), func(r *rig) queue {
			return func() (int, bool) { asked.Add(1); return 1 << 20, true }
		})
		go func() { _, _ = io.Copy(io.Discard, far) }()
		if err := r.send("a"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		before := asked.Load()
		r.link.Nudge()
		time.Sleep(7 * time.Millisecond)
		synctest.Wait()
		if n := asked.Load() - before; n != 3 {
			t.Errorf("%d questions in 7 ms after a nudge; want at once, after 2 and after 6", n)
		}
		r.link.Close()
	})
}

// A peer that acknowledges nothing for SendTimeout is given up though nobody writes.
func TestStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, far := pipe(t, config(), never)
		go func() { _, _ = io.Copy(io.Discard, far) }()
		if err := r.send("a"); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		<-r.link.Gone()
		if took := time.Since(start); took < 30*time.Second || took > 31*time.Second {
			t.Errorf("took %v", took)
		}
		is(t, r.link.Err(), delivery.CauseTimeout, "the peer takes nothing")
		r.link.Close()
	})
}

// Where the kernel does not tell, records are settled as they are written, and a break calls those of the last second unconfirmed.
func TestUnconfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, far := pipe(t, config(), nil)
		go func() { _, _ = io.Copy(io.Discard, far) }()
		for range 30 {
			if err := r.send("a", "b"); err != nil {
				t.Fatal(err)
			}
			if r.link.timer != nil {
				t.Fatal("a timer though nothing waits")
			}
			time.Sleep(100 * time.Millisecond)
		}
		if got := r.settled(); got != "60 delivered" {
			t.Error(got)
		}
		far.Close()
		is(t, r.gone(), delivery.CausePeerClosed, "")
		r.link.Close()
		if r.unconfirmed != 20 {
			t.Errorf("%d unconfirmed; want those of ten writes of two", r.unconfirmed)
		}
	})
}

// A peer that never answers FIN holds a goodbye up for a second, and what was settled stands.
func TestDrainWithoutAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, far := pipe(t, config(), nil)
		go func() { _, _ = io.Copy(io.Discard, far) }()
		if err := r.send("a"); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if err := r.link.Drain(t.Context()); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took != patience {
			t.Errorf("took %v", took)
		}
		r.link.Close()
		if r.settled() != "1 delivered" || r.unconfirmed != 0 {
			t.Errorf("%s, %d unconfirmed", r.settled(), r.unconfirmed)
		}
	})
}
