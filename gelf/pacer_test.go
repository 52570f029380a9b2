package gelf

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// checkRate fails when more than a burst and the rate's share left in any window that begins and ends with a datagram.
func checkRate(t *testing.T, sent []packet, rate int) {
	t.Helper()
	interval := time.Second / time.Duration(rate)
	for i := range sent {
		for j := i + burst; j < len(sent); j++ {
			window := sent[j].at.Sub(sent[i].at)
			if n, most := j-i+1, burst+int(window/interval); n > most {
				t.Fatalf("%d datagrams in %v, at most %d at %d/s", n, window, most, rate)
			}
		}
	}
}

func TestPacerRates(t *testing.T) {
	for _, c := range []struct {
		rate, messages int
		most           time.Duration // first to last datagram of a message
	}{
		{64, 3, 2 * time.Second},
		{100, 3, 2 * time.Second},
		{1000, 10, 130 * time.Millisecond},
		{10_000, 30, 14 * time.Millisecond},
		{1_000_000, 30, 5 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, udpConfig{packetRate: c.rate, chunkSize: 100, compression: CompressNone})
			start := time.Now()
			for range c.messages {
				from := len(r.sent)
				if err := r.send(t.Context(), recordOf(128*88, noise)); err != nil {
					t.Fatal(err)
				}
				message := r.sent[from:]
				if len(message) != 128 {
					t.Fatalf("%d datagrams", len(message))
				}
				if took := message[127].at.Sub(message[0].at); took > c.most {
					t.Errorf("%d/s: a message took %v", c.rate, took)
				}
			}
			checkRate(t, r.sent, c.rate)
			// What is allowed is used, too: but for the first burst the rate is the time.
			due := time.Duration(c.messages*128-burst) * time.Second / time.Duration(c.rate)
			if took := time.Since(start); took > due+due/20+2*quantum {
				t.Errorf("%d/s: %d messages took %v, %v are due", c.rate, c.messages, took, due)
			}
		})
	}
}

func TestPacerUnlimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, udpConfig{packetRate: -1, chunkSize: 100, compression: CompressNone})
		start := time.Now()
		for range 100 {
			if err := r.send(t.Context(), recordOf(128*88, noise)); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(start); took != 0 || len(r.sent) != 12_800 {
			t.Errorf("%d datagrams took %v", len(r.sent), took)
		}
	})
}

// A pause earns one burst, however long it was.
func TestPacerBurstAfterIdleness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(64)
		if n := p.take(1000, 0); n != burst {
			t.Errorf("a new pacer grants %d", n)
		}
		if n := p.take(1000, 0); n != 0 {
			t.Errorf("an empty one grants %d", n)
		}
		<-time.After(time.Hour)
		if n := p.take(1000, 0); n != burst {
			t.Errorf("after an hour it grants %d", n)
		}
	})
}

func TestPacerHead(t *testing.T) {
	for _, c := range []struct{ rate, n, want int }{
		{64, 128, 16}, {64, 112, 0}, {64, 1, -111}, {80, 128, -12}, {10_000, 128, 0}, {-1, 128, 0},
	} {
		if got := max(0, newPacer(c.rate).head(c.n)); got != max(0, c.want) {
			t.Errorf("%d/s, %d datagrams: head is %d, want %d", c.rate, c.n, got, c.want)
		}
	}
}

// Every wait of a pacer ends with Close and with the context, and what was not sent goes back to the queue, whole.
func TestPacerWaitsEnd(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(r *rig, cancel func())
		want string
		err  error
	}{
		"Close":            {func(r *rig, _ func()) { r.link.Close() }, "1 delivered, 2 requeue", net.ErrClosed},
		"canceled context": {func(_ *rig, cancel func()) { cancel() }, "1 delivered, 2 requeue", context.Canceled},
		"deadline":         {func(*rig, func()) {}, "1 delivered, 2 requeue", nil}, // the caller's time is over, the link is well
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, udpConfig{packetRate: 64, chunkSize: 100, compression: CompressNone})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			start := time.Now()
			result := make(chan error)
			go func() { result <- r.send(ctx, []byte(`{"a":1}`), recordOf(128*88, noise), []byte(`{"b":2}`)) }()
			synctest.Wait()
			r.mu.Lock()
			before := r.outcomes()
			r.mu.Unlock()
			if before != "1 delivered" {
				t.Errorf("%s: settled before the wait: %s", name, before)
			}
			c.end(r, cancel)
			if err := <-result; !errors.Is(err, c.err) {
				t.Errorf("%s: Send returned %v", name, err)
			}
			if took := time.Since(start); took != 0 && c.err != nil || took > time.Second {
				t.Errorf("%s: Send returned after %v", name, took)
			}
			if got := r.outcomes(); got != c.want {
				t.Errorf("%s: %s, want %s", name, got, c.want)
			}
		})
	}
}

// A link that waits for its pacer is slow and not stuck: the meter hears of it all the time.
func TestPacedLinkShowsProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, udpConfig{packetRate: 64, chunkSize: 100, compression: CompressNone})
		for range 2 {
			if err := r.send(t.Context(), recordOf(128*88, noise)); err != nil {
				t.Fatal(err)
			}
		}
		for i := range r.wire[1:] {
			if gap := r.wire[i+1].at.Sub(r.wire[i].at); gap > 20*time.Millisecond {
				t.Fatalf("nothing heard for %v", gap)
			}
		}
	})
}

// The kernel's "no room" is answered by a pause and a whole new message, a few times.
func TestBusyKernel(t *testing.T) {
	for _, c := range []struct {
		failures int
		want     string
		whole    int
	}{
		{1, "3 delivered", 1},
		{maxRestarts, "3 delivered", 1},
		{maxRestarts + 1, "1 delivered, 2 requeue busy", 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, udpConfig{chunkSize: 100, compression: CompressNone})
			r.failWrite = map[int]error{}
			for i := range c.failures {
				r.failWrite[1+3*(i+1)] = socketError(errBusy) // the third chunk of each attempt
			}
			start := time.Now()
			if err := r.send(t.Context(), []byte(`{"a":1}`), recordOf(500, noise), []byte(`{"b":2}`)); err != nil {
				t.Fatal(err)
			}
			got := r.outcomes()
			if got != c.want {
				t.Errorf("%d failures: %s, want %s", c.failures, got, c.want)
			}
			whole := 0
			for _, m := range r.messages(t, 100) {
				if len(m) == 500 {
					whole++
				}
			}
			if whole != c.whole {
				t.Errorf("%d failures: the message went %d times whole", c.failures, whole)
			}
			if took := time.Since(start); took > 30*time.Millisecond {
				t.Errorf("took %v", took)
			}
		})
	}
}
