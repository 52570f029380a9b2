package ship

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/pool"
	"github.com/wholelog/wholelog/jitter"
	"github.com/wholelog/wholelog/resolve"
)

// cluster is three receivers behind one kind of fake transport, of which tests kill some.
type cluster struct {
	*fakeNet
	kind  string
	addrs []string

	mu      sync.Mutex
	dead    map[string]bool
	lost    int // datagrams that went to a dead one
	arrived map[string][]time.Time
}

// The kinds: datagrams to a dead node vanish without a sign, a stream to it breaks and cannot be dialled, a request to it fails.
const (
	datagrams = "datagrams"
	streams   = "streams"
	requests  = "requests"
)

func newCluster(kind string) *cluster {
	c := &cluster{kind: kind, addrs: addrs(3), dead: make(map[string]bool), arrived: make(map[string][]time.Time)}
	limits := Limits{Blind: kind == datagrams}
	if kind == requests {
		limits.BatchRecords = 10
	}
	c.fakeNet = newFakeNet(limits)
	c.send = c.receive
	return c
}

func (c *cluster) receive(l *fakeLink, b *Batch) error {
	c.mu.Lock()
	dead := c.dead[l.addr]
	if dead && c.kind == datagrams {
		c.lost += b.Len()
	}
	for range b.Len() {
		if !dead {
			c.arrived[l.addr] = append(c.arrived[l.addr], time.Now())
		}
	}
	c.mu.Unlock()
	switch {
	case !dead:
		l.deliver(b)
	case c.kind == datagrams:
		b.Settle(0, b.Len(), Outcome{Do: Delivered})
	case c.kind == streams:
		return errors.New("broken pipe")
	default:
		b.Settle(0, b.Len(), Outcome{Do: Resend, Cause: delivery.CauseRefused, Err: errors.New("connection refused")})
	}
	return nil
}

// kill has the n-th receivers, from 0, be the only dead ones.
func (c *cluster) kill(which ...int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.dead)
	for i, a := range c.addrs {
		var err error
		if slices.Contains(which, i) {
			c.dead[a] = true
			err = errors.New("connection refused")
		}
		if c.kind == streams {
			c.setRefuse(a, err)
		}
	}
}

// Check implements resolve.Check by looking at the receiver itself.
func (c *cluster) Check(_ context.Context, addr netip.AddrPort) (resolve.Report, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead[addr.String()] {
		return resolve.Report{}, errors.New("connection refused")
	}
	return resolve.Report{State: resolve.Up}, nil
}

// options are those of a handler of c; datagrams need a Check.
func (c *cluster) options() resolve.Options {
	o := resolveTo(c.addrs...)
	if c.kind == datagrams {
		o.Check, o.CheckEvery = c, time.Second
	}
	return o
}

// steadily logs rate records in each second for so long, numbered on.
func steadily(e *Engine, rate int, d time.Duration) {
	for range int(d * time.Duration(rate) / time.Second) {
		_ = e.Put(slog.LevelInfo, []byte("m"))
		time.Sleep(time.Second / time.Duration(rate))
	}
}

// since returns what each receiver got from then on.
func (c *cluster) since(then time.Time) (got []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range c.addrs {
		n := 0
		for _, at := range c.arrived[a] {
			if !at.Before(then) {
				n++
			}
		}
		got = append(got, n)
	}
	return got
}

// states are those of Stats, in the order of the addresses.
func states(e *Engine) string {
	var out []string
	for _, ep := range e.Stats().Endpoints {
		out = append(out, ep.State)
	}
	return strings.Join(out, " ")
}

func eachKind(t *testing.T, f func(t *testing.T, kind string)) {
	for _, kind := range []string{datagrams, streams, requests} {
		t.Run(kind, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { f(t, kind) }) })
	}
}

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

// burst fails when more than most records came within any second.
func burst(t *testing.T, at []time.Time, most int) {
	t.Helper()
	for i := range at {
		if i+most < len(at) && at[i+most].Sub(at[i]) < time.Second {
			t.Errorf("%d records within %v", most, at[i+most].Sub(at[i]))
			return
		}
	}
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

type checkFunc func() (resolve.Report, error)

func (f checkFunc) Check(context.Context, netip.AddrPort) (resolve.Report, error) { return f() }

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

type byAddr map[string]resolve.Report

func (b byAddr) Check(_ context.Context, addr netip.AddrPort) (resolve.Report, error) {
	return b[addr.String()], nil
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

// ranked gives each address a priority of its own.
type ranked []string

func (r ranked) Resolve(context.Context) (resolve.Answer, error) {
	var a resolve.Answer
	for i, addr := range r {
		a.Endpoints = append(a.Endpoints, resolve.Endpoint{Addr: netip.MustParseAddrPort(addr), Priority: uint16(i)})
	}
	return a, nil
}

// The pool is told of open connections, of which a blind transport has none.
func TestConnected(t *testing.T) {
	for _, blind := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			net := newFakeNet(Limits{Blind: blind})
			a := addrs(2)
			net.setRefuse(a[1], errors.New("refused"))
			e := newTestEngine(net, delivery.Options{}, resolveTo(a...))
			rt := e.routes[0]
			if rt.connected(addrPort(a[0])) {
				t.Error("connected before the first record")
			}
			steadily(e, 100, time.Second)
			if got := [2]bool{rt.connected(addrPort(a[0])), rt.connected(addrPort(a[1]))}; got != [2]bool{!blind, false} {
				t.Errorf("blind=%v: connected %v", blind, got)
			}
			_ = e.Close()
			if rt.connected(addrPort(a[0])) {
				t.Error("connected after Close")
			}
		})
	}
}

// After an ejection one record is on trial: a receiver that is still bad gets no more than that each time, and the others' records do
// not wait for it.
func TestOneRecordIsOnTrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newFakeNet(Limits{BatchRecords: 10})
		a := addrs(3)
		sick := time.Now()
		spoilt := 0
		net.send = func(l *fakeLink, b *Batch) error {
			if l.addr == a[0] && time.Since(sick) > time.Second {
				net.mu.Lock()
				if time.Since(sick) > 10*time.Second {
					spoilt += b.Len()
				}
				net.mu.Unlock()
				time.Sleep(50 * time.Millisecond)
				return l.requeue(b)
			}
			l.deliver(b)
			return nil
		}
		e := newTestEngine(net, delivery.Options{Backoff: jitter.Backoff{Base: time.Millisecond, Max: time.Millisecond}}, resolveTo(a...))
		steadily(e, 1000, 100*time.Second)
		mustFlush(t, e)
		if spoilt > 10 || spoilt < 2 {
			t.Errorf("%d records met the bad receiver in 90 s", spoilt)
		}
		if s := e.Stats(); s.Waits != 0 || s.Delivered != 100_000 {
			t.Errorf("%+v", s)
		}
		_ = e.Close()
	})
}

// R76: of 200 handlers that lose a destination at the same instant, no more than 60 make their first retry within any tenth of the
// first backoff step.
func TestR76_FirstRetriesAreSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const handlers, step = 200, 250 * time.Millisecond
		var mu sync.Mutex
		var retries []time.Time
		var engines []*Engine
		for range handlers {
			net := newFakeNet(Limits{})
			net.setRefuse(addrs(1)[0], errors.New("refused"))
			dials := 0
			net.meet = func(_ *fakeLink, call string) {
				if call != "dial" {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				if dials++; dials == 2 {
					retries = append(retries, time.Now())
				}
			}
			engines = append(engines, newTestEngine(net, delivery.Options{CloseTimeout: time.Millisecond}, resolveTo(addrs(1)...)))
		}
		for _, e := range engines {
			_ = e.Put(slog.LevelInfo, []byte("m"))
		}
		time.Sleep(10 * time.Second)
		mu.Lock()
		slices.SortFunc(retries, time.Time.Compare)
		mu.Unlock()
		if len(retries) != handlers {
			t.Fatalf("%d of %d retried", len(retries), handlers)
		}
		for i := range retries {
			if i+60 < len(retries) && retries[i+60].Sub(retries[i]) < step/10 {
				t.Errorf("61 retries within %v", retries[i+60].Sub(retries[i]))
				break
			}
		}
		for _, e := range engines {
			_ = e.Close()
		}
	})
}

// A heap of links deals in the same order as a look at each of them.
func TestLineKeepsTheOrder(t *testing.T) {
	var s pool.Stride
	var l line
	for i := range 1000 {
		sl := &slot{ep: &endpoint{}}
		sl.turn.Tie = uint64(i*7919) % 1000
		sl.turn.Weigh(1 + i%5)
		s.Enter(&sl.turn)
		l = append(l, sl)
	}
	l.init()
	for range 20_000 {
		i := l.due(nil)
		for _, other := range l {
			if other.turn.Before(&l[i].turn) {
				t.Fatal("another one was due")
			}
		}
		s.Take(&l[i].turn)
		l.sink(i)
	}
	first := l[0]
	if i := l.due(first.ep); l[i] == first || l[i].turn.Before(&first.turn) {
		t.Errorf("place %d instead of the first", i)
	}
	for len(l) > 1 {
		l.remove(len(l) / 2)
	}
	if l.due(l[0].ep) != 0 || line(nil).due(nil) != -1 {
		t.Error("the last one, and none")
	}
}
