package pool

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/resolve"
)

// observe plays outcomes at addr: '+' a success, '-' a failure, '~' busy, '1' a second, 'm' a minute and a second.
func (r *rig) observe(addr, outcomes string) {
	a := netip.MustParseAddrPort(addr)
	for _, o := range outcomes {
		switch o {
		case '+':
			r.Observe(a, true, "")
		case '-':
			r.Observe(a, false, delivery.CauseRefused)
		case '~':
			r.Observe(a, false, delivery.CauseBusy)
		case '1':
			pass(time.Second)
		case 'm':
			pass(time.Minute + time.Second)
			r.Kick()
			synctest.Wait()
		}
	}
}

// states shows the state of each address, with a mark where it is not used.
func (r *rig) states() string {
	var out []string
	for _, e := range r.Snapshot().Endpoints {
		s := e.State.String()
		if !e.Usable {
			s = "(" + s + ")"
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

func (r *rig) wantStates(t *testing.T, when, want string) {
	t.Helper()
	if got := r.states(); got != want {
		t.Errorf("%s: %s, want %s", when, got, want)
	}
}

// health is a rig that has looked up its addresses and does not look up again by itself.
func healthRig(t *testing.T, addrs ...string) *rig {
	r := newRig(t, resolve.Options{Refresh: time.Hour}, addrs...)
	r.kick()
	return r
}

func numbered(n int) (addrs []string) {
	for i := range n {
		addrs = append(addrs, addrOf(i))
	}
	return addrs
}

func TestRiseAndFall(t *testing.T) {
	for _, c := range []struct{ outcomes, want string }{
		{"", "unknown"},
		{"+", "unknown"},
		{"++", "up"},
		{"+-+", "unknown"},
		{"+-++", "up"},
		{"++--", "up"},
		{"++--+--", "up"}, // not in a row
		{"++---", "(down)"},
		{"---", "(down)"},
		{"--+---", "(down)"},
		{"--m-", "unknown"}, // a minute ago is not in a row
		{"-m-m-", "unknown"},
		{"---++++", "(down)"}, // of what was under way
		{"---m", "unknown"},
		{"---m+", "unknown"},
		{"---m++", "up"},
		{"---m-", "(down)"}, // on trial
		{"---m+-", "unknown"},
		{"---mm-", "unknown"}, // forgotten
		{"~", "degraded"},
		{"~~~~~", "degraded"}, // it works
		{"~+", "degraded"},
		{"~++", "up"},
		{"++~", "degraded"},
		{"++~---", "(down)"},
		{"~---m", "degraded"},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := healthRig(t, addrA, addrB)
			r.observe(addrA, c.outcomes)
			r.wantStates(t, c.outcomes, c.want+" unknown")
		})
	}
}

func TestSinceIsWhenTheStateBegan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := healthRig(t, addrA, addrB)
		since := func(want time.Time) {
			t.Helper()
			if got := r.Snapshot().Endpoints[0].Since; !got.Equal(want) {
				t.Errorf("since %v, want %v", got, want)
			}
		}
		looked := time.Now()
		r.observe(addrA, "1+")
		since(looked)
		r.observe(addrA, "1+")
		up := time.Now()
		r.observe(addrA, "1+1--+")
		since(up)
		r.observe(addrA, "1---")
		since(time.Now())
	})
}

// An ejection lasts from 10 to 30 s, each another time, and Kick says when it ends.
func TestEjectionLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := healthRig(t, addrA, addrB)
		shortest, longest := time.Hour, time.Duration(0)
		for range 300 {
			r.observe(addrA, "---")
			r.wantStates(t, "after three failures", "(down) unknown")
			until := r.members[netip.MustParseAddrPort(addrA)].until
			if next := r.Kick(); next.After(until) {
				t.Errorf("Kick asks for %v, the ejection ends at %v", next, until)
			}
			left := time.Until(until)
			shortest, longest = min(shortest, left), max(longest, left)
			pass(left - 1)
			r.Kick()
			r.wantStates(t, "before the end", "(down) unknown")
			changes, _ := r.told()
			pass(1)
			r.Kick()
			r.wantStates(t, "at the end", "unknown unknown")
			if after, _ := r.told(); after == changes {
				t.Error("nobody was told of the end")
			}
			r.observe(addrA, "+")
		}
		between(t, "shortest", shortest, 10*time.Second, 12*time.Second)
		between(t, "longest", longest, 28*time.Second, 30*time.Second)
	})
}

// However many fail, half of them, rounded down, are taken out on evidence.
func TestHalfStays(t *testing.T) {
	for n, want := range []int{0, 0, 1, 1, 2, 2, 3} {
		synctest.Test(t, func(t *testing.T) {
			r := healthRig(t, numbered(n)...)
			for range 4 { // who may not be ejected fails on
				for _, a := range numbered(n) {
					r.observe(a, "---")
				}
			}
			if got := strings.Count(r.states(), "(down)"); got != want {
				t.Errorf("%d of %d are out, want %d", got, n, want)
			}
			if n > 0 && !r.Snapshot().usable() {
				t.Errorf("none of %d is left", n)
			}
		})
	}
}

// When healthy addresses leave, those ejected may be too many: the oldest ejection ends.
func TestShrinkingSetKeepsHalf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := numbered(4)
		r := newRig(t, resolve.Options{Refresh: 100 * time.Millisecond}, all...)
		r.driven(t)
		r.observe(all[0], "---")
		r.observe(all[1], "1---")
		r.wantStates(t, "two of four", "(down) (down) unknown unknown")
		r.script.answer(all[:3]...)
		pass(time.Second)
		if got := strings.Count(r.states(), "(down)"); got != 1 {
			t.Errorf("of three: %s", r.states())
		}
	})
}

// Backups are for the day on which none of the better is fit, and that includes one that cannot be ejected, for half of all are, and
// one that is on trial.
func TestBackupsAreUsedWhenNoneOfTheBetterIs(t *testing.T) {
	ap := netip.MustParseAddrPort
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, resolve.Options{Refresh: time.Hour})
		r.script.give(resolve.Answer{Endpoints: []resolve.Endpoint{
			{Addr: ap(addrOf(0)), Priority: 5},
			{Addr: ap(addrOf(1)), Priority: 5},
			{Addr: ap(addrOf(2)), Priority: 7},
			{Addr: ap(addrOf(3)), Priority: 9},
		}}, nil)
		r.kick()
		step := func(when, want string) {
			t.Helper()
			r.wantStates(t, when, want)
		}
		step("at first", "unknown unknown (unknown) (unknown)")
		r.observe(addrOf(0), "---")
		step("one out", "(down) unknown (unknown) (unknown)")
		r.observe(addrOf(1), "---")
		step("both out", "(down) (down) unknown (unknown)")
		r.observe(addrOf(2), "---")
		step("the backup cannot be ejected", "(down) (down) unknown unknown")
		pass(30 * time.Second)
		r.Kick()
		step("on trial", "unknown unknown unknown unknown")
		r.observe(addrOf(1), "+")
		step("one is back", "unknown unknown (unknown) (unknown)")
	})
}

func TestBusyIsHalfAShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, resolve.Options{Refresh: time.Hour})
		r.script.give(resolve.Answer{Endpoints: []resolve.Endpoint{
			{Addr: netip.MustParseAddrPort(addrA), Weight: 1}, {Addr: netip.MustParseAddrPort(addrB), Weight: 1},
		}}, nil)
		r.kick()
		r.observe(addrA, "~")
		a, b := r.Snapshot().Endpoints[0], r.Snapshot().Endpoints[1]
		if 2*a.Share != b.Share || a.Weight != 1 || b.Weight != 1 {
			t.Errorf("%+v and %+v", a, b)
		}
	})
}

// A clock that is set back cannot say how long an ejection lasted, and one that is set forward ends it: either way none lasts longer
// than it should by much.
func TestEjectionsAndClockJumps(t *testing.T) {
	for _, jump := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			r := healthRig(t, addrA, addrB)
			var shift time.Duration
			r.now = func() time.Time { return time.Now().Round(0).Add(shift) }
			r.observe(addrA, "---")
			r.Kick()
			synctest.Wait()
			r.wantStates(t, "before", "(down) unknown")
			shift = jump
			r.Kick()
			synctest.Wait()
			r.wantStates(t, fmt.Sprint("jump of ", jump), "unknown unknown")
			r.observe(addrA, "-")
			r.wantStates(t, "on trial", "(down) unknown")
		})
	}
}

// Who fails and works by turns is not out for ever, and its failures do not take others out.
func TestFlappingAddressIsUsedBetween(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := healthRig(t, addrA, addrB, addrC)
		used := 0
		for i := range 3600 {
			if r.Snapshot().Endpoints[0].Usable {
				used++
				if i/10%2 == 0 {
					r.observe(addrA, "-")
				} else {
					r.observe(addrA, "+")
				}
			}
			r.observe(addrB, "+")
			pass(time.Second)
			r.Kick()
			synctest.Wait()
		}
		if used < 400 || !strings.HasSuffix(r.states(), "up unknown") {
			t.Errorf("used in %d of 3600 s; %s", used, r.states())
		}
	})
}

func TestObserveStrangers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := healthRig(t, addrA)
		before := r.Snapshot()
		r.Observe(netip.MustParseAddrPort("203.0.113.1:1"), true, "")
		r.Observe(netip.AddrPort{}, false, "")
		if r.Snapshot() != before {
			t.Error("an address that is not there was observed")
		}
		r.Close()
		r.observe(addrA, "---")
		if r.Snapshot() != before {
			t.Error("the snapshot changed after Close")
		}
	})
}

// A success that says nothing new costs no lock and no memory; that is what senders tell nearly always.
func TestObserveCostsNothingWhenAllIsWell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := healthRig(t, addrA, addrB)
		r.observe(addrA, "++")
		a := netip.MustParseAddrPort(addrA)
		r.Pool.mu.Lock() // Observe would hang
		n := testing.AllocsPerRun(100, func() { r.Observe(a, true, "") })
		r.Pool.mu.Unlock()
		if n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
}
