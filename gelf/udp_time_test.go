package gelf

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/pool"
	"github.com/wholelog/wholelog/internal/ship"
	"github.com/wholelog/wholelog/resolve"
)

// A write that blocks ends with the context's deadline and with Close; either way the records go back.
func TestBlockedWriteEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, udpConfig{})
		r.block = true
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		start := time.Now()
		err := r.send(ctx, []byte(`{"a":1}`), []byte(`{"b":2}`))
		if took := time.Since(start); err != nil || took != 10*time.Second { // the caller's time is over; the link may be well
			t.Errorf("after %v: %v", took, err)
		}
		if got := r.outcomes(); got != "2 requeue" {
			t.Error(got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, udpConfig{})
		r.block = true
		result := make(chan error)
		go func() { result <- r.send(t.Context(), []byte(`{"a":1}`)) }()
		synctest.Wait()
		var closes [3]chan error
		for i := range closes {
			closes[i] = make(chan error)
			go func() { closes[i] <- r.link.Close() }()
		}
		for _, c := range closes {
			if err := <-c; err != nil {
				t.Error(err)
			}
		}
		if err := <-result; !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
		if err := r.send(t.Context(), []byte(`{"a":1}`)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
		if got := r.settled[0].Outcome; got.Err != nil || got.Cause != "" {
			t.Errorf("Close is held against the address: %v", got)
		}
	})
}

// A write that blocks ends with SendTimeout though the context has no deadline: the engine's has none, but in Sync mode. The link ends,
// and nothing is held against the address twice.
func TestSendTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var errs []error
		c := udpConfig{chunkSize: 1232, flows: 1, flowAge: time.Minute, packetRate: -1, sendTimeout: time.Second}
		r := &rig{udpTransport: newUDP(c), block: true}
		r.dial = r.open
		e := ship.New(ship.Config{
			Name:    "gelf",
			Main:    ship.Route{Transport: r, Pool: pool.New(pool.Config{Options: resolve.Options{Resolver: resolve.Static(rigAddr.String())}})},
			Options: delivery.Options{OnError: func(err error) { errs = append(errs, err) }, CloseTimeout: time.Nanosecond},
		})
		if err := e.Put(slog.LevelInfo, []byte(`{"a":1}`)); err != nil {
			t.Fatal(err)
		}
		<-time.After(c.sendTimeout - time.Millisecond)
		if s := e.Stats().Endpoints[0]; len(s.Errors) > 0 {
			t.Errorf("before its time: %v", s.Errors)
		}
		<-time.After(2 * time.Millisecond)
		if s := e.Stats().Endpoints[0]; s.Errors[delivery.CauseTimeout] != 1 || len(s.Errors) != 1 || !r.flows[0].isClosed() {
			t.Errorf("past its time: %v", s.Errors)
		}
		if err := e.Close(); err == nil || len(errs) == 0 || !errors.Is(errs[0], os.ErrDeadlineExceeded) {
			t.Errorf("%v, %v", err, errs)
		}
	})
}

// A message's deadline is SendTimeout from now, or the context's if that is sooner.
func TestWriteDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, limit := range []time.Duration{2 * time.Second, 10 * time.Second, time.Hour} {
			r := newRig(t, udpConfig{flows: 1, flowAge: time.Hour})
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			if err := r.send(ctx, []byte(`{"a":1}`), []byte(`{"b":2}`)); err != nil {
				t.Fatal(err)
			}
			cancel()
			if left := time.Until(r.flows[0].deadline); left != min(limit, defaultSend) {
				t.Errorf("%v of %v left", left, limit)
			}
		}
	})
}

// A receiver forgets chunks that come too far apart. Slow writes never count as a delivery: the message starts over twice, and goes
// back to the queue.
func TestSlowChunksAreNoDelivery(t *testing.T) {
	for name, c := range map[string]struct{ rate, most int }{
		"in bursts":   {10_000, 3 * (20 + burst)},
		"all at once": {-1, 3 * 100},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, udpConfig{compression: CompressNone, packetRate: c.rate, sendTimeout: time.Minute})
			r.onWrite = func(int) { <-time.After(100 * time.Millisecond) }
			if err := r.send(t.Context(), []byte(`{"a":1}`), recordOf(100*1220, noise), []byte(`{"b":2}`)); err != nil {
				t.Fatal(err)
			}
			if got := r.outcomes(); got != "1 delivered, 2 requeue timeout" || r.writes > 1+c.most || !errors.Is(r.settled[1].Err, errLate) {
				t.Errorf("%s: %s after %d writes", name, got, r.writes)
			}
			if len(r.troubles) != maxLate || r.troubles[0].cause != delivery.CauseTimeout || len(r.chosen) != 2 {
				t.Errorf("%s: %v, %d choices", name, r.troubles, len(r.chosen))
			}
		})
	}
}

// A process that is frozen in the middle of a message sees the wall clock jump alone. The message is sent anew, whole and under another
// id, unless all of it left in time for the receiver to have it.
func TestFrozenWithinAMessage(t *testing.T) {
	for name, c := range map[string]struct {
		write int // of 100 chunks in bursts of 32, after which the clock jumps
		jump  time.Duration
		anew  bool
	}{
		"before it":                          {0, time.Hour, false},
		"after the first burst, for 3 s":     {32, 3 * time.Second, true},
		"after the first burst, for 1 s":     {32, time.Second, false},
		"after the first burst, set back":    {32, -3 * time.Second, true},
		"in the last burst, for 3 s":         {99, 3 * time.Second, false},
		"in the last burst, for an hour":     {99, time.Hour, true},
		"in the last burst, set back a year": {99, -365 * 24 * time.Hour, true},
		"after it":                           {101, time.Hour, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, udpConfig{compression: CompressNone, packetRate: 10_000, flowAge: 1e6 * time.Hour})
			jump := time.Duration(0)
			if c.write == 0 {
				jump = c.jump
			}
			r.link.(*udpLink).now = func() time.Time { return time.Now().Round(0).Add(jump) }
			r.onWrite = func(n int) {
				if n == c.write {
					jump = c.jump
				}
			}
			record := recordOf(100*1220, noise)
			if err := r.send(t.Context(), record, []byte(`{"b":2}`)); err != nil {
				t.Fatal(err)
			}
			if got := r.outcomes(); got != "2 delivered" || (len(r.troubles) > 0) != c.anew {
				t.Errorf("%s: %s, %v", name, got, r.troubles)
			}
			messages := r.messages(t, 1232)
			if last := messages[len(messages)-2]; !bytes.Equal(last, record) || (len(messages) == 3) != c.anew {
				t.Errorf("%s: %d messages, the last of %d bytes", name, len(messages), len(last))
			}
		})
	}
}

// What a message waits for the pacer is not taken from its writes.
func TestPacingIsNoWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, udpConfig{flows: 1, packetRate: 64, chunkSize: 100, compression: CompressNone, sendTimeout: 100 * time.Millisecond})
		began := time.Now()
		if err := r.send(t.Context(), recordOf(8000, noise), recordOf(8000, noise)); err != nil {
			t.Fatal(err)
		}
		if got := r.outcomes(); got != "2 delivered" || time.Since(began) < time.Second {
			t.Errorf("%s after %v", got, time.Since(began))
		}
	})
}
