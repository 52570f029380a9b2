package gelf

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/ship"
)

// ports sends n messages and returns the source ports they left by.
func (r *rig) ports(t testing.TB, n int) []uint16 {
	t.Helper()
	from := len(r.sent)
	for range n {
		if err := r.send(t.Context(), []byte(`{"a":1}`)); err != nil {
			t.Fatal(err)
		}
	}
	var out []uint16
	for _, d := range r.sent[from:] {
		out = append(out, d.flow.port)
	}
	return out
}

func TestFlowsOpenOneByOneThenTakeTurns(t *testing.T) {
	r := newRig(t, udpConfig{flows: 3})
	if got := fmt.Sprint(r.ports(t, 7)); got != "[40001 40002 40003 40001 40002 40003 40001]" {
		t.Error(got)
	}
	var why []string
	for _, c := range r.chosen {
		why = append(why, fmt.Sprintf("%v: %s", c.local, c.why))
		if c.records != 1 {
			t.Errorf("a choice for %d records", c.records)
		}
	}
	if got := strings.Join(why[:4], "\n"); got != `192.0.2.9:40001: next flow in turn
192.0.2.9:40002: new flow
192.0.2.9:40003: new flow
192.0.2.9:40001: next flow in turn` {
		t.Error(got)
	}
}

// A flow serves its age ± 20 % and not a message longer; its successor has a new port.
func TestFlowAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, udpConfig{flows: 4, flowAge: time.Minute})
		born := map[uint16]time.Time{}
		died := map[uint16]time.Duration{}
		for range 3000 { // five minutes
			before := len(r.flows)
			port := r.ports(t, 1)[0]
			if _, ok := born[port]; !ok {
				born[port] = time.Now()
			}
			for _, f := range r.flows[:before] {
				if _, ok := died[f.port]; f.isClosed() && !ok {
					died[f.port] = time.Since(born[f.port])
				}
			}
			<-time.After(100 * time.Millisecond)
		}
		ages := map[time.Duration]bool{}
		for port, age := range died {
			if age < 48*time.Second || age > 73*time.Second {
				t.Errorf("port %d served %v", port, age)
			}
			ages[age.Round(time.Second)] = true
		}
		if len(died) < 12 || len(ages) < 5 {
			t.Errorf("%d flows ended, at ages %v", len(died), ages)
		}
	})
}

// An idle flow costs nothing and is renewed when its turn comes.
func TestFlowsAreNotRenewedWithoutAMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, udpConfig{flows: 2})
		r.ports(t, 2)
		<-time.After(time.Hour)
		if r.dials != 2 {
			t.Errorf("%d flows opened", r.dials)
		}
		if got := fmt.Sprint(r.ports(t, 3)); got != "[40003 40004 40003]" {
			t.Error(got)
		}
		if !r.flows[0].isClosed() || !r.flows[1].isClosed() {
			t.Error("the old flows are open")
		}
		if r.chosen[2].why != whyAged {
			t.Error(r.chosen[2].why)
		}
	})
}

// A frozen process sees the wall clock jump and the monotonic one stand still. A clock set back by more than an age says that
// nobody knows how old a flow is.
func TestFlowsAfterAClockJump(t *testing.T) {
	for name, c := range map[string]struct {
		jump    time.Duration
		renewed bool
	}{
		"frozen for an hour":  {time.Hour, true},
		"frozen for a second": {time.Second, false},
		"set back an hour":    {-time.Hour, true},
		"set back a second":   {-time.Second, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, udpConfig{flows: 1})
			before := r.ports(t, 1)[0]
			// Without a monotonic reading, Sub compares the wall: as after a resume, when only that moved.
			r.link.(*udpLink).flows.now = func() time.Time { return time.Now().Round(0).Add(c.jump) }
			if after := r.ports(t, 1)[0]; (after != before) != c.renewed {
				t.Errorf("%s: port %d, then %d", name, before, after)
			}
		})
	}
}

// The wall clock alone jumps, the monotonic one goes on: the case that a comparison by Sub misses.
func TestFlowOldByTheWallAlone(t *testing.T) {
	now := time.Now()
	f := &flow{born: now.Add(-time.Second).Round(0), maxAge: time.Minute}
	if f.old(now) {
		t.Error("old after a second")
	}
	f.born = now.Add(-2 * time.Minute)
	if !f.old(now) {
		t.Error("not old after two minutes by both clocks")
	}
	f.born = now.Add(2 * time.Minute).Round(0)
	if !f.old(now) {
		t.Error("not old though the wall clock was set back by more than an age")
	}
}

// Out of file descriptors: the flows there are serve in turn, it is reported, and opening is tried again, but not for every message.
func TestOpeningFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, udpConfig{flows: 4})
		r.ports(t, 2)
		r.failDial = map[int]error{3: socketError(errNoFiles), 4: socketError(errNoFiles)}
		if got := fmt.Sprint(r.ports(t, 100)[:4]); got != "[40001 40002 40001 40002]" {
			t.Error(got)
		}
		if r.dials != 3 || len(r.troubles) != 1 || r.troubles[0].cause != delivery.CauseOther || !errors.Is(r.troubles[0].err, errNoFiles) {
			t.Errorf("%d openings tried, %v", r.dials, r.troubles)
		}
		if r.chosen[2].why != whyLeft {
			t.Error(r.chosen[2].why)
		}
		<-time.After(2 * reopenAfter)
		r.ports(t, 100)
		if r.dials != 4 || len(r.troubles) != 2 {
			t.Errorf("%d openings tried, %v", r.dials, r.troubles)
		}
		<-time.After(2 * reopenAfter)
		if got := fmt.Sprint(r.ports(t, 4)); !strings.Contains(got, "40005") || !strings.Contains(got, "40006") {
			t.Error(got)
		}
	})
}

// An old flow is better than none.
func TestRenewalFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, udpConfig{flows: 1})
		r.failDial = map[int]error{2: socketError(errNoFiles)}
		r.ports(t, 1)
		<-time.After(time.Hour)
		if got := r.ports(t, 1)[0]; got != 40001 || len(r.troubles) != 1 {
			t.Errorf("port %d, %v", got, r.troubles)
		}
		<-time.After(2 * reopenAfter)
		if got := r.ports(t, 1)[0]; got != 40003 || !r.flows[0].isClosed() {
			t.Errorf("port %d", got)
		}
	})
}

// With no flow left the link ends, and nothing counts as sent. The error alone tells of it, with its cause: an outcome that told it too
// would count against the address a second time.
func TestNoFlowLeft(t *testing.T) {
	r := newRig(t, udpConfig{flows: 2})
	r.failWrite = map[int]error{1: socketError(errRefused)}
	r.failDial = map[int]error{2: socketError(errNoFiles)}
	r.ports(t, 1)
	if err := r.send(t.Context(), []byte(`{"a":1}`)); !errors.Is(err, errNoFiles) || ship.CauseOf(err) != delivery.CauseOther {
		t.Errorf("%v", err)
	}
	if last := r.settled[len(r.settled)-1].Outcome; last != (ship.Outcome{Do: ship.Requeue}) || len(r.sent) != 0 {
		t.Errorf("%v", last)
	}
}

// Every flow holds a refusal of its own. The first one heard speaks for all; after it one flow asks whether the address is back, so
// that one message is lost to the question, and the others open when a second passed in silence.
func TestOneFlowAfterARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, udpConfig{flows: 4})
		r.ports(t, 4)
		r.failWrite = map[int]error{5: socketError(errRefused), 8: socketError(errRefused)}
		r.ports(t, 1)
		for _, f := range r.flows {
			if !f.isClosed() {
				t.Errorf("flow %d is open", f.port)
			}
		}
		<-time.After(time.Hour) // nothing sent is nothing heard
		if got := fmt.Sprint(r.ports(t, 2)); got != "[40005 40005]" {
			t.Errorf("by %s", got)
		}
		r.ports(t, 1) // refused again: the second counts from the next message
		for _, c := range []struct {
			wait time.Duration
			want string
		}{
			{0, "[40006 40006 40006]"},
			{hush, "[40006 40006]"},
			{time.Millisecond, "[40006 40006 40007 40008 40009]"},
		} {
			<-time.After(c.wait)
			if got := fmt.Sprint(r.ports(t, strings.Count(c.want, " ")+1)); got != c.want {
				t.Errorf("%v later by %s, want %s", c.wait, got, c.want)
			}
		}
		if got := r.chosen[6].why; got != whyHush {
			t.Error(got)
		}
	})
}

// The second is over with the first message after it, however late that comes: until then its flow may hold a refusal.
func TestAProbeIsAskedForItsRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, udpConfig{flows: 4, flowAge: 24 * time.Hour})
		r.failWrite = map[int]error{1: socketError(errRefused), 3: socketError(errRefused)}
		r.ports(t, 2)
		<-time.After(time.Hour)
		r.settled = nil
		r.ports(t, 1)
		if got := r.outcomes(); got != "1 requeue refused" || r.dials != 2 {
			t.Errorf("%s, %d flows", got, r.dials)
		}
	})
}

func TestDialFails(t *testing.T) {
	tr := newUDP(udpConfig{chunkSize: 1232, flows: 1, flowAge: time.Minute, packetRate: -1})
	r := &rig{failDial: map[int]error{1: socketError(errNoRoute)}}
	tr.dial = r.open
	if link, err := tr.Dial(t.Context(), rigAddr, nil); link != nil || !errors.Is(err, errNoRoute) {
		t.Errorf("%v, %v", link, err)
	}
}

// A flow that is opened while the link closes is closed too.
func TestOpenAfterClose(t *testing.T) {
	r := newRig(t, udpConfig{})
	flows := &r.link.(*udpLink).flows
	r.link.Close()
	if _, err := flows.open(t.Context(), 1, time.Now()); !errors.Is(err, net.ErrClosed) || !r.flows[1].isClosed() {
		t.Errorf("%v", err)
	}
}
