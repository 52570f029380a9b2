package pool

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/resolve"
)

// checker is a Check that the test answers for.
type checker struct {
	mu    sync.Mutex
	do    func(ctx context.Context, addr string) (resolve.Report, error)
	calls map[string][]time.Time
	skip  bool // SkipConnected
}

func (c *checker) Check(ctx context.Context, addr netip.AddrPort) (resolve.Report, error) {
	c.mu.Lock()
	if c.calls == nil {
		c.calls = make(map[string][]time.Time)
	}
	c.calls[addr.String()] = append(c.calls[addr.String()], time.Now())
	do := c.do
	c.mu.Unlock()
	return do(ctx, addr.String())
}

func (c *checker) SkipConnected() bool { return c.skip }

// at returns when addr was checked.
func (c *checker) at(addr string) []time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.calls[addr])
}

// give has the checks of addr find r and err, and those of others that all is well.
func (c *checker) give(addr string, r resolve.Report, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.do = func(_ context.Context, asked string) (resolve.Report, error) {
		if asked == addr {
			return r, err
		}
		return resolve.Report{State: resolve.Up}, nil
	}
}

// checkRig is a driven rig with a Check, which finds all well at first.
func checkRig(t *testing.T, addrs ...string) (*rig, *checker) {
	c := new(checker)
	c.give("", resolve.Report{}, nil)
	r := newRig(t, resolve.Options{Refresh: time.Hour, Check: c}, addrs...)
	return r, c
}

var errSick = errors.New("it is sick")

func TestWhatChecksFind(t *testing.T) {
	up := resolve.Report{State: resolve.Up}
	for name, c := range map[string]struct {
		report resolve.Report
		err    error
		soon   string // after one check
		later  string // after three
		text   string
	}{
		"nothing":    {resolve.Report{}, nil, "up", "up", ""},
		"note alone": {resolve.Report{Note: "load\n 0.5"}, nil, "up", "up", "load 0.5"},
		"degraded":   {resolve.Report{State: resolve.Degraded, Note: "THROTTLED"}, nil, "degraded", "degraded", "THROTTLED"},
		"draining":   {resolve.Report{State: resolve.Draining}, nil, "(draining)", "(draining)", ""},
		"down":       {resolve.Report{State: resolve.Down, Note: "DEAD"}, nil, "(down)", "(down)", "DEAD"},
		"maint":      {resolve.Report{State: resolve.Maint}, nil, "(maint)", "(maint)", ""},
		"error":      {up, errSick, "up", "(down)", "check: it is sick"},
		"no state":   {resolve.Report{State: 6}, nil, "up", "(down)", "check: its report makes no sense: state State(6), weight 0"},
		"weight < 0": {resolve.Report{State: resolve.Up, Weight: -1}, nil, "up", "(down)", "check: its report makes no sense: state up, weight -1"},
		"warning":    {resolve.Report{Warning: "what is \"upp\"?", Note: "n"}, nil, "up", "up", "what is \"upp\"?"},
		"long":       {resolve.Report{Note: strings.Repeat("ä", 200) + "\xff"}, nil, "up", "up", strings.Repeat("ä", 128)},
	} {
		inBubble(t, name, func(t *testing.T) {
			r, check := checkRig(t, addrA, addrB)
			r.driven(t)
			pass(4 * time.Second)
			r.wantStates(t, "at first", "up up")
			before := len(check.at(addrA))
			check.give(addrA, c.report, c.err)
			for len(check.at(addrA)) == before {
				pass(10 * time.Millisecond)
			}
			r.wantStates(t, "soon", c.soon+" up")
			for len(check.at(addrA)) < before+3 {
				pass(10 * time.Millisecond)
			}
			r.wantStates(t, "later", c.later+" up")
			if text, at := r.Text(netip.MustParseAddrPort(addrA)); text != c.text || time.Since(at) > 10*time.Millisecond {
				t.Errorf("it said %q %v ago, want %q", text, time.Since(at), c.text)
			}
			check.give(addrA, up, nil)
			pass(3 * time.Second)
			r.wantStates(t, "in the end", "up up")
			if text, _ := r.Text(netip.AddrPort{}); text != "" {
				t.Errorf("of a stranger it is said %q", text)
			}
		})
	}
}

// Once a verdict turns bad OnError is told, and of a warning when it changes.
func TestTroublesOfChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, check := checkRig(t, addrA, addrB)
		r.driven(t)
		for _, report := range []resolve.Report{
			{State: resolve.Down, Note: "full"},
			{State: resolve.Up},
			{State: resolve.Maint, Warning: "word 7"},
			{State: resolve.Maint},
			{State: resolve.Draining, Warning: "word 7"},
		} {
			check.give(addrA, report, nil)
			pass(20 * time.Second)
		}
		check.give(addrA, resolve.Report{}, errSick)
		pass(time.Minute)
		want := []string{
			"check of 192.0.2.1:514: it is down (full)",
			"check of 192.0.2.1:514: it is maint (word 7)",
			"check of 192.0.2.1:514: word 7",
			"check of 192.0.2.1:514: it is draining (word 7)",
			"check of 192.0.2.1:514: word 7",
			"check of 192.0.2.1:514: it is down (check: it is sick)",
		}
		if _, troubles := r.told(); !slices.Equal(troubles, want) {
			t.Errorf("told %q", troubles)
		}
	})
}

func TestWeightsOfChecks(t *testing.T) {
	for _, c := range []struct{ percent, weight, share int }{
		{0, 100, 20000}, {50, 50, 10000}, {1, 1, 200}, {250, 250, 50000}, {1 << 40, 10000, 2000000},
	} {
		synctest.Test(t, func(t *testing.T) {
			r, check := checkRig(t, addrA, addrB)
			r.driven(t)
			check.give(addrA, resolve.Report{Weight: c.percent, State: resolve.Up}, nil)
			pass(4 * time.Second)
			if e := r.Snapshot().Endpoints[0]; e.Weight != c.weight || e.Share != c.share {
				t.Errorf("%d %%: weight %d, share %d, want %d and %d", c.percent, e.Weight, e.Share, c.weight, c.share)
			}
			check.give(addrA, resolve.Report{State: resolve.Degraded}, nil)
			pass(4 * time.Second)
			if e := r.Snapshot().Endpoints[0]; e.Weight != c.weight || 2*e.Share != c.share {
				t.Errorf("%d %%, degraded: %+v", c.percent, e)
			}
		})
	}
}

// What a Check that falls silent said before holds for ten intervals.
func TestVerdictsAgeOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, check := checkRig(t, addrA, addrB)
		r.driven(t)
		check.give(addrA, resolve.Report{State: resolve.Draining, Weight: 50}, nil)
		pass(4 * time.Second)
		n := len(check.at(addrA))
		check.give(addrA, resolve.Report{Note: "no answer"}, nil)
		for len(check.at(addrA)) < n+9 {
			pass(10 * time.Millisecond)
		}
		r.wantStates(t, "nine checks without an answer", "(draining) up")
		for len(check.at(addrA)) < n+10 {
			pass(10 * time.Millisecond)
		}
		r.wantStates(t, "ten", "unknown up")
		if e := r.Snapshot().Endpoints[0]; e.Weight != 100 {
			t.Errorf("weight %d", e.Weight)
		}
	})
}

// A verdict may take out every address; then all are used but those in Maint, and OnError hears of it once.
func TestNoneFitForUse(t *testing.T) {
	for _, c := range []struct {
		a, b    resolve.State
		passive string // outcomes of sends to B
		want    string
		told    int
	}{
		{resolve.Down, resolve.Down, "", "down down", 1},
		{resolve.Down, resolve.Draining, "", "down draining", 1},
		{resolve.Down, resolve.Maint, "", "down (maint)", 1},
		{resolve.Maint, resolve.Maint, "", "maint maint", 1},
		{resolve.Down, resolve.Unknown, "---", "down down", 1},
		{resolve.Maint, resolve.Degraded, "", "(maint) degraded", 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			r, check := checkRig(t, addrA, addrB)
			check.do = func(_ context.Context, addr string) (resolve.Report, error) {
				if addr == addrA {
					return resolve.Report{State: c.a}, nil
				}
				return resolve.Report{State: c.b}, nil
			}
			r.driven(t)
			pass(3 * time.Second)
			r.observe(addrB, c.passive)
			pass(7 * time.Second)
			r.wantStates(t, fmt.Sprint(c.a, " ", c.b, c.passive), c.want)
			told := 0
			_, troubles := r.told()
			for _, s := range troubles {
				if s == errNoneFit.Error() {
					told++
				}
			}
			if told != c.told {
				t.Errorf("%v and %v: said %d times: %q", c.a, c.b, told, troubles)
			}
		})
	}
}

// Verdict and evidence together.
func TestChecksAndSends(t *testing.T) {
	up := resolve.Report{State: resolve.Up}
	for _, c := range []struct {
		name    string
		report  resolve.Report
		err     error
		passive string
		at      string // right after these outcomes
		later   string // after the next check
	}{
		{"a success does not undo a verdict", resolve.Report{State: resolve.Down}, nil, "++++", "(down)", "(down)"},
		{"nor one of failing checks", up, errSick, "++++", "(down)", "(down)"},
		{"failures eject what a check finds well, and the next check ends that", up, nil, "---", "(down)", "up"},
		{"a degraded one too", resolve.Report{State: resolve.Degraded}, nil, "---", "(down)", "degraded"},
		{"a report without a state does not", resolve.Report{Note: "x"}, nil, "---", "(down)", "(down)"},
		{"what asks for less is degraded although the check finds it well", up, nil, "~", "degraded", "degraded"},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			r, check := checkRig(t, addrA, addrB)
			check.give(addrA, c.report, c.err)
			r.driven(t)
			pass(9 * time.Second)
			r.observe(addrA, c.passive)
			r.wantStates(t, "at once", c.at+" up")
			pass(3 * time.Second)
			r.wantStates(t, "after a check", c.later+" up")
		})
	}
}

func TestConnectedAddressesAreNotChecked(t *testing.T) {
	for _, skip := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			check := &checker{skip: skip}
			check.give(addrA, resolve.Report{}, errSick)
			r := newRig(t, resolve.Options{Refresh: time.Hour, Check: check}, addrA, addrB)
			r.driven(t)
			pass(9 * time.Second)
			r.wantStates(t, "checks fail", "(down) up")
			r.mu.Lock()
			r.connected = map[string]bool{addrA: true}
			r.mu.Unlock()
			before := len(check.at(addrA))
			pass(time.Minute)
			more := len(check.at(addrA)) - before
			if skip && more != 0 || !skip && more < 20 {
				t.Errorf("skip=%v: checked %d times while connected", skip, more)
			}
			if want := "(down) up"; skip {
				r.wantStates(t, "connected", "unknown up") // somebody got through
			} else {
				r.wantStates(t, "connected", want)
			}
		})
	}
}
