package ship

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/delivery"
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

type checkFunc func() (resolve.Report, error)

func (f checkFunc) Check(context.Context, netip.AddrPort) (resolve.Report, error) { return f() }

type byAddr map[string]resolve.Report

func (b byAddr) Check(_ context.Context, addr netip.AddrPort) (resolve.Report, error) {
	return b[addr.String()], nil
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
