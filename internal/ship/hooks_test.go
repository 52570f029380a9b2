package ship

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/resolve"
)

// rejecting refuses every record.
func rejecting() *fakeNet {
	net := newFakeNet(Limits{})
	net.send = func(_ *fakeLink, b *Batch) error {
		b.Settle(0, b.Len(), Outcome{Do: Drop, Reason: delivery.ReasonRejected, Err: errors.New("no")})
		return nil
	}
	return net
}

// R58: a hook may log through the handler without deadlock or recursion, and a panic in it stops nothing.
func TestR58_HooksMayLogAndPanic(t *testing.T) {
	for _, sync := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var e *Engine
			calls, records := 0, 0
			e = newTestEngine(rejecting(), delivery.Options{Sync: sync, OnDrop: func(d delivery.Drop) {
				calls++
				records += d.Records
				if calls > 100 {
					t.Error("the hook calls itself")
					return
				}
				_ = e.Put(slog.LevelWarn, []byte("from the hook"))
				_ = e.Flush(context.Background())
				panic("the hook panics")
			}}, resolveTo(addrs(1)...))
			for range 3 {
				_ = e.Put(slog.LevelInfo, []byte("m"))
				_ = e.Flush(context.Background())
				time.Sleep(time.Second)
			}
			_ = e.Close()
			s := e.Stats()
			balanced(t, s)
			if calls != 3 || records != 3 || s.Dropped != 6 {
				t.Fatalf("sync=%v: %d calls for %d records, %+v", sync, calls, records, s)
			}
		})
	}
}

// Close from inside a hook does not wait for that hook.
func TestCloseFromAHook(t *testing.T) {
	for _, sync := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var e *Engine
			closed := make(chan struct{})
			e = newTestEngine(rejecting(), delivery.Options{Sync: sync, OnDrop: func(delivery.Drop) {
				_ = e.Close()
				close(closed)
			}}, resolveTo(addrs(1)...))
			_ = e.Put(slog.LevelInfo, []byte("m"))
			<-closed
			_ = e.Close()
		})
	}
}

// Losses are summed per reason, address and level while the hook is busy, and the sums equal Stats. A single loss comes with its
// data.
func TestDropsAreSummed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []delivery.Drop
		inHook, release := make(chan struct{}), make(chan struct{})
		e := newTestEngine(rejecting(), delivery.Options{OnDrop: func(d delivery.Drop) {
			if len(got) == 0 {
				close(inHook)
				<-release
			}
			got = append(got, d)
		}}, resolveTo(addrs(1)...))
		_ = e.Put(slog.LevelError, []byte("first"))
		<-inHook
		for range 10 {
			_ = e.Put(slog.LevelInfo, []byte("info"))
		}
		_ = e.Put(slog.LevelWarn, []byte("warning"))
		mustFlush(t, e)
		close(release)
		_ = e.Close()
		if len(got) != 3 || string(got[0].Data) != "first" || string(got[2].Data) != "warning" || got[2].Level != slog.LevelWarn {
			t.Fatalf("%+v", got)
		}
		if d := got[1]; d.Records != 10 || d.Bytes != 40 || d.Data != nil || d.Level != slog.LevelInfo ||
			d.Addr.String() != addrs(1)[0] || d.Reason != delivery.ReasonRejected || d.Err.Error() != "no" {
			t.Fatalf("%+v", d)
		}
	})
}

// A hook that never returns holds Close up for CloseTimeout, not longer.
func TestCloseDoesNotWaitForEverForAHook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		e := newTestEngine(rejecting(), delivery.Options{CloseTimeout: time.Second, OnDrop: func(delivery.Drop) { <-release }}, resolveTo(addrs(1)...))
		_ = e.Put(slog.LevelInfo, []byte("m"))
		mustFlush(t, e)
		began := time.Now()
		if err := e.Close(); err == nil || !strings.Contains(err.Error(), "hook") || time.Since(began) > 3*time.Second {
			t.Fatalf("Close: %v after %v", err, time.Since(began))
		}
		close(release)
	})
}

// More kinds of loss than the hook keeps apart are still counted.
func TestManyKindsOfLoss(t *testing.T) {
	sum := 0
	block := make(chan struct{})
	h := newHooks("test", delivery.Options{OnDrop: func(d delivery.Drop) { <-block; sum += d.Records }, OnError: func(error) {}})
	for i := range 1000 {
		h.drop(&delivery.Drop{Records: 1, Reason: delivery.ReasonRejected, Addr: addrPort(fmt.Sprintf("192.0.2.1:%d", i+1))})
	}
	if n := len(h.drops); n > maxDropKinds+2 {
		t.Errorf("%d kinds are kept", n)
	}
	close(block)
	if err := h.finish(time.Minute); err != nil || sum != 1000 {
		t.Fatalf("%d of 1000 were told, %v", sum, err)
	}
}

// The trace sees every choice; a panic in it stops nothing.
func TestTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newFakeNet(Limits{})
		net.send = func(l *fakeLink, b *Batch) error {
			l.meter.Chose(addrPort("127.0.0.1:5000"), b.Len(), 7, "because")
			l.deliver(b)
			return nil
		}
		var mu sync.Mutex
		var seen []resolve.Choice
		o := resolveTo(addrs(1)...)
		o.Trace = func(c resolve.Choice) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, c)
			panic("trace")
		}
		e := newTestEngine(net, delivery.Options{}, o)
		_ = e.Put(slog.LevelInfo, []byte("m"))
		mustFlush(t, e)
		_ = e.Close()
		want := resolve.Choice{Time: seen[0].Time, Addr: addrPort(addrs(1)[0]), Local: addrPort("127.0.0.1:5000"), Records: 1, Bytes: 7, Why: "because"}
		if len(seen) != 1 || seen[0] != want || want.Time.IsZero() {
			t.Fatalf("%+v", seen)
		}
	})
}
