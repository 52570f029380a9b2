package ship

import (
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/jitter"
)

// A datagram address that is far away says only after a round trip that nobody listens. One record after each rest finds that out, and
// the backlog stays; once the address listens again, all of it leaves.
func TestOneRecordProbesABlindAddressAfterItsRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, roundTrip = 1000, 150 * time.Millisecond
		var mu sync.Mutex
		sent, dead := 0, true
		var heard time.Time // when the next send hears of a refusal
		net := newFakeNet(Limits{Blind: true, BatchRecords: 1})
		net.send = func(l *fakeLink, b *Batch) error {
			mu.Lock()
			defer mu.Unlock()
			if !dead {
				l.deliver(b)
				return nil
			}
			if !heard.IsZero() && !time.Now().Before(heard) {
				heard = time.Time{}
				b.Settle(0, b.Len(), Outcome{Do: Requeue, Cause: delivery.CauseRefused, Err: errors.New("connection refused")})
				return nil
			}
			if heard.IsZero() {
				heard = time.Now().Add(roundTrip)
			}
			sent++
			b.Settle(0, b.Len(), Outcome{Do: Delivered})
			return nil
		}
		e := newTestEngine(net, delivery.Options{Backoff: jitter.Backoff{Mode: jitter.None}}, resolveTo(addrs(1)...))
		defer e.Close()
		put := func(n int) {
			for range n {
				_ = e.Put(slog.LevelInfo, []byte("m"))
			}
			time.Sleep(roundTrip)
		}
		put(1) // is lost
		put(1) // hears of it, and waits
		mu.Lock()
		before := sent
		mu.Unlock()
		put(n)
		time.Sleep(20 * time.Second)
		mu.Lock()
		lost := sent - before
		dead = false
		mu.Unlock()
		if lost == 0 || lost > 20 {
			t.Errorf("%d records were sent to a dead address in 20 seconds", lost)
		}
		mustFlush(t, e)
		if got := net.total(); got != n+1-lost {
			t.Errorf("%d arrived of the %d that were not lost", got, n+1-lost)
		}
		_ = e.Close()
		balanced(t, e.Stats())
	})
}
