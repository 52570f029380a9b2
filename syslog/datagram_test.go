package syslog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/datagram"
	"github.com/wholelog/wholelog/internal/ship"
)

func TestDatagramOutcome(t *testing.T) {
	for _, x := range []struct {
		err        error
		do         ship.Do
		cause      delivery.Cause
		local, udp bool // the link is over
	}{
		{nil, ship.Delivered, "", false, false},
		{errTooLong, ship.Drop, delivery.CauseMTU, false, false},
		{context.Canceled, ship.Requeue, "", true, true},
		{net.ErrClosed, ship.Requeue, "", true, true},
		{errRefused, ship.Requeue, delivery.CauseRefused, true, false},
		{fs.ErrNotExist, ship.Requeue, delivery.CauseRefused, true, false},
		{syscall.ENOTCONN, ship.Requeue, delivery.CausePeerClosed, true, false},
		{syscall.ECONNRESET, ship.Requeue, delivery.CausePeerClosed, true, false},
		{syscall.EPIPE, ship.Requeue, delivery.CausePeerClosed, true, false},
		{errBusy, ship.Requeue, delivery.CauseBusy, false, false},
		{os.ErrDeadlineExceeded, ship.Requeue, delivery.CauseTimeout, true, true},
		{context.DeadlineExceeded, ship.Requeue, delivery.CauseTimeout, true, true},
		{datagram.ErrNoFlow, ship.Requeue, delivery.CauseOther, true, true},
		{syscall.EACCES, ship.Requeue, delivery.CauseOther, true, false},
		{syscall.ENETUNREACH, ship.Requeue, delivery.CauseOther, true, false},
		{errors.New("x"), ship.Requeue, delivery.CauseOther, true, false},
	} {
		err := x.err
		if err != nil {
			err = fmt.Errorf("write: %w", err)
		}
		o := datagramOutcome(err)
		if o.Do != x.do || o.Cause != x.cause || (o.Err != nil) != (x.cause != "") || (o.Reason == delivery.ReasonTooLarge) != (x.do == ship.Drop) {
			t.Errorf("%v: %+v", x.err, o)
		}
		for _, over := range []struct {
			outcome func(error) (ship.Outcome, bool)
			want    bool
		}{{localOutcome, x.local}, {udpOutcome, x.udp}} {
			if same, got := over.outcome(err); got != over.want || same != o {
				t.Errorf("%v: over %v, want %v; %+v", x.err, got, over.want, same)
			}
		}
	}
}

// sockets are datagram sockets that fail as they are told, one error for each write; after these they block until their deadline if
// they are to hang.
type sockets struct {
	failures []error
	hangs    bool
	refuse   error // to open one

	open []*socket
	sent []string // port: message
}

func (s *sockets) dial(context.Context, string, string) (net.Conn, error) {
	if s.refuse != nil {
		return nil, s.refuse
	}
	s.open = append(s.open, &socket{sockets: s, port: 40001 + len(s.open)})
	return s.open[len(s.open)-1], nil
}

type socket struct {
	net.Conn
	*sockets
	port     int
	deadline time.Time
	closed   bool
}

func (s *socket) Write(b []byte) (int, error) {
	if len(s.failures) > 0 {
		err := s.failures[0]
		s.failures = s.failures[1:]
		if err != nil {
			return 0, err
		}
	} else if s.hangs {
		time.Sleep(time.Until(s.deadline))
		return 0, os.ErrDeadlineExceeded
	}
	s.sent = append(s.sent, fmt.Sprintf("%d: %s", s.port, b))
	return len(b), nil
}

func (s *socket) SetWriteDeadline(t time.Time) error {
	s.deadline = t
	return nil
}

func (s *socket) LocalAddr() net.Addr {
	return &net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: s.port}
}

func (s *socket) RemoteAddr() net.Addr {
	return &net.UDPAddr{IP: net.IPv4(192, 0, 2, 2), Port: 514}
}

func (s *socket) Close() error {
	s.closed = true
	return nil
}

// heard is what a link said besides errors.
type heard struct {
	settled, chosen []string
	troubles        []error
	causes          []delivery.Cause
	wire            int
}

func (h *heard) meter() *ship.Meter {
	return ship.NewMeter(ship.Recorder{
		Wire: func(n int) { h.wire += n },
		Chose: func(local netip.AddrPort, records, bytes int, why string) {
			h.chosen = append(h.chosen, fmt.Sprintf("%d by %v, %d bytes: %s", records, local, bytes, why))
		},
		Trouble: func(c delivery.Cause, err error) { h.causes, h.troubles = append(h.causes, c), append(h.troubles, err) },
	})
}

func (h *heard) batch(records ...string) *ship.Batch {
	var data [][]byte
	for _, r := range records {
		data = append(data, []byte(r))
	}
	return ship.NewBatch(data, func(from, to int, o ship.Outcome) {
		do := map[ship.Do]string{ship.Delivered: "delivered", ship.Requeue: "requeue", ship.Drop: "drop"}[o.Do]
		h.settled = append(h.settled, strings.TrimSpace(fmt.Sprintf("%d-%d %s %s", from, to, do, o.Cause)))
	})
}

func TestLocalLink(t *testing.T) {
	for name, x := range map[string]struct {
		sockets sockets
		ctx     time.Duration // 0: no limit
		want    string        // of three records
		cause   delivery.Cause
		after   time.Duration
	}{
		"all leave":             {want: "0-3 delivered"},
		"the second is refused": {sockets: sockets{failures: []error{nil, syscall.EPIPE}}, want: "0-1 delivered, 1-3 requeue", cause: delivery.CausePeerClosed},
		"one is too long":       {sockets: sockets{failures: []error{nil, errTooLong}}, want: "0-1 delivered, 1-2 drop mtu, 2-3 delivered"},
		"no room":               {sockets: sockets{failures: []error{nil, errBusy}}, want: "0-1 delivered, 1-3 requeue busy"},
		"a peer that hangs":     {sockets: sockets{failures: []error{nil}, hangs: true}, want: "0-1 delivered, 1-3 requeue", cause: delivery.CauseTimeout, after: 10 * time.Second},
		"a caller in a hurry":   {sockets: sockets{hangs: true}, ctx: time.Second, want: "0-3 requeue", after: time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, start, h := x.sockets, time.Now(), new(heard)
			conn, _ := s.dial(t.Context(), "unixgram", "/dev/log")
			l := newLocalLink(datagram.NewFlow(conn), newBacklog(nil), 10*time.Second, h.meter())
			ctx := t.Context()
			if x.ctx > 0 {
				limited, cancel := context.WithTimeout(ctx, x.ctx)
				defer cancel()
				ctx = limited
			}
			err := l.Send(ctx, h.batch("a", "bb", "ccc"))
			if got := strings.Join(h.settled, ", "); got != x.want || (err != nil) != (x.cause != "") || err != nil && ship.CauseOf(err) != x.cause {
				t.Errorf("%s: %s, %v", name, got, err)
			}
			if sent := len(strings.Join(s.sent, "")) - len("40001: ")*len(s.sent); time.Since(start) != x.after || h.wire != sent {
				t.Errorf("%s: after %v, %d bytes", name, time.Since(start), h.wire)
			}
			if want := "1 by 192.0.2.1:40001, 1 bytes: local socket"; h.chosen[0] != want {
				t.Errorf("%s: %v", name, h.chosen)
			}
			if err := errors.Join(l.Drain(ctx), l.Close()); err != nil || l.Gone() != nil || !s.open[0].closed {
				t.Error(err)
			}
			l.Nudge()
		})
	}
}
