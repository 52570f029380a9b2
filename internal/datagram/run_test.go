package datagram

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/errno"
	"github.com/wholelog/wholelog/internal/ship"
)

var errBad = errors.New("bad record")

// outcome is that of a protocol that knows little.
func outcome(err error) (o ship.Outcome, over bool) {
	switch {
	case err == nil:
		return ship.Outcome{Do: ship.Delivered}, false
	case errors.Is(err, errBad):
		return ship.Outcome{Do: ship.Drop, Reason: delivery.ReasonTooLarge, Err: err}, false
	case errno.Refused(err):
		return ship.Outcome{Do: ship.Requeue, Cause: delivery.CauseRefused, Err: err}, false
	case errors.Is(err, net.ErrClosed), errors.Is(err, context.Canceled):
		return ship.Outcome{Do: ship.Requeue}, true
	}
	return ship.Outcome{Do: ship.Requeue, Cause: delivery.CausePeerClosed, Err: err}, true
}

// Whatever happens to a record, all of them are settled once, in order, and the end of a link is told once.
func TestRun(t *testing.T) {
	refused, broken := socketError(errRefused), errors.New("broken")
	for name, x := range map[string]struct {
		failures map[int]error // by the number of the message, from 0
		want     string
		err      error
	}{
		"all leave":                  {nil, "0-4 delivered", nil},
		"a bad record costs itself":  {map[int]error{1: errBad}, "0-1 delivered, 1-2 drop, 2-4 delivered", nil},
		"the first is bad":           {map[int]error{0: errBad}, "0-1 drop, 1-4 delivered", nil},
		"the last is bad":            {map[int]error{3: errBad}, "0-3 delivered, 3-4 drop", nil},
		"two are bad":                {map[int]error{1: errBad, 2: errBad}, "0-1 delivered, 1-2 drop, 2-3 drop, 3-4 delivered", nil},
		"the address refuses":        {map[int]error{2: refused}, "0-2 delivered, 2-4 requeue refused", nil},
		"the link breaks":            {map[int]error{2: broken}, "0-2 delivered, 2-4 requeue", broken},
		"the link is closed":         {map[int]error{0: net.ErrClosed}, "0-4 requeue", net.ErrClosed},
		"a bad record and a refusal": {map[int]error{0: errBad, 2: refused}, "0-1 drop, 1-2 delivered, 2-4 requeue refused", nil},
	} {
		n := 0
		r := &rig{run: Run{Outcome: outcome, Message: func(context.Context, []byte) error {
			n++
			return x.failures[n-1]
		}}}
		err := r.send(t.Context(), "a", "b", "c", "d")
		if got := strings.Join(r.settled, ", "); got != x.want || !errors.Is(err, x.err) || (err == nil) != (x.err == nil) {
			t.Errorf("%s: %s, %v", name, got, err)
		}
		if cause := delivery.CausePeerClosed; x.err == broken && ship.CauseOf(err) != cause {
			t.Errorf("%s: %v", name, ship.CauseOf(err))
		}
	}
}

// What was sent before a wait is settled before it.
func TestRunSettlesBeforeWaits(t *testing.T) {
	r := new(rig)
	var seen []int
	r.run = Run{Outcome: outcome, Message: func(context.Context, []byte) error {
		if len(seen) == 2 {
			r.run.Settle()
			r.run.Settle() // of nothing new
		}
		seen = append(seen, len(r.settled))
		return nil
	}}
	if err := r.send(t.Context(), "a", "b", "c", "d"); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(r.settled, ", "); got != "0-2 delivered, 2-4 delivered" || seen[2] != 1 {
		t.Errorf("%s, %v", got, seen)
	}
}

// The end of the caller's time says nothing about the link; that of the caller himself ends it, and is held against nobody.
func TestRunEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := new(rig)
		r.run = Run{Outcome: outcome, Message: func(ctx context.Context, _ []byte) error {
			<-time.After(600 * time.Millisecond)
			if ctx.Err() != nil {
				return os.ErrDeadlineExceeded
			}
			return nil
		}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.send(ctx, "a", "b", "c"); err != nil || strings.Join(r.settled, ", ") != "0-1 delivered, 1-3 requeue" {
			t.Errorf("%v, %v", r.settled, err)
		}
		ended, end := context.WithCancel(t.Context())
		end()
		r.settled = nil
		if err := r.send(ended, "a", "b"); !errors.Is(err, context.Canceled) || strings.Join(r.settled, ", ") != "0-2 requeue" {
			t.Errorf("%v, %v", r.settled, err)
		}
	})
}
