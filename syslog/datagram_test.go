package syslog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/ship"
)

func TestDatagramOutcome(t *testing.T) {
	for _, x := range []struct {
		err   error
		do    ship.Do
		cause delivery.Cause
		over  bool
	}{
		{nil, ship.Delivered, "", false},
		{context.Canceled, ship.Requeue, "", true},
		{net.ErrClosed, ship.Requeue, "", true},
		{errOutOfTime, ship.Requeue, "", true},
		{fs.ErrNotExist, ship.Requeue, delivery.CauseRefused, true},
		{syscall.ENOTCONN, ship.Requeue, delivery.CausePeerClosed, true},
		{syscall.EPIPE, ship.Requeue, delivery.CausePeerClosed, true},
		{os.ErrDeadlineExceeded, ship.Requeue, delivery.CauseTimeout, true},
		{syscall.ENETUNREACH, ship.Requeue, delivery.CauseOther, true},
		{errors.New("x"), ship.Requeue, delivery.CauseOther, true},
	} {
		err := x.err
		if err != nil {
			err = fmt.Errorf("write: %w", err)
		}
		o, over := datagramOutcome(err)
		if o.Do != x.do || o.Cause != x.cause || over != x.over || (o.Err != nil) != (x.cause != "") {
			t.Errorf("%v: %+v, %v", x.err, o, over)
		}
	}
}

// socket is a datagram socket that fails as it is told; after the failures it blocks until its deadline if it is to hang.
type socket struct {
	net.Conn
	failures []error
	hangs    bool
	deadline time.Time
	sent     []string
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
	s.sent = append(s.sent, string(b))
	return len(b), nil
}

func (s *socket) SetWriteDeadline(t time.Time) error { s.deadline = t; return nil }
func (s *socket) LocalAddr() net.Addr                { return &net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 9} }
func (s *socket) Close() error                       { return nil }

func TestDatagramLink(t *testing.T) {
	for name, x := range map[string]struct {
		socket socket
		ctx    time.Duration // 0: no limit
		want   string        // of three records
		cause  delivery.Cause
		after  time.Duration
	}{
		"all leave":             {want: "0-3 delivered"},
		"the second is refused": {socket: socket{failures: []error{nil, syscall.EPIPE}}, want: "0-1 delivered, 1-3 requeue", cause: delivery.CausePeerClosed},
		"a peer that hangs":     {socket: socket{failures: []error{nil}, hangs: true}, want: "0-1 delivered, 1-3 requeue", cause: delivery.CauseTimeout, after: 10 * time.Second},
		"a caller in a hurry":   {socket: socket{hangs: true}, ctx: time.Second, want: "0-3 requeue", cause: delivery.CauseOther, after: time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, start := x.socket, time.Now()
			var chosen, settled []string
			bytes := 0
			l := newDatagramLink(&s, 10*time.Second, ship.NewMeter(ship.Recorder{
				Wire: func(n int) { bytes += n },
				Chose: func(_ netip.AddrPort, records, _ int, why string) {
					chosen = append(chosen, fmt.Sprint(records, " ", why))
				},
			}))
			ctx := t.Context()
			if x.ctx > 0 {
				limited, cancel := context.WithTimeout(ctx, x.ctx)
				defer cancel()
				ctx = limited
			}
			err := l.Send(ctx, ship.NewBatch([][]byte{[]byte("a"), []byte("bb"), []byte("ccc")}, func(from, to int, o ship.Outcome) {
				settled = append(settled, fmt.Sprintf("%d-%d %s", from, to, map[ship.Do]string{ship.Delivered: "delivered", ship.Requeue: "requeue"}[o.Do]))
			}))
			if got := strings.Join(settled, ", "); got != x.want || (err != nil) != (x.cause != "") || err != nil && ship.CauseOf(err) != x.cause {
				t.Errorf("%s: %s, %v", name, got, err)
			}
			if time.Since(start) != x.after || bytes != len(strings.Join(s.sent, "")) {
				t.Errorf("%s: after %v, %d bytes", name, time.Since(start), bytes)
			}
			if want := []string{"1 new socket", "1 open socket", "1 open socket"}; !slices.Equal(chosen, want) {
				t.Errorf("%s: %v", name, chosen)
			}
			if err := errors.Join(l.Drain(ctx), l.Close()); err != nil || l.Gone() != nil {
				t.Error(err)
			}
			l.Nudge()
		})
	}
}
