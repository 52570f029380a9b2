package ship

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/resolve"
)

// R52, R54: Flush and Close may run while others log, any number of times. Calls that wait for room when Close comes are told so, and
// count as dropped; nothing else is lost.
func TestR52_R54_CloseWhileLogging(t *testing.T) {
	for _, syncMode := range []bool{false, true} {
		net := newFakeNet(Limits{})
		e := newTestEngine(net, delivery.Options{Sync: syncMode, MaxBlock: time.Second}, resolveTo(addrs(3)...))
		var wg sync.WaitGroup
		var waited atomic.Int64
		for range 8 {
			wg.Go(func() {
				for {
					if err := e.Put(slog.LevelInfo, []byte("record")); err != nil {
						if !errors.Is(err, delivery.ErrClosed) {
							t.Error(err)
						}
						if d := (delivery.Drop{}); errors.As(err, &d) {
							waited.Add(1)
						}
						return
					}
					runtime.Gosched()
				}
			})
		}
		for range 20 {
			if err := e.Flush(context.Background()); err != nil {
				t.Error(err)
			}
		}
		for range 3 {
			wg.Go(func() {
				if err := e.Close(); err != nil && !errors.Is(err, delivery.ErrClosed) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		s := e.Stats()
		balanced(t, s)
		if uint64(net.total()) != s.Delivered || s.Pending != 0 || s.Dropped != uint64(waited.Load()) {
			t.Errorf("sync=%v: arrived %d, %+v", syncMode, net.total(), s)
		}
	}
}

// R55: after Close every goroutine has ended, also when nothing was ever logged. (In a bubble a goroutine that is left over fails
// the test.)
func TestR55_NothingIsLeft(t *testing.T) {
	for i := range 100 {
		synctest.Test(t, func(t *testing.T) {
			net := newFakeNet(Limits{})
			e := newTestEngine(net, delivery.Options{Sync: i%5 == 4}, resolveTo(addrs(3)...))
			switch i % 4 {
			case 1:
				_ = e.Put(slog.LevelInfo, []byte("m"))
			case 2:
				_ = e.Flush(context.Background())
			case 3:
				if err := e.Ready(context.Background()); err != nil {
					t.Fatal(err)
				}
			}
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			if net.open != 0 {
				t.Fatalf("%d links open", net.open)
			}
		})
	}
}

// An engine that is made and never used starts nothing and looks nothing up.
func TestNewStartsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := inBubble()
		e := newTestEngine(sink{}, delivery.Options{}, resolveTo(addrs(1)...))
		time.Sleep(time.Hour)
		if n := inBubble(); n != before || e.Stats().Lookups != 0 {
			t.Fatalf("%d goroutines, %d look-ups", n-before, e.Stats().Lookups)
		}
		_ = e.Close()
	})
}

// Ready says whether a record could leave now, and why not.
func TestReady(t *testing.T) {
	for _, sync := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			net := newFakeNet(Limits{})
			name := &answer{err: errors.New("no such host")}
			e := newTestEngine(net, delivery.Options{Sync: sync}, resolve.Options{Resolver: name})
			if err := e.Ready(context.Background()); err == nil || !strings.Contains(err.Error(), "no such host") {
				t.Fatalf("sync=%v: %v", sync, err)
			}
			name.change(nil, addrs(2)...)
			refused := errors.New("connection refused")
			for _, a := range addrs(2) {
				net.setRefuse(a, refused)
			}
			if err := e.Ready(context.Background()); !errors.Is(err, refused) || !strings.Contains(err.Error(), "connection refused") {
				t.Fatalf("sync=%v: %v", sync, err)
			}
			net.setRefuse(addrs(2)[1], nil)
			time.Sleep(time.Minute)
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if err := e.Ready(ctx); err != nil {
				t.Fatalf("sync=%v: %v", sync, err)
			}
			if s := e.Stats(); s.Accepted != 0 {
				t.Fatalf("%+v", s)
			}
			_ = e.Close()
			if err := e.Ready(ctx); !errors.Is(err, delivery.ErrClosed) {
				t.Fatalf("after Close: %v", err)
			}
		})
	}
}

// With PerProcess, Ready opens a link to the one address that will be used, and to no other.
func TestReadyPerProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newFakeNet(Limits{})
		e := newTestEngine(net, delivery.Options{}, resolve.Options{Resolver: &answer{set: addrs(5)}, Policy: resolve.PerProcess})
		if err := e.Ready(context.Background()); err != nil {
			t.Fatal(err)
		}
		_ = e.Put(slog.LevelInfo, []byte("m"))
		mustFlush(t, e)
		if len(net.dials) != 1 || net.open != 1 {
			t.Fatalf("dialled %v", net.dials)
		}
		_ = e.Close()
	})
}

// Close interrupts a dial that hangs and a look-up that hangs.
func TestCloseInterrupts(t *testing.T) {
	for _, hang := range []string{"dial", "look-up"} {
		synctest.Test(t, func(t *testing.T) {
			var net Transport = &slowDial{fakeNet: newFakeNet(Limits{}), addr: addrs(1)[0]}
			o := resolveTo(addrs(1)...)
			if hang == "look-up" {
				net, o.Resolver = sink{}, hangs{}
			}
			e := newTestEngine(net, delivery.Options{CloseTimeout: 200 * time.Millisecond, DialTimeout: time.Hour}, o)
			_ = e.Put(slog.LevelInfo, []byte("m"))
			time.Sleep(10 * time.Millisecond)
			began := time.Now()
			if err := e.Close(); !errors.Is(err, delivery.ErrClosed) {
				t.Fatalf("%s: %v", hang, err)
			}
			if took := time.Since(began); took > 250*time.Millisecond {
				t.Fatalf("%s: Close took %v", hang, took)
			}
			s := e.Stats()
			balanced(t, s)
			if s.Reasons[delivery.ReasonClosed] != 1 {
				t.Fatalf("%+v", s)
			}
		})
	}
}

// hangs is a resolver that never answers.
type hangs struct{}

func (hangs) Resolve(ctx context.Context) (resolve.Answer, error) {
	<-ctx.Done()
	return resolve.Answer{}, ctx.Err()
}

// RetryFor bounds how long a record is tried; without an address the reason says so.
func TestRetryFor(t *testing.T) {
	for _, tc := range []struct {
		name   string
		dns    error
		reason delivery.Reason
	}{{"nobody listens", nil, delivery.ReasonRetryExpired}, {"no address", errors.New("no such host"), delivery.ReasonNoEndpoint}} {
		synctest.Test(t, func(t *testing.T) {
			net := newFakeNet(Limits{})
			net.setRefuse(addrs(1)[0], errors.New("connection refused"))
			e := newTestEngine(net, delivery.Options{RetryFor: 5 * time.Second}, resolve.Options{Resolver: &answer{set: addrs(1), err: tc.dns}})
			defer e.Close()
			_ = e.Put(slog.LevelInfo, []byte("m"))
			time.Sleep(4900 * time.Millisecond)
			if s := e.Stats(); s.Pending != 1 || s.OldestPending < 4*time.Second {
				t.Fatalf("%s: %+v", tc.name, s)
			}
			time.Sleep(300 * time.Millisecond)
			if s := e.Stats(); s.Reasons[tc.reason] != 1 || s.Pending != 0 {
				t.Fatalf("%s: %+v", tc.name, s)
			}
		})
	}
}

// Ages look at both clocks: a frozen process advances only the wall clock, and a clock set back far says nothing any more.
func TestAgesByBothClocks(t *testing.T) {
	const max = time.Minute
	at := stamp{mono: time.Hour, wall: 1000 * int64(time.Hour)}
	for _, tc := range []struct {
		name       string
		mono, wall time.Duration
		over       bool
		age        time.Duration
	}{
		{"young", time.Second, time.Second, false, time.Second},
		{"old", 2 * max, 2 * max, true, 2 * max},
		{"frozen for hours", time.Second, 5 * time.Hour, true, 5 * time.Hour},
		{"wall clock stepped back a little", time.Second, -max / 2, false, time.Second},
		{"wall clock stepped back far", time.Second, -2 * max, true, time.Second},
		{"wall clock stands", 2 * max, 0, true, 2 * max},
	} {
		now := stamp{at.mono + tc.mono, at.wall + int64(tc.wall)}
		if got := at.over(now, max); got != tc.over {
			t.Errorf("%s: over %v", tc.name, got)
		}
		if got := at.age(now); got != tc.age {
			t.Errorf("%s: age %v", tc.name, got)
		}
	}
}

// A process that was frozen for hours expires what is too old by the wall clock as soon as it runs again.
func TestFrozenProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newFakeNet(Limits{})
		net.setRefuse(addrs(1)[0], errors.New("connection refused"))
		e := newTestEngine(net, delivery.Options{RetryFor: time.Minute}, resolveTo(addrs(1)...))
		defer e.Close()
		var mu sync.Mutex
		var frozen time.Duration
		e.clock.now = func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			t := time.Now()
			return t.Add(frozen) // in a bubble both readings move; the wall clock is what is tested
		}
		_ = e.Put(slog.LevelInfo, []byte("m"))
		time.Sleep(time.Second)
		mu.Lock()
		frozen = 3 * time.Hour
		mu.Unlock()
		_ = e.Put(slog.LevelInfo, []byte("after the thaw"))
		time.Sleep(time.Second)
		if s := e.Stats(); s.Reasons[delivery.ReasonRetryExpired] != 1 || s.Pending != 1 {
			t.Fatalf("%+v", s)
		}
	})
}

// In Sync mode Handle returns what became of the record: the next address is tried at once, and a peer that never answers costs
// SyncTimeout and no more.
func TestSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newFakeNet(Limits{})
		a := addrs(3)
		net.setRefuse(a[0], errors.New("connection refused"))
		net.send = func(l *fakeLink, b *Batch) error {
			if l.addr == a[1] {
				return errors.New("broken")
			}
			l.deliver(b)
			return nil
		}
		before := inBubble()
		e := newTestEngine(net, delivery.Options{Sync: true}, resolveTo(a...))
		for range 9 {
			if err := e.Put(slog.LevelInfo, []byte("m")); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if n := inBubble() - before; n != 0 {
			t.Fatalf("%d goroutines", n)
		}
		if n := len(net.received(a[2])); n != 9 {
			t.Fatalf("arrived %d", n)
		}
		net.mu.Lock()
		net.send = func(l *fakeLink, _ *Batch) error { <-l.closed; return errLinkClosed }
		net.mu.Unlock()
		_ = e.Close()
		balanced(t, e.Stats())
	})
	synctest.Test(t, func(t *testing.T) {
		net := newFakeNet(Limits{})
		net.send = func(*fakeLink, *Batch) error { return nil } // takes it and never says a word
		e := newTestEngine(net, delivery.Options{Sync: true, SyncTimeout: time.Second}, resolveTo(addrs(2)...))
		began := time.Now()
		err := e.Put(slog.LevelInfo, []byte("m"))
		var d delivery.Drop
		if !errors.As(err, &d) || d.Reason != delivery.ReasonSyncFailed || !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Fatalf("%v after %v", err, time.Since(began))
		}
		_ = e.Close()
		s := e.Stats()
		balanced(t, s)
		if s.Reasons[delivery.ReasonSyncFailed] != 1 {
			t.Fatalf("%+v", s)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		e := newTestEngine(newFakeNet(Limits{}), delivery.Options{Sync: true}, resolve.Options{Resolver: &answer{err: errors.New("no such host")}})
		err := e.Put(slog.LevelInfo, []byte("m"))
		if !errors.Is(err, delivery.ErrNoEndpoint) || !strings.Contains(err.Error(), "no such host") {
			t.Fatalf("%v", err)
		}
		_ = e.Close()
		balanced(t, e.Stats())
	})
}

// R57: many goroutines at once; every record arrives with its own content.
func TestR57_ManyGoroutines(t *testing.T) {
	for _, syncMode := range []bool{false, true} {
		net := newFakeNet(Limits{})
		e := newTestEngine(net, delivery.Options{Sync: syncMode, MaxBlock: time.Minute}, resolveTo(addrs(3)...))
		var wg sync.WaitGroup
		want := make(map[string]int)
		var mu sync.Mutex
		for g := range 50 {
			wg.Go(func() {
				for i := range 40 {
					m := strings.Repeat(string(rune('a'+g%26)), 1+g*i%700) + strings.Repeat("-", g)
					mu.Lock()
					want[m]++
					mu.Unlock()
					if err := e.Put(slog.LevelInfo, []byte(m)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		mustFlush(t, e)
		_ = e.Close()
		for _, a := range addrs(3) {
			for _, m := range net.received(a) {
				want[m]--
			}
		}
		for m, n := range want {
			if n != 0 {
				t.Errorf("%d too few of %.20q", n, m)
			}
		}
	}
}
