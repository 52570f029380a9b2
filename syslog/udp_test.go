package syslog

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/datagram"
	"github.com/wholelog/wholelog/internal/ship"
)

// udpRig dials a UDP link over fake sockets.
func udpRig(t *testing.T, s *sockets, flows int) (*heard, ship.Link) {
	t.Helper()
	h := new(heard)
	tr := &udpTransport{dial: s.dial, sendTimeout: time.Second, flows: flows, flowAge: time.Minute}
	l, err := tr.Dial(t.Context(), netip.MustParseAddrPort("192.0.2.2:514"), h.meter())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return h, l
}

// Messages take turns with the source ports, and the trace tells.
func TestUDPFlows(t *testing.T) {
	s := new(sockets)
	h, l := udpRig(t, s, 3)
	if err := l.Send(t.Context(), h.batch("a", "b", "cc", "d")); err != nil {
		t.Fatal(err)
	}
	if want := []string{"40001: a", "40002: b", "40003: cc", "40001: d"}; !slices.Equal(s.sent, want) || h.wire != 5 {
		t.Errorf("%q, %d bytes", s.sent, h.wire)
	}
	if want := "1 by 192.0.2.1:40003, 2 bytes: new flow"; h.chosen[2] != want || len(h.chosen) != 4 {
		t.Errorf("%q", h.chosen)
	}
	if !slices.Equal(h.settled, []string{"0-4 delivered"}) {
		t.Errorf("%q", h.settled)
	}
	l.Nudge()
	if err := errors.Join(l.Drain(t.Context()), l.Close()); err != nil || l.Gone() != nil {
		t.Error(err)
	}
	for _, o := range s.open {
		if !o.closed {
			t.Errorf("port %d is open", o.port)
		}
	}
}

// What fails costs a flow, or with a refusal all of them, and not the link; what the kernel did not take goes back to the queue.
func TestUDPFailures(t *testing.T) {
	for name, x := range map[string]struct {
		failures []error
		settled  string
		closed   string // ports
		trouble  delivery.Cause
	}{
		"refused":        {[]error{nil, nil, errRefused}, "0-2 delivered, 2-4 requeue refused", "40001 40002 40003", ""},
		"a firewall":     {[]error{nil, net.UnknownNetworkError("x")}, "0-1 delivered, 1-4 requeue other", "40002", ""},
		"no room":        {[]error{errBusy}, "0-4 requeue busy", "40001", ""},
		"a router's MTU": {[]error{nil, errTooLong}, "0-4 delivered", "", delivery.CauseMTU},
		"really too long": {
			[]error{nil, errTooLong, errTooLong}, "0-1 delivered, 1-2 drop mtu, 2-4 delivered", "", "",
		},
		"refused at the second try": {[]error{errTooLong, errRefused}, "0-4 requeue refused", "40001", ""},
	} {
		s := &sockets{failures: x.failures}
		h, l := udpRig(t, s, 3)
		if err := l.Send(t.Context(), h.batch("a", "b", "c", "d")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var closed []string
		for _, o := range s.open {
			if o.closed {
				closed = append(closed, strings.TrimPrefix(o.LocalAddr().String(), "192.0.2.1:"))
			}
		}
		if got, ports := strings.Join(h.settled, ", "), strings.Join(closed, " "); got != x.settled || ports != x.closed {
			t.Errorf("%s: %s; closed are %s", name, got, ports)
		}
		if x.trouble == "" && len(h.troubles) > 0 || x.trouble != "" && (len(h.causes) != 1 || h.causes[0] != x.trouble || !errors.Is(h.troubles[0], errTooLong)) {
			t.Errorf("%s: %v", name, h.troubles)
		}
	}
}

// Without a single socket the link is over, and so it is when it was closed or its write hangs.
func TestUDPLinkEnds(t *testing.T) {
	refused := errors.New("no sockets left")
	s := new(sockets)
	h, l := udpRig(t, s, 1)
	s.failures, s.refuse = []error{net.UnknownNetworkError("x")}, refused
	if err := l.Send(t.Context(), h.batch("a")); err != nil {
		t.Error(err)
	}
	if err := l.Send(t.Context(), h.batch("a")); !errors.Is(err, refused) || !errors.Is(err, datagram.ErrNoFlow) || ship.CauseOf(err) != delivery.CauseOther {
		t.Error(err)
	}
	if want := []string{"0-1 requeue other", "0-1 requeue"}; !slices.Equal(h.settled, want) {
		t.Errorf("%q", h.settled)
	}
	tr := &udpTransport{dial: s.dial, flows: 1}
	if l, err := tr.Dial(t.Context(), netip.MustParseAddrPort("192.0.2.2:514"), nil); l != nil || !errors.Is(err, refused) {
		t.Errorf("%v, %v", l, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	h, l = udpRig(t, new(sockets), 1)
	if err := l.Send(ctx, h.batch("a")); !errors.Is(err, context.Canceled) || !slices.Equal(h.settled, []string{"0-1 requeue"}) {
		t.Errorf("%v, %q", err, h.settled)
	}
}

func TestUDPLimits(t *testing.T) {
	c, err := newConfig(target{scheme: "udp", host: "h", port: "1"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	tr := newUDP(&c)
	if want := (ship.Limits{LinksPerAddr: 1, BatchBytes: 65536, Blind: true}); tr.Limits() != want || tr.flows != 16 || tr.flowAge != time.Minute {
		t.Errorf("%+v, %+v", tr.Limits(), tr)
	}
	if c, err = newConfig(c.target, Options{Flows: 3, FlowAge: time.Hour}); err != nil || newUDP(&c).flows != 3 || newUDP(&c).flowAge != time.Hour {
		t.Errorf("%+v, %v", c, err)
	}
}

type discard struct{ net.Conn }

func (discard) Write(b []byte) (int, error)      { return len(b), nil }
func (discard) SetWriteDeadline(time.Time) error { return nil }
func (discard) LocalAddr() net.Addr              { return &net.UDPAddr{} }
func (discard) Close() error                     { return nil }

// What a link does for a record it does without memory of its own.
func TestDatagramLinksDoNotAllocate(t *testing.T) {
	tr := &udpTransport{
		dial:        func(context.Context, string, string) (net.Conn, error) { return discard{}, nil },
		sendTimeout: time.Hour, flows: 16, flowAge: time.Hour,
	}
	udp, err := tr.Dial(t.Context(), netip.MustParseAddrPort("192.0.2.2:514"), nil)
	if err != nil {
		t.Fatal(err)
	}
	b := ship.NewBatch(slices.Repeat([][]byte{[]byte("record")}, 100), func(int, int, ship.Outcome) {})
	for name, l := range map[string]ship.Link{"udp": udp, "unix": newLocalLink(datagram.NewFlow(discard{}), newBacklog(nil), time.Hour, nil)} {
		send := func() {
			if err := l.Send(t.Context(), b); err != nil {
				t.Error(err)
			}
		}
		if n := testing.AllocsPerRun(100, send); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
		l.Close()
	}
}
