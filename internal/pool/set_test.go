package pool

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/resolve"
)

func TestLastGoodAnswerOutlivesFailures(t *testing.T) {
	for name, c := range map[string]struct {
		answer resolve.Answer
		err    error
		said   string
	}{
		"failure": {err: errDown, said: "the name server is down"},
		"empty":   {said: "the answer holds no address"},
		"useless": {
			answer: resolve.Answer{Endpoints: []resolve.Endpoint{{}}},
			said:   `the answer holds no address; 1 of the addresses found cannot be used, the first is "invalid AddrPort"`,
		},
	} {
		inBubble(t, name, func(t *testing.T) {
			r := newRig(t, resolve.Options{}, addrA, addrB)
			r.driven(t)
			good := r.Snapshot()
			r.script.give(c.answer, c.err)
			pass(time.Hour)
			if r.Snapshot() != good {
				t.Errorf("the snapshot changed to %s", r.list())
			}
			s := r.Stats()
			if s.LookupErrors == 0 || s.LookupErrors != s.Lookups-1 {
				t.Errorf("%+v", s)
			}
			between(t, "age of the answer", s.AnswerAge, time.Hour, time.Hour)
			if _, troubles := r.told(); len(troubles) != int(s.LookupErrors) || troubles[0] != "look-up of logs.test:514: "+c.said {
				t.Errorf("%d troubles for %d errors, the first %q", len(troubles), s.LookupErrors, troubles[0])
			}
			// Failures are no good answers: an address is not given up the sooner for them.
			r.script.answer(addrA)
			pass(31 * time.Second)
			r.script.give(c.answer, c.err)
			pass(time.Minute)
			r.script.answer(addrA, addrB)
			pass(time.Minute)
			r.want(t, addrA, addrB)
		})
	}
}

func TestMissingFromTwoAnswersInARow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, resolve.Options{Refresh: time.Second}, addrA, addrB)
		next := r.kick()
		for _, step := range []struct{ answer, want string }{
			{addrA, addrA + " " + addrB},
			{addrA + " " + addrB, addrA + " " + addrB}, // back in time
			{addrA, addrA + " " + addrB},
			{addrC, addrA + " " + addrC}, // B twice, A once
			{addrB, addrB + " " + addrC}, // A twice, C once, B is new again
			{addrB, addrB},
		} {
			pass(next)
			r.script.answer(strings.Fields(step.answer)...)
			next = r.kick()
			r.want(t, strings.Fields(step.want)...)
		}
	})
}

func TestPartialAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, resolve.Options{})
		r.script.give(answer(addrA), errDown)
		mustNil(t, r.Refresh(t.Context())) // something is usable
		r.want(t, addrA)
		r.driven(t)
		r.script.answer(addrA, addrB)
		pass(time.Minute)
		r.want(t, addrA, addrB)
		r.script.give(answer(addrC), errDown)
		pass(time.Hour)
		r.want(t, addrA, addrB, addrC)
		if s := r.Stats(); s.LookupErrors < 2 || s.AnswerAge < 59*time.Minute {
			t.Errorf("%+v", s)
		}
	})
}

func TestAnswersAreTidied(t *testing.T) {
	ap := netip.MustParseAddrPort
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, resolve.Options{})
		r.script.give(resolve.Answer{Endpoints: []resolve.Endpoint{
			{Addr: ap("[2001:db8::3]:514")},
			{Addr: ap("192.0.2.2:514"), Weight: 7},
			{Addr: ap("[::ffff:192.0.2.1]:514"), Weight: 20, Priority: 3},
			{Addr: netip.AddrPort{}},
			{Addr: ap("192.0.2.1:514"), Weight: 10},
			{Addr: ap("192.0.2.9:0")},
		}}, nil)
		r.kick()
		want := []Endpoint{
			{Addr: ap("192.0.2.1:514"), Weight: 20},
			{Addr: ap("192.0.2.2:514"), Weight: 7},
			{Addr: ap("[2001:db8::3]:514"), Weight: 100},
		}
		got := r.Snapshot().Endpoints
		if len(got) != len(want) {
			t.Fatalf("%d endpoints: %s", len(got), r.list())
		}
		for i, w := range want {
			w.Usable, w.Since, w.Share = true, time.Now().Round(0), 200*w.Weight
			if got[i] != w {
				t.Errorf("endpoint %d: %+v, want %+v", i, got[i], w)
			}
		}
		_, troubles := r.told()
		const said = `look-up of logs.test:514: 2 of the addresses found cannot be used, the first is "invalid AddrPort"`
		if len(troubles) != 1 || troubles[0] != said {
			t.Errorf("troubles %q", troubles)
		}
		if s := r.Stats(); s.LookupErrors != 0 {
			t.Errorf("a usable answer counts as an error: %+v", s)
		}
	})
}

func TestOnlyTheBestPriorityIsUsable(t *testing.T) {
	ap := netip.MustParseAddrPort
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, resolve.Options{Refresh: time.Second})
		set := func(a, b, c uint16) {
			r.script.give(resolve.Answer{Endpoints: []resolve.Endpoint{
				{Addr: ap(addrA), Priority: a}, {Addr: ap(addrB), Priority: b}, {Addr: ap(addrC), Priority: c},
			}}, nil)
			pass(2 * time.Second)
			r.kick()
		}
		set(65535, 65535, 65535)
		r.want(t, addrA, addrB, addrC)
		set(10, 20, 10)
		r.want(t, addrA, "("+addrB+")", addrC)
		set(10, 0, 10)
		r.want(t, "("+addrA+")", addrB, "("+addrC+")")
		if err := r.Refresh(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestGenGrowsWithTheSet(t *testing.T) {
	ap := netip.MustParseAddrPort
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, resolve.Options{Refresh: time.Second})
		for i, step := range []struct {
			endpoints []resolve.Endpoint
			gen       uint64
		}{
			{[]resolve.Endpoint{{Addr: ap(addrA)}}, 1},
			{[]resolve.Endpoint{{Addr: ap(addrA), Weight: 100}}, 1},
			{[]resolve.Endpoint{{Addr: ap(addrA), Weight: 50}}, 2},
			{[]resolve.Endpoint{{Addr: ap(addrA), Weight: 50}, {Addr: ap(addrB)}}, 3},
			{[]resolve.Endpoint{{Addr: ap(addrB)}, {Addr: ap(addrA), Weight: 50}}, 3},
			{[]resolve.Endpoint{{Addr: ap(addrA), Weight: 50}, {Addr: ap(addrB), Priority: 1}}, 4},
		} {
			r.script.give(resolve.Answer{Endpoints: step.endpoints}, nil)
			pass(2 * time.Second)
			r.kick()
			if changes, _ := r.told(); r.Snapshot().Gen != step.gen || changes != i+1 {
				t.Errorf("step %d: Gen %d, want %d, told %d times", i, r.Snapshot().Gen, step.gen, changes)
			}
		}
		// A state alone is news for whoever shows it, and none for whoever chooses.
		before := r.Snapshot()
		r.Observe(ap(addrA), true, "")
		r.Observe(ap(addrA), true, "")
		if after := r.Snapshot(); after == before || after.Gen != before.Gen {
			t.Errorf("Gen %d before and %d after an observation", before.Gen, after.Gen)
		}
	})
}

func TestObservedFailureBringsTheLookupForward(t *testing.T) {
	a := netip.MustParseAddrPort(addrA)
	for _, c := range []struct {
		name                       string
		refresh, wait, least, most time.Duration
	}{
		{"at once", 0, 0, 5 * time.Second, 6 * time.Second},
		{"later", 0, 30 * time.Second, 0, time.Second},
		{"short refresh", time.Second, 0, 810 * time.Millisecond, 1200 * time.Millisecond},
		{"long refresh", time.Hour, 10 * time.Second, 0, time.Second},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			r := newRig(t, resolve.Options{Refresh: c.refresh}, addrA, addrB)
			r.kick()
			pass(c.wait)
			for range 1000 { // more failures are not more hurry
				r.Observe(a, false, delivery.CauseTimeout)
			}
			between(t, "next look-up", time.Until(r.Kick()), c.least, c.most)
		})
	}
}

func TestObserveDoesNotShortenTheBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, resolve.Options{}, addrA)
		r.kick()
		r.script.give(resolve.Answer{}, errDown)
		pass(2 * time.Minute)
		for range 10 {
			pass(r.kick())
		}
		next := r.kick()
		r.Observe(netip.MustParseAddrPort(addrA), false, delivery.CauseRefused)
		if after := time.Until(r.Kick()); after != next {
			t.Errorf("retry in %v, before the failure in %v", after, next)
		}
	})
}

func TestStateOfAddressesIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, resolve.Options{})
		n := 0
		r.script.set(func(context.Context) (resolve.Answer, error) {
			n += 10
			a := resolve.Answer{}
			for i := range 10 {
				a.Endpoints = append(a.Endpoints, answer(addrOf(n+i)).Endpoints...)
			}
			return a, nil
		})
		r.driven(t)
		most := 0
		for range 2000 {
			pass(time.Minute)
			most = max(most, len(r.Snapshot().Endpoints))
		}
		if n < 10_000 || most > 20 || len(r.members) > 20 {
			t.Errorf("%d addresses came and went, up to %d in the snapshot, %d remembered", n, most, len(r.members))
		}
	})
}

func TestReturningAddressStartsAnew(t *testing.T) {
	a := netip.MustParseAddrPort(addrA)
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, resolve.Options{Refresh: time.Second}, addrA)
		r.driven(t)
		r.Observe(a, true, "")
		r.script.answer(addrB)
		pass(3 * time.Second)
		r.Observe(a, true, "") // of a send that was under way
		r.script.answer(addrA)
		pass(3 * time.Second)
		if e := r.Snapshot().Endpoints; len(e) != 1 || e[0].Addr != a || e[0].State != resolve.Unknown {
			t.Errorf("%+v", e)
		}
	})
}

// The zero address stands for a socket of this host, and is an error otherwise.
func TestTidyLocal(t *testing.T) {
	found := []resolve.Endpoint{{}}
	if good, err := tidy(found, true); err != nil || len(good) != 1 || good[netip.AddrPort{}].Weight != defaultWeight {
		t.Errorf("%v, %v", good, err)
	}
	if good, err := tidy(found, false); err == nil || len(good) != 0 {
		t.Errorf("%v, %v", good, err)
	}
}
