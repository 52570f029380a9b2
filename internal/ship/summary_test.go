package ship

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/pool"
)

// told encodes the library's own record as tests like to read it.
func told(dst []byte, r slog.Record) []byte {
	dst = fmt.Appendf(dst, "%v %s", r.Level, r.Message)
	r.Attrs(func(a slog.Attr) bool {
		dst = fmt.Appendf(dst, " %v", a)
		return true
	})
	return dst
}

// summing makes an engine with a summary.
func summing(net Transport, o delivery.Options, own func([]byte, slog.Record) []byte) *Engine {
	o.Summary, o.OnError = true, func(error) {}
	e := New(Config{Name: "test", Main: Route{net, pool.New(pool.Config{Options: resolveTo(addrs(1)...)})}, Options: o, Own: own})
	e.hooks.print = func(error) {}
	return e
}

// The record says how many were lost, and for which reasons, in a fixed order.
func TestSummaryText(t *testing.T) {
	r := summaryRecord([]reasonCount{{delivery.ReasonTooLarge, 2}, {delivery.ReasonClosed, 1}, {delivery.ReasonEvicted, 40}})
	if got, want := string(told(nil, r)), "WARN log records were lost lost=43 reasons=[closed=1 evicted=40 too_large=2]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// What a summary could not tell, because it could not be encoded, was too long, found no room or did not arrive, the next one tells.
func TestSummaryTellsWhatTheLastOneCouldNot(t *testing.T) {
	for _, tc := range []struct {
		why  string
		sync bool
		own  func(e *Engine) []byte // of the first one
	}{
		{"nothing", false, func(*Engine) []byte { return nil }},
		{"too long", false, func(e *Engine) []byte { return make([]byte, e.MaxRecord()+1) }},
		{"a panic", false, func(*Engine) []byte { panic("in the encoder") }},
		{"no room", false, func(e *Engine) []byte {
			for e.Put(slog.LevelError, make([]byte, e.MaxRecord())) == nil {
			}
			return make([]byte, e.MaxRecord())
		}},
		{"not delivered", true, func(*Engine) []byte { return []byte("bad") }},
	} {
		t.Run(tc.why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := newFakeNet(Limits{})
				gate := make(chan struct{})
				net.send = func(l *fakeLink, b *Batch) error {
					if tc.why == "no room" {
						<-gate
					}
					if string(b.At(0).Bytes()) == "bad" {
						b.Settle(0, b.Len(), Outcome{Do: Drop, Reason: delivery.ReasonRejected})
						return nil
					}
					l.deliver(b)
					return nil
				}
				var e *Engine
				calls := 0
				e = summing(net, delivery.Options{QueueBytes: 512 << 10, Overflow: delivery.DropNewest, Sync: tc.sync}, func(dst []byte, r slog.Record) []byte {
					if calls++; calls == 1 {
						return tc.own(e)
					}
					return told(dst, r)
				})
				_ = e.Refuse(slog.LevelInfo, 1, delivery.ReasonPanicked, errors.New("panic"))
				_ = e.Put(slog.LevelInfo, []byte("m"))
				time.Sleep(time.Second)
				close(gate)
				time.Sleep(summaryEvery)
				_ = e.Put(slog.LevelInfo, []byte("m"))
				time.Sleep(time.Second)
				s := e.Stats()
				balanced(t, s)
				got := net.received(addrs(1)[0])
				want := "WARN log records were lost lost=1 reasons=[panic=1]"
				if tc.why == "no room" {
					want = "WARN log records were lost lost=2 reasons=[panic=1 queue_full=1]"
				}
				found := 0
				for _, m := range got {
					if m == want {
						found++
					}
				}
				if found != 1 || calls != 2 {
					t.Errorf("told %d times in %d calls: %.200q", found, calls, got)
				}
				_ = e.Close()
			})
		})
	}
}

// Who wants no summary, or has no encoder for it, gets none; nor does one leave after Close has begun.
func TestNoSummary(t *testing.T) {
	lose := func(e *Engine) {
		_ = e.Refuse(slog.LevelInfo, 1, delivery.ReasonPanicked, nil)
		time.Sleep(time.Minute)
	}
	synctest.Test(t, func(t *testing.T) {
		net := newFakeNet(Limits{})
		e := summing(net, delivery.Options{}, nil)
		_ = e.Put(slog.LevelInfo, []byte("m"))
		lose(e)
		_ = e.Close()
		if net.total() != 1 || len(e.summary.lost) != 0 {
			t.Errorf("%v, %v", net.received(addrs(1)[0]), e.summary.lost)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		e := summing(newFakeNet(Limits{}), delivery.Options{}, told)
		_ = e.Close()
		if e.putOwn([]byte("m"), time.Time{}) {
			t.Error("sent after Close")
		}
		e.mu.Lock()
		e.summary.losses(delivery.ReasonRejected, 1)
		if wait := e.summarise(e.clock.stamp(), time.Time{}); wait != never || e.summary.pending {
			t.Errorf("due after Close: in %v", wait)
		}
		e.mu.Unlock()
		if s := e.Stats(); s.Own != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// A second one is due 10 s after the first, and none while one is on its way.
func TestSummaryIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := summing(newFakeNet(Limits{}), delivery.Options{}, told)
		began := e.clock.stamp()
		at := func(after time.Duration) time.Duration {
			e.mu.Lock()
			defer e.mu.Unlock()
			return e.summarise(stamp{mono: began.mono + after, wall: began.wall + int64(after)}, time.Time{})
		}
		lose := func() {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.summary.losses(delivery.ReasonRejected, 1)
		}
		if wait := at(0); wait != never {
			t.Errorf("nothing was lost: due in %v", wait)
		}
		lose()
		if wait := at(0); wait != never || !e.summary.pending || e.summary.lost != nil {
			t.Errorf("the first one is not on its way: %v", wait)
		}
		if lose(); at(time.Hour) != never || len(e.summary.lost) != 1 {
			t.Error("a second one beside the first")
		}
		synctest.Wait()
		if wait := at(3 * time.Second); wait != summaryEvery-3*time.Second+time.Millisecond {
			t.Errorf("due in %v", wait)
		}
		if wait := at(summaryEvery + 1); wait != never || !e.summary.pending {
			t.Errorf("not due after %v: %v", summaryEvery, wait)
		}
		_ = e.Close()
	})
}
