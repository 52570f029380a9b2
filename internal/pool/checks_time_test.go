package pool

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/resolve"
)

// Checks begin with the first look-up, at a random moment of an interval for each address, and end with Close.
func TestChecksAreSpread(t *testing.T) {
	for _, every := range []time.Duration{0, time.Second} {
		synctest.Test(t, func(t *testing.T) {
			const n = 200
			check := new(checker)
			check.give("", resolve.Report{}, nil)
			r := newRig(t, resolve.Options{Refresh: time.Hour, Check: check, CheckEvery: every}, numbered(n)...)
			interval := every
			if every == 0 {
				interval = 3 * time.Second
			}
			pass(time.Minute)
			if len(check.at(addrOf(0))) > 0 {
				t.Error("checked before the first look-up")
			}
			r.driven(t)
			began := time.Now()
			pass(20 * interval)
			var tenths [10]int
			for _, a := range numbered(n) {
				at := check.at(a)
				tenths[min(at[0].Sub(began)*10/interval, 9)]++
				between(t, "the first", at[0].Sub(began), 0, interval+leastSweep)
				for i := range len(at) - 1 {
					between(t, "distance", at[i+1].Sub(at[i]), interval*8/10-leastSweep, interval+leastSweep)
				}
			}
			if slices.Max(tenths[:]) > n/10*3 {
				t.Errorf("first checks by tenth of the interval: %v", tenths)
			}
			r.Close()
			before := len(check.at(addrOf(0)))
			pass(10 * interval)
			if after := len(check.at(addrOf(0))); after != before {
				t.Errorf("checked %d times after Close", after-before)
			}
		})
	}
}

// The time of a check is half of the interval.
func TestChecksHaveATimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, check := checkRig(t, addrA)
		check.do = func(ctx context.Context, _ string) (resolve.Report, error) {
			<-ctx.Done()
			return resolve.Report{}, ctx.Err()
		}
		r.driven(t)
		for len(check.at(addrA)) == 0 {
			pass(time.Millisecond)
		}
		pass(1490 * time.Millisecond)
		if text, _ := r.Text(netip.MustParseAddrPort(addrA)); text != "" {
			t.Errorf("%q before the time was over", text)
		}
		pass(20 * time.Millisecond)
		if text, _ := r.Text(netip.MustParseAddrPort(addrA)); text != "check: context deadline exceeded" {
			t.Errorf("%q", text)
		}
	})
}

// A clock that is set, either way, neither stops the checks nor makes all of them at once. A process that was frozen checks again with
// the first record it sends, and each address once within an interval.
func TestChecksAndClockJumps(t *testing.T) {
	for _, jump := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			check := new(checker)
			check.give("", resolve.Report{}, nil)
			r := newRig(t, resolve.Options{Refresh: time.Hour, Check: check}, numbered(50)...)
			var mu sync.Mutex
			var shift time.Duration
			r.now = func() time.Time {
				mu.Lock()
				defer mu.Unlock()
				return time.Now().Round(0).Add(shift)
			}
			r.kick()
			pass(10 * time.Second)
			before := len(check.at(addrOf(0)))
			mu.Lock()
			shift = jump
			mu.Unlock()
			jumped := time.Now()
			r.Kick()
			pass(9 * time.Second)
			atOnce := 0
			for _, a := range numbered(50) {
				at := check.at(a)[before-1:]
				at = slices.DeleteFunc(at, func(x time.Time) bool { return x.Before(jumped) })
				if len(at) < 2 || len(at) > 4 {
					t.Errorf("%d checks in 9 s after a jump of %v", len(at), jump)
					continue
				}
				if at[0].Sub(jumped) < 100*time.Millisecond {
					atOnce++
				}
			}
			if atOnce > 15 {
				t.Errorf("%d of 50 checked at once after a jump of %v", atOnce, jump)
			}
		})
	}
}

// A new address is checked within an interval, one that left is not checked any more, and nothing of it stays.
func TestChecksFollowTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		check := new(checker)
		check.give(addrA, resolve.Report{State: resolve.Maint}, nil)
		r := newRig(t, resolve.Options{Refresh: time.Second, Check: check}, addrA)
		r.driven(t)
		pass(4 * time.Second)
		r.wantStates(t, "A", "maint")
		r.script.answer(addrB)
		pass(3 * time.Second)
		gone := len(check.at(addrA))
		pass(3 * time.Second)
		r.wantStates(t, "B", "up")
		if len(check.at(addrB)) == 0 || len(check.at(addrA)) != gone {
			t.Errorf("A %d times after it left, B %d times", len(check.at(addrA))-gone, len(check.at(addrB)))
		}
		r.script.answer(addrA)
		pass(5 * time.Second)
		r.wantStates(t, "A again", "maint")
	})
}

// A result of a check that comes after its address left, or after Close, changes nothing.
func TestLateResultsOfChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		check := new(checker)
		check.do = func(_ context.Context, addr string) (resolve.Report, error) {
			if addr != addrA || len(check.at(addrA)) > 1 {
				return resolve.Report{}, nil
			}
			<-gate // the first check of A
			return resolve.Report{State: resolve.Maint}, nil
		}
		r := newRig(t, resolve.Options{Refresh: 100 * time.Millisecond, Check: check, CheckEvery: time.Minute}, addrA)
		r.driven(t)
		for len(check.at(addrA)) == 0 {
			pass(time.Second)
		}
		r.script.answer(addrB)
		pass(time.Second)
		r.script.answer(addrA)
		pass(time.Second)
		close(gate)
		synctest.Wait()
		r.wantStates(t, "the address that came back", "unknown")
	})
}

func TestObservedStateOfACheckedPoolAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, check := checkRig(t, addrA)
		check.do = func(ctx context.Context, _ string) (resolve.Report, error) {
			<-ctx.Done()
			return resolve.Report{State: resolve.Down}, nil
		}
		r.driven(t)
		for len(check.at(addrA)) == 0 {
			pass(time.Millisecond)
		}
		r.Close()
		r.Observe(netip.MustParseAddrPort(addrA), false, delivery.CauseReset)
		r.wantStates(t, "after Close", "unknown")
		if _, troubles := r.told(); len(troubles) > 0 {
			t.Errorf("told %q", troubles)
		}
	})
}
