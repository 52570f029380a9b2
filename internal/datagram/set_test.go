package datagram

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/errno"
	"github.com/wholelog/wholelog/internal/fake/loopback"
	"github.com/wholelog/wholelog/internal/ship"
)

func TestFlowsOpenOneByOneThenTakeTurns(t *testing.T) {
	r := newRig(t, 3, time.Minute)
	if got := fmt.Sprint(r.ports(t, 7)); got != "[40001 40002 40003 40001 40002 40003 40001]" {
		t.Error(got)
	}
	if got := strings.Join(r.why[:4], "\n"); got != `192.0.2.9:40001: next flow in turn
192.0.2.9:40002: new flow
192.0.2.9:40003: new flow
192.0.2.9:40001: next flow in turn` {
		t.Error(got)
	}
}

// A flow serves its age ± 20 % and not a message longer; its successor has a new port.
func TestFlowAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 4, time.Minute)
		born := map[uint16]time.Time{}
		died := map[uint16]time.Duration{}
		for range 3000 { // five minutes
			before := len(r.fakes)
			port := r.ports(t, 1)[0]
			if _, ok := born[port]; !ok {
				born[port] = time.Now()
			}
			for _, f := range r.fakes[:before] {
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
		r := newRig(t, 2, time.Minute)
		r.ports(t, 2)
		<-time.After(time.Hour)
		if r.dials != 2 {
			t.Errorf("%d flows opened", r.dials)
		}
		if got := fmt.Sprint(r.ports(t, 3)); got != "[40003 40004 40003]" {
			t.Error(got)
		}
		if !r.fakes[0].isClosed() || !r.fakes[1].isClosed() {
			t.Error("the old flows are open")
		}
		if !strings.HasSuffix(r.why[2], whyAged) {
			t.Error(r.why[2])
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
			r := newRig(t, 1, time.Minute)
			before := r.ports(t, 1)[0]
			r.jump = c.jump
			if after := r.ports(t, 1)[0]; (after != before) != c.renewed {
				t.Errorf("%s: port %d, then %d", name, before, after)
			}
		})
	}
}

// The wall clock alone jumps, the monotonic one goes on: the case that a comparison by Sub misses.
func TestFlowOldByTheWallAlone(t *testing.T) {
	now := time.Now()
	f := &Flow{born: now.Add(-time.Second).Round(0), maxAge: time.Minute}
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
		r := newRig(t, 4, time.Minute)
		r.ports(t, 2)
		r.failDial = map[int]error{3: socketError(errNoFiles), 4: socketError(errNoFiles)}
		if got := fmt.Sprint(r.ports(t, 100)[:4]); got != "[40001 40002 40001 40002]" {
			t.Error(got)
		}
		if r.dials != 3 || len(r.troubles) != 1 || r.wrongs[0] != delivery.CauseOther || !errors.Is(r.troubles[0], errNoFiles) {
			t.Errorf("%d openings tried, %v", r.dials, r.troubles)
		}
		if !strings.HasSuffix(r.why[2], whyLeft) {
			t.Error(r.why[2])
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
		r := newRig(t, 1, time.Minute)
		r.failDial = map[int]error{2: socketError(errNoFiles)}
		r.ports(t, 1)
		<-time.After(time.Hour)
		if got := r.ports(t, 1)[0]; got != 40001 || len(r.troubles) != 1 {
			t.Errorf("port %d, %v", got, r.troubles)
		}
		<-time.After(2 * reopenAfter)
		if got := r.ports(t, 1)[0]; got != 40003 || !r.fakes[0].isClosed() {
			t.Errorf("port %d", got)
		}
	})
}

// With no flow left the link ends, and nothing counts as sent. The error alone tells of it, with its cause: an outcome that told it too
// would count against the address a second time.
func TestNoFlowLeft(t *testing.T) {
	r := newRig(t, 2, time.Minute)
	r.failWrite = map[int]error{1: socketError(errRefused)}
	r.failDial = map[int]error{2: socketError(errNoFiles)}
	r.ports(t, 1)
	if err := r.send(t.Context(), "m"); !errors.Is(err, errNoFiles) || !errors.Is(err, ErrNoFlow) || ship.CauseOf(err) != delivery.CausePeerClosed {
		t.Errorf("%v", err)
	}
	if got := strings.Join(r.settled, ", "); got != "0-1 requeue refused, 0-1 requeue" || len(r.sent) != 0 {
		t.Error(got)
	}
}

// Every flow holds a refusal of its own. The first one heard speaks for all; after it one flow asks whether the address is back, so
// that one message is lost to the question, and the others open when a second passed in silence.
func TestOneFlowAfterARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 4, time.Minute)
		r.ports(t, 4)
		r.failWrite = map[int]error{5: socketError(errRefused), 8: socketError(errRefused)}
		r.ports(t, 1)
		for _, f := range r.fakes {
			if !f.isClosed() {
				t.Errorf("flow %d is open", f.port)
			}
		}
		<-time.After(time.Hour) // nothing sent is nothing heard
		if got := fmt.Sprint(r.ports(t, 2)); got != "[40005 40005]" {
			t.Errorf("by %s", got)
		}
		<-time.After(hush / 2)
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
		if got := r.why[6]; !strings.HasSuffix(got, whyHush) {
			t.Error(got)
		}
	})
}

// The second is over with the first message after it, however late that comes: until then its flow may hold a refusal.
func TestAProbeIsAskedForItsRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 4, 24*time.Hour)
		r.failWrite = map[int]error{1: socketError(errRefused), 3: socketError(errRefused)}
		r.ports(t, 2)
		<-time.After(time.Hour)
		r.settled = nil
		r.ports(t, 1)
		if got := strings.Join(r.settled, ", "); got != "0-1 requeue refused" || r.dials != 2 {
			t.Errorf("%s, %d flows", got, r.dials)
		}
	})
}

func TestDialFails(t *testing.T) {
	r := &rig{failDial: map[int]error{1: socketError(errNoRoute)}}
	if s, err := Open(t.Context(), r.config(1, time.Minute)); s != nil || !errors.Is(err, errNoRoute) {
		t.Errorf("%v, %v", s, err)
	}
}

// A flow that is opened while the set closes is closed too.
func TestOpenAfterClose(t *testing.T) {
	r := newRig(t, 16, time.Minute)
	r.set.Close()
	if _, err := r.set.open(t.Context(), 1, time.Now()); !errors.Is(err, net.ErrClosed) || !r.fakes[1].isClosed() || !r.fakes[0].isClosed() {
		t.Errorf("%v", err)
	}
	if err := r.send(t.Context(), "m"); !errors.Is(err, net.ErrClosed) || strings.Join(r.settled, ", ") != "0-1 requeue" {
		t.Errorf("%v, %v: Close is held against the address", err, r.settled)
	}
}

// A set that is closed while it has a flow opens no other, and does not go on with the closed one either.
func TestPickAfterClose(t *testing.T) {
	r := newRig(t, 2, time.Minute)
	r.ports(t, 1)
	r.set.Close()
	if f, _, err := r.set.Pick(t.Context()); f != nil || !errors.Is(err, net.ErrClosed) || !EndsLink(err) || len(r.troubles) > 0 {
		t.Errorf("%v, %v, %v", f, err, r.troubles)
	}
}

func TestEndsLink(t *testing.T) {
	for err, want := range map[error]bool{
		nil: false, ErrNoFlow: true, net.ErrClosed: true, os.ErrDeadlineExceeded: true, context.Canceled: true, context.DeadlineExceeded: true,
		errRefused: false, errNoRoute: false, errTooLong: false,
	} {
		if err != nil {
			err = fmt.Errorf("write: %w", err)
		}
		if EndsLink(err) != want {
			t.Errorf("%v: %v", err, !want)
		}
	}
}

// A datagram that is too long says nothing about its flow, which goes on.
func TestTooLongCostsNoFlow(t *testing.T) {
	r := newRig(t, 2, time.Minute)
	r.failWrite = map[int]error{1: socketError(errTooLong)}
	if err := r.send(t.Context(), "m"); !errors.Is(err, errTooLong) || r.fakes[0].isClosed() {
		t.Errorf("%v, closed %v", err, r.fakes[0].isClosed())
	}
}

// A busy sender remembers no more flows to listen to than there are, and a quiet one hears what the kernel keeps for any of them: a
// refusal ends the search, anything else is told.
func TestListen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, time.Minute)
		var asked []net.Conn
		answers := map[int]error{2: socketError(errTooLong), 5: socketError(errRefused)}
		r.set.pending = func(c net.Conn) error {
			asked = append(asked, c)
			return answers[len(asked)]
		}
		r.ports(t, 100)
		<-time.After(quiet - 1)
		r.ports(t, 1)
		if len(asked) > 0 || len(r.set.unheard) != 3 {
			t.Errorf("%d asked, %d to ask", len(asked), len(r.set.unheard))
		}
		<-time.After(quiet)
		r.ports(t, 2)
		if len(asked) != 3 || len(r.troubles) != 1 || r.wrongs[0] != delivery.CauseMTU || !errors.Is(r.troubles[0], errTooLong) {
			t.Errorf("%d asked, %v", len(asked), r.troubles)
		}
		<-time.After(quiet)
		r.settled = nil
		r.ports(t, 1)
		if got := strings.Join(r.settled, ", "); len(asked) != 5 || got != "0-1 requeue refused" || !r.fakes[2].isClosed() {
			t.Errorf("%d asked, %s", len(asked), got)
		}
	})
}

// A quiet sender hears of a refusal before its next message, whichever flow that leaves by, and a busy one does not listen.
func TestNewsOfARefusal(t *testing.T) {
	addr, err := loopback.Addr()
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Dial: new(net.Dialer).DialContext, Addr: netip.MustParseAddrPort(addr), Flows: 4, Age: time.Minute, Now: time.Now}
	s, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	now := time.Now()
	s.config.Now = func() time.Time { return now }
	for range 3 { // each by a flow of its own, and nobody listens
		f, _, err := s.Pick(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.Write([]byte("m"), 1)
		s.Done(f, err)
	}
	if s.news() != nil {
		t.Error("a busy sender listened")
	}
	if runtime.GOOS != "linux" {
		return // elsewhere the answer may take its time, or comes with the next write only
	}
	now = now.Add(quiet)
	if _, _, err := s.Pick(t.Context()); !errno.Refused(err) {
		t.Errorf("%v", err)
	}
	if !s.refused || slices.ContainsFunc(s.slots, func(f *Flow) bool { return f != nil }) {
		t.Error("flows that may hold refusals are open")
	}
	if s.Listen() != nil {
		t.Error("heard twice")
	}
}
