package ship

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/delivery"
)

// teller is a link that says why it is gone.
type teller struct {
	*fakeLink
	why error
}

func (l teller) Err() error { return l.why }

// A link that is gone is asked why, so that the counters hold the exact symptom.
func TestWhyALinkIsGone(t *testing.T) {
	reset := &Fault{delivery.CauseReset, errors.New("reset by the peer")}
	for _, tc := range []struct {
		link Link
		want delivery.Cause
	}{
		{&fakeLink{}, delivery.CausePeerClosed},
		{teller{why: reset}, delivery.CauseReset},
		{teller{}, delivery.CausePeerClosed},
	} {
		if got := CauseOf(goneWhy(tc.link)); got != tc.want {
			t.Errorf("%T: %s, want %s", tc.link, got, tc.want)
		}
	}
}

// Links that take everything and settle nothing hold a quarter of the budget between them at most, and what leaves them room: the others
// go on, however small the budget is and however large the window.
func TestWindowsAreAShareOfTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const budget = 512 << 10
		net := newFakeNet(Limits{Window: 256 << 10})
		a := addrs(4)
		net.send = func(l *fakeLink, b *Batch) error {
			if l.addr != a[0] {
				return nil // three of four never say anything
			}
			l.deliver(b)
			return nil
		}
		e := newTestEngine(net, delivery.Options{QueueBytes: budget, MaxBlock: time.Minute}, resolveTo(a...))
		const n = 20_000
		for i := range n {
			_ = e.Put(slog.LevelInfo, fmt.Appendf(nil, "%0100d", i))
		}
		time.Sleep(2 * time.Second)
		s := e.Stats()
		balanced(t, s)
		held := 0
		for _, ep := range s.Endpoints {
			held += int(ep.PendingBytes)
		}
		if s.Dropped > 0 || s.Delivered < n-budget/4/100 || held > budget/4 {
			t.Errorf("%d delivered, %d dropped, %d bytes held", s.Delivered, s.Dropped, held)
		}
		e.Close()
	})
}
