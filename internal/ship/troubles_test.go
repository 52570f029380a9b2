package ship

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/delivery"
)

// said collects what OnError is told, each with the time since it began.
type said struct {
	mu    sync.Mutex
	began time.Time
	lines []string
}

func (s *said) onError(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, fmt.Sprintf("%v %s", time.Since(s.began), err))
}

func (s *said) check(t *testing.T, want ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(s.lines) // kinds that are told at one moment come in any order
	if !slices.Equal(s.lines, want) {
		t.Errorf("told:\n%s\nwant:\n%s", strings.Join(s.lines, "\n"), strings.Join(want, "\n"))
	}
}

// Each kind of trouble is told once a second at most. What is kept back is told when the second is over, the last one with the number of
// those before it; nobody needs to wait for another one or for Close.
func TestTroublesAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &said{began: time.Now()}
		e := newTestEngine(sink{}, delivery.Options{OnError: s.onError}, resolveTo(addrs(1)...))
		at := func(when time.Duration, cause delivery.Cause, text string) {
			time.Sleep(time.Until(s.began.Add(when)))
			e.hooks.trouble(cause, errors.New(text))
			synctest.Wait()
		}
		at(0, delivery.CauseMTU, "first")
		at(0, delivery.CauseBusy, "busy")
		at(300*time.Millisecond, delivery.CauseMTU, "second")
		at(999*time.Millisecond, delivery.CauseMTU, "third")
		at(1500*time.Millisecond, delivery.CauseMTU, "fourth")
		at(5*time.Second, delivery.CauseMTU, "fifth")
		at(6*time.Second, delivery.CauseMTU, "sixth")
		at(6999*time.Millisecond, delivery.CauseMTU, "at the end")
		_ = e.Close()
		s.check(t, "0s test: busy", "0s test: first", "1s test: third (and 1 more like it before)", "2s test: fourth", "5s test: fifth",
			"6.999s test: at the end", "6s test: sixth")
	})
}

// A hook that is slow gets one of a kind at a time; what came meanwhile is told when it returns, and every one is in some count.
func TestTroublesOfASlowHook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &said{began: time.Now()}
		e := newTestEngine(sink{}, delivery.Options{OnError: func(err error) {
			s.onError(err)
			time.Sleep(2500 * time.Millisecond)
		}}, resolveTo(addrs(1)...))
		for range 100 {
			e.hooks.trouble(delivery.CauseMTU, errors.New("long"))
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		_ = e.Close()
		sum := 0
		for _, line := range s.lines {
			var at, name string
			more := 0
			_, _ = fmt.Sscanf(line, "%s %s long (and %d more", &at, &name, &more)
			sum += 1 + more
		}
		if sum != 100 || len(s.lines) != 6 {
			t.Errorf("%d of 100 were told:\n%s", sum, strings.Join(s.lines, "\n"))
		}
	})
}

// In Sync mode there is no timer: the end of a call tells what is due, and Close the rest.
func TestTroublesInSyncMode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &said{began: time.Now()}
		e := newTestEngine(sink{}, delivery.Options{Sync: true, OnError: s.onError}, resolveTo(addrs(1)...))
		for range 3 {
			e.hooks.trouble(delivery.CauseMTU, errors.New("long"))
		}
		_ = e.Put(slog.LevelInfo, []byte("m"))
		time.Sleep(2 * time.Second)
		_ = e.Put(slog.LevelInfo, []byte("m"))
		e.hooks.trouble(delivery.CauseMTU, errors.New("longer"))
		_ = e.Put(slog.LevelInfo, []byte("m"))
		_ = e.Close()
		s.check(t, "0s test: long", "2s test: long (and 1 more like it before)", "2s test: longer")
	})
}

// After Close nothing is told any more, neither what was kept back nor what comes then from whatever did not end in time; nor does a
// timer go on.
func TestNothingIsToldAfterClose(t *testing.T) {
	for _, syncMode := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			before := inBubble()
			var mu sync.Mutex
			closed, late := false, 0
			hook := func() {
				mu.Lock()
				defer mu.Unlock()
				if closed {
					late++
				}
			}
			e := newTestEngine(rejecting(), delivery.Options{
				Sync: syncMode, OnError: func(error) { hook() }, OnDrop: func(delivery.Drop) { hook() },
			}, resolveTo(addrs(1)...))
			say := func() {
				e.hooks.trouble(delivery.CauseMTU, errors.New("long"))
				e.hooks.drop(&delivery.Drop{Records: 1, Reason: delivery.ReasonRejected})
			}
			say()
			say()
			_ = e.Put(slog.LevelInfo, []byte("m"))
			_ = e.Close()
			mu.Lock()
			closed = true
			mu.Unlock()
			say()
			time.Sleep(10 * time.Second)
			say()
			synctest.Wait()
			if late > 0 || inBubble() != before {
				t.Errorf("sync=%v: %d calls after Close, %d goroutines more", syncMode, late, inBubble()-before)
			}
		})
	}
}

// Whoever calls Close while another Close is under way inside a hook comes back after the last hook call, too.
func TestCloseReturnsAfterAHookThatClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e *Engine
		closing := make(chan struct{})
		done := false
		e = newTestEngine(rejecting(), delivery.Options{OnDrop: func(d delivery.Drop) {
			if d.Level == slog.LevelInfo {
				close(closing)
				_ = e.Close()
				time.Sleep(500 * time.Millisecond)
				return
			}
			done = true
		}}, resolveTo(addrs(1)...))
		_ = e.Put(slog.LevelInfo, []byte("m"))
		_ = e.Put(slog.LevelWarn, []byte("m"))
		<-closing
		_ = e.Close()
		if !done {
			t.Error("Close returned before the last hook call")
		}
	})
}

// A hook that holds Close up for longer than that waits is the last one that is called, whenever it returns.
func TestNoHookFollowsOneThatHeldCloseUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		release := make(chan struct{})
		e := newTestEngine(rejecting(), delivery.Options{CloseTimeout: time.Second, OnDrop: func(delivery.Drop) {
			calls++
			<-release
		}}, resolveTo(addrs(1)...))
		_ = e.Put(slog.LevelInfo, []byte("m"))
		_ = e.Put(slog.LevelWarn, []byte("m"))
		if err := e.Close(); err == nil {
			t.Error("Close had nothing to say")
		}
		close(release)
		synctest.Wait()
		if calls != 1 {
			t.Errorf("%d calls", calls)
		}
	})
}
