package ship

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/jitter"
	"github.com/wholelog/wholelog/resolve"
)

// deaf is a datagram network in which nobody listens at one address: what is sent there is gone, and the next send hears of it.
func deaf(at string) *fakeNet {
	net := newFakeNet(Limits{Blind: true, BatchRecords: 1}) // as each datagram is on its own
	pending := false
	net.send = func(l *fakeLink, b *Batch) error {
		if l.addr != at {
			l.deliver(b)
			return nil
		}
		if pending {
			pending = false
			b.Settle(0, b.Len(), Outcome{Do: Requeue, Cause: delivery.CauseRefused, Err: errors.New("connection refused")})
			return nil
		}
		pending = true
		b.Settle(0, b.Len(), Outcome{Do: Delivered})
		return nil
	}
	return net
}

// A refusal counts though the datagram after it was taken without a word, in Sync mode as in the pipeline: the address rests longer
// and longer, so that few records are lost to it, and PerProcess chooses another one.
func TestRefusalsOfADatagramAddressCount(t *testing.T) {
	for _, policy := range []resolve.Policy{resolve.PerMessage, resolve.PerProcess} {
		for _, sync := range []bool{false, true} {
			for range 5 { // PerProcess begins at either
				synctest.Test(t, func(t *testing.T) {
					a := addrs(2)
					net := deaf(a[0])
					e := newTestEngine(net, delivery.Options{Sync: sync, Backoff: jitter.Backoff{Mode: jitter.None}},
						resolve.Options{Resolver: &answer{set: a}, Policy: policy})
					defer e.Close()
					const n = 3000
					for range n {
						_ = e.Put(slog.LevelInfo, []byte("m"))
						time.Sleep(10 * time.Millisecond)
					}
					mustFlush(t, e)
					if got := len(net.received(a[1])); got < n-12 {
						t.Errorf("%v, sync=%v: %d of %d arrived", policy, sync, got, n)
					}
					if s := e.Stats(); s.Dropped != 0 {
						t.Errorf("%+v", s)
					}
				})
			}
		}
	}
}

// In Sync mode a log call does not wait for a look-up that is not due: it fails at once, with the reason.
func TestSyncFailsAtOnceWithoutAnAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newTestEngine(sink{}, delivery.Options{Sync: true}, resolve.Options{Resolver: &answer{err: errors.New("no such host")}})
		defer e.Close()
		began := time.Now()
		for range 10 {
			err := e.Put(slog.LevelInfo, []byte("m"))
			if !errors.Is(err, delivery.ErrNoEndpoint) || !strings.Contains(err.Error(), "no such host") || strings.Contains(err.Error(), "\n") {
				t.Fatalf("%q", err)
			}
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("10 calls took %v", took)
		}
	})
}

// What Close has to drop says what kept it: a name that never resolved, or the address that refused last.
func TestCloseSaysWhatKeptRecords(t *testing.T) {
	for want, r := range map[string]resolve.Options{
		"no such host":       {Resolver: &answer{err: errors.New("no such host")}},
		"connection refused": resolveTo(addrs(1)...),
	} {
		synctest.Test(t, func(t *testing.T) {
			net := newFakeNet(Limits{})
			net.setRefuse(addrs(1)[0], errors.New("connection refused"))
			var told error
			e := newTestEngine(net, delivery.Options{OnDrop: func(d delivery.Drop) { told = d.Err }}, r)
			_ = e.Put(slog.LevelInfo, []byte("m"))
			time.Sleep(time.Second)
			err := e.Close()
			for _, err := range []error{err, told} {
				if !errors.Is(err, delivery.ErrClosed) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
					t.Errorf("%q, want %q in it", err, want)
				}
			}
		})
	}
}
