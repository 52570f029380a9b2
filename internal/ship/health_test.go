package ship

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/resolve"
)

// R46: when one of three dies its share moves to the others within a second of its being known, and comes back when it is back, without
// a burst of what it missed. What could be known by nobody, datagrams before the third failed check, is all that is lost.
func TestR46_OneOfThreeDiesAndReturns(t *testing.T) {
	eachKind(t, func(t *testing.T, kind string) {
		c := newCluster(kind)
		e := newTestEngine(c, delivery.Options{}, c.options())
		steadily(e, 300, 5*time.Second)
		died := time.Now()
		c.kill(0)
		for i := 0; !strings.HasPrefix(states(e), "down"); i++ {
			steadily(e, 300, 100*time.Millisecond)
			if i > 40 {
				t.Fatalf("not known to be down after 4 s: %s", states(e))
			}
		}
		known := time.Now()
		if kind == datagrams && known.Sub(died) > 3500*time.Millisecond {
			t.Errorf("known after %v, which is more than three checks take", known.Sub(died))
		}
		c.mu.Lock()
		lost := c.lost
		c.mu.Unlock()
		steadily(e, 300, time.Second)
		mustFlush(t, e)
		if got := c.since(known); got[1]+got[2] < 300 || got[1]-got[2] > 10 || got[2]-got[1] > 10 {
			t.Errorf("in the second after that: %v", got)
		}
		steadily(e, 300, 5*time.Second)
		c.kill()
		back := time.Now()
		for i := 0; c.since(back)[0] == 0; i++ {
			steadily(e, 300, time.Second)
			if i > 62 {
				t.Fatal("no record a minute after it was back")
			}
		}
		steadily(e, 300, time.Second)
		settled := time.Now()
		steadily(e, 300, 10*time.Second)
		mustFlush(t, e)
		got := c.since(settled)
		if slices.Max(got)-slices.Min(got) > 5 {
			t.Errorf("in the 10 s after it was back: %v", got)
		}
		burst(t, c.arrived[c.addrs[0]], 200)
		if s := e.Stats(); s.Dropped != 0 || s.Pending != 0 || c.lost != lost {
			t.Errorf("%d went astray after it was known; %+v", c.lost-lost, s)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Two of three: the one that is left takes all. All three: records wait, and all of them arrive when one is back.
func TestR46_TwoOfThreeAndAllDie(t *testing.T) {
	eachKind(t, func(t *testing.T, kind string) {
		c := newCluster(kind)
		// A request's failure is "perhaps taken": while all are dead the record on trial may use up ten tries, and its end would be right.
		e := newTestEngine(c, delivery.Options{CloseTimeout: time.Minute, Tries: 1000}, c.options())
		steadily(e, 300, 2*time.Second)
		c.kill(0, 1)
		steadily(e, 300, 4*time.Second)
		mustFlush(t, e)
		alone := time.Now()
		steadily(e, 300, 10*time.Second)
		mustFlush(t, e)
		// One of the two cannot be ejected on evidence alone; what is tried there comes back and goes to the third.
		if got := c.since(alone); got[2] != 3000 {
			t.Errorf("two are dead: %v", got)
		}
		c.kill(0, 1, 2)
		before := time.Now()
		steadily(e, 100, 10*time.Second)
		if got := c.since(before); slices.Max(got) != 0 {
			t.Errorf("all are dead: %v", got)
		}
		c.kill()
		mustFlush(t, e)
		steadily(e, 300, 40*time.Second)
		settled := time.Now()
		steadily(e, 300, 10*time.Second)
		mustFlush(t, e)
		if got := c.since(settled); slices.Max(got)-slices.Min(got) > 5 {
			t.Errorf("all are back: %v; %s", got, states(e))
		}
		s := e.Stats()
		balanced(t, s)
		if s.Dropped != 0 || s.Delivered != s.Accepted {
			t.Errorf("%+v", s)
		}
		if total := c.total(); kind != datagrams && total != int(s.Accepted) {
			t.Errorf("%d of %d arrived", total, s.Accepted)
		}
		_ = e.Close()
	})
}

// One that dies and returns all the time costs the others nothing, and no record.
func TestFlappingAddressStarvesNobody(t *testing.T) {
	eachKind(t, func(t *testing.T, kind string) {
		c := newCluster(kind)
		e := newTestEngine(c, delivery.Options{}, c.options())
		for i := range 60 {
			c.kill()
			if i%2 == 1 {
				c.kill(0)
			}
			steadily(e, 300, time.Second)
		}
		mustFlush(t, e)
		s := e.Stats()
		got := c.since(time.Time{})
		if got[1] < 6000 || got[2] < 6000 || s.Dropped > 0 || got[0]+got[1]+got[2]+c.lost != 18000 {
			t.Errorf("%v, %d lost; %+v", got, c.lost, s)
		}
		_ = e.Close()
	})
}

// A check that always fails and one that is never content cannot empty the set, and that is said once.
func TestChecksCannotEmptyTheSet(t *testing.T) {
	for name, report := range map[string]resolve.Report{"fails": {}, "draining": {State: resolve.Draining}, "maint": {State: resolve.Maint}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(streams)
				o := c.options()
				o.CheckEvery = 100 * time.Millisecond
				o.Check = checkFunc(func() (resolve.Report, error) {
					if report.State == resolve.Unknown {
						return report, errors.New("never content")
					}
					return report, nil
				})
				said := 0
				e := newTestEngine(c, delivery.Options{OnError: func(err error) {
					if strings.Contains(err.Error(), "no address is fit for use") {
						said++
					}
				}}, o)
				steadily(e, 300, 2*time.Second)
				judged := time.Now()
				steadily(e, 300, 10*time.Second)
				mustFlush(t, e)
				if got := c.since(judged); slices.Max(got)-slices.Min(got) > 2 || slices.Min(got) < 999 {
					t.Errorf("%v, %s", got, states(e))
				}
				_ = e.Close()
				if said != 1 {
					t.Errorf("said %d times", said)
				}
			})
		})
	}
}

// What the documentation says of datagrams: without a Check a dead node is invisible, and its share is lost, uncounted.
func TestDeadDatagramNodeWithoutACheckIsInvisible(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(datagrams)
		e := newTestEngine(c, delivery.Options{}, resolveTo(c.addrs...))
		defer e.Close()
		c.kill(0)
		steadily(e, 300, 10*time.Second)
		mustFlush(t, e)
		if s := e.Stats(); c.lost != 1000 || s.Delivered != 3000 || states(e) != "unknown unknown unknown" {
			t.Errorf("%d lost, %s, %+v", c.lost, states(e), s)
		}
	})
}

// Half a share for who asks for less, none for who drains, and the text of the Check where it is looked for.
func TestSharesFollowTheCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(streams)
		o := c.options()
		o.Check = byAddr{
			c.addrs[0]: {State: resolve.Degraded, Note: "THROTTLED"}, c.addrs[1]: {State: resolve.Up, Weight: 200},
			c.addrs[2]: {State: resolve.Draining, Note: "going home"},
		}
		e := newTestEngine(c, delivery.Options{}, o)
		if err := e.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * time.Second)
		steadily(e, 300, 10*time.Second)
		mustFlush(t, e)
		if got := c.since(time.Time{}); fmt.Sprint(got) != "[600 2400 0]" {
			t.Errorf("shares %v", got)
		}
		var shown []string
		for _, ep := range e.Stats().Endpoints {
			shown = append(shown, fmt.Sprintf("%s %d %q", ep.State, ep.Weight, ep.LastError))
		}
		if want := []string{`degraded 100 "THROTTLED"`, `up 200 ""`, `draining 100 "going home"`}; !slices.Equal(shown, want) {
			t.Errorf("shown %q", shown)
		}
		_ = e.Close()
	})
}

// PerProcess moves when the Check says that its address is down, or its transport meets that; with backups, to one of them and back.
func TestPerProcessMovesWhenItsAddressIsDown(t *testing.T) {
	eachKind(t, func(t *testing.T, kind string) {
		c := newCluster(kind)
		o := c.options()
		o.Policy = resolve.PerProcess
		e := newTestEngine(c, delivery.Options{}, o)
		steadily(e, 100, 5*time.Second)
		first := slices.IndexFunc(c.since(time.Time{}), func(n int) bool { return n == 500 })
		if first < 0 {
			t.Fatalf("shares %v", c.since(time.Time{}))
		}
		c.kill(first)
		steadily(e, 100, 5*time.Second)
		moved := time.Now()
		steadily(e, 100, 5*time.Second)
		mustFlush(t, e)
		got := c.since(moved)
		slices.Sort(got)
		if fmt.Sprint(got) != "[0 0 500]" {
			t.Errorf("shares after its address died: %v", got)
		}
		_ = e.Close()
	})
}

// Backups carry the records while no better address is fit, and not before or after.
func TestBackupsCarryWhileTheBetterAreDown(t *testing.T) {
	eachKind(t, func(t *testing.T, kind string) {
		c := newCluster(kind)
		o := c.options()
		o.Resolver = ranked(c.addrs)
		e := newTestEngine(c, delivery.Options{}, o)
		steadily(e, 100, 5*time.Second)
		if got := c.since(time.Time{}); fmt.Sprint(got) != "[500 0 0]" {
			t.Errorf("at first: %v", got)
		}
		c.kill(0)
		steadily(e, 100, 5*time.Second)
		down := time.Now()
		steadily(e, 100, 60*time.Second)
		mustFlush(t, e)
		if got := c.since(down); fmt.Sprint(got) != "[0 6000 0]" {
			t.Errorf("while the best is down: %v", got)
		}
		c.kill()
		steadily(e, 100, 40*time.Second)
		back := time.Now()
		steadily(e, 100, 5*time.Second)
		mustFlush(t, e)
		if got := c.since(back); fmt.Sprint(got) != "[500 0 0]" {
			t.Errorf("when it is back: %v", got)
		}
		_ = e.Close()
	})
}
