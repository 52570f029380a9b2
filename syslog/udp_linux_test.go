package syslog

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/errno"
	"github.com/wholelog/wholelog/internal/fake/loopback"
)

// The refusal of the last message, which no later one meets, is told when the link ends. Linux has it almost at once.
func TestUDPRefusalOfTheLastMessage(t *testing.T) {
	addr, err := loopback.Addr()
	if err != nil {
		t.Fatal(err)
	}
	c, err := newConfig(target{scheme: "udp", host: "h", port: "1"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	h := new(heard)
	l, err := newUDP(&c).Dial(t.Context(), netip.MustParseAddrPort(addr), h.meter())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for deadline := time.Now().Add(time.Minute); len(h.troubles) == 0 && time.Now().Before(deadline); {
		h.settled = nil
		if err := l.Send(t.Context(), h.batch("last")); err != nil {
			t.Fatal(err)
		}
		if slices.Equal(h.settled, []string{"0-1 delivered"}) { // else it met the refusal of the one before
			<-time.After(time.Millisecond)
		}
		if err := l.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if len(h.troubles) != 1 || h.causes[0] != delivery.CauseRefused || !errno.Refused(h.troubles[0]) {
		t.Errorf("%v", h.troubles)
	}
}
