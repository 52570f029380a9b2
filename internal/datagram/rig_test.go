package datagram

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/leak"
	"github.com/wholelog/wholelog/internal/ship"
)

func TestMain(m *testing.M) { leak.Main(m) }

var rigAddr = netip.MustParseAddrPort("192.0.2.1:514")

// rig is a link of one datagram for each record, over fake sockets, and everything it says.
type rig struct {
	set *Set
	run Run

	// Set before send: errors of the writes and openings to come, by their number from 1.
	failWrite, failDial map[int]error
	jump                time.Duration // of the wall clock alone

	dials, writes int
	fakes         []*fake
	sent          []uint16 // the port of each datagram
	why           []string
	settled       []string
	troubles      []error
	wrongs        []delivery.Cause
}

// newRig opens a set of n flows.
func newRig(t testing.TB, n int, age time.Duration) *rig {
	t.Helper()
	r := new(rig)
	var err error
	if r.set, err = Open(t.Context(), r.config(n, age)); err != nil {
		t.Fatal(err)
	}
	r.run = Run{Message: r.message, Outcome: outcome}
	t.Cleanup(r.set.Close)
	return r
}

func (r *rig) config(n int, age time.Duration) Config {
	return Config{
		Dial: r.dial, Addr: rigAddr, Flows: n, Age: age,
		Now: func() time.Time {
			if r.jump != 0 {
				return time.Now().Round(0).Add(r.jump) // without a monotonic reading Sub compares the wall
			}
			return time.Now()
		},
		Meter: ship.NewMeter(ship.Recorder{Trouble: func(c delivery.Cause, err error) {
			r.wrongs, r.troubles = append(r.wrongs, c), append(r.troubles, err)
		}}),
	}
}

func (r *rig) message(ctx context.Context, data []byte) error {
	f, why, err := r.set.Pick(ctx)
	if err != nil {
		return err
	}
	r.why = append(r.why, fmt.Sprint(f.Local(), ": ", why))
	if err = f.Within(ctx, time.Now(), 10*time.Second); err == nil {
		_, err = f.Write(data, len(data))
	}
	r.set.Done(f, err)
	return err
}

// send sends records as one batch.
func (r *rig) send(ctx context.Context, records ...string) error {
	var data [][]byte
	for _, s := range records {
		data = append(data, []byte(s))
	}
	return r.run.Send(ctx, ship.NewBatch(data, func(from, to int, o ship.Outcome) {
		do := map[ship.Do]string{ship.Delivered: "delivered", ship.Requeue: "requeue", ship.Drop: "drop"}[o.Do]
		r.settled = append(r.settled, strings.TrimSpace(fmt.Sprintf("%d-%d %s %s", from, to, do, o.Cause)))
	}))
}

// ports sends n messages and returns the source ports they left by.
func (r *rig) ports(t testing.TB, n int) []uint16 {
	t.Helper()
	from := len(r.sent)
	for range n {
		if err := r.send(t.Context(), "m"); err != nil {
			t.Fatal(err)
		}
	}
	return r.sent[from:]
}

func (r *rig) dial(_ context.Context, network, addr string) (net.Conn, error) {
	r.dials++
	if network != "udp" || addr != rigAddr.String() {
		return nil, fmt.Errorf("dial %s %s", network, addr)
	}
	if err := r.failDial[r.dials]; err != nil {
		return nil, err
	}
	f := &fake{rig: r, port: uint16(40000 + r.dials), closed: make(chan struct{})}
	r.fakes = append(r.fakes, f)
	return f, nil
}

// fake is a connected socket of a rig.
type fake struct {
	net.Conn
	rig      *rig
	port     uint16
	once     sync.Once
	closed   chan struct{}
	deadline time.Time
	limits   int // deadlines set
}

func (f *fake) Write(b []byte) (int, error) {
	f.rig.writes++
	if f.isClosed() {
		return 0, net.ErrClosed
	}
	if err := f.rig.failWrite[f.rig.writes]; err != nil {
		return 0, err
	}
	f.rig.sent = append(f.rig.sent, f.port)
	return len(b), nil
}

func (f *fake) SetWriteDeadline(t time.Time) error {
	f.deadline, f.limits = t, f.limits+1
	return nil
}

func (f *fake) LocalAddr() net.Addr {
	return &net.UDPAddr{IP: net.IPv4(192, 0, 2, 9), Port: int(f.port)}
}

func (f *fake) RemoteAddr() net.Addr { return net.UDPAddrFromAddrPort(rigAddr) }

func (f *fake) Close() error {
	f.once.Do(func() { close(f.closed) })
	return nil
}

// isClosed says whether the set has closed the flow.
func (f *fake) isClosed() bool {
	select {
	case <-f.closed:
		return true
	default:
		return false
	}
}

// socketError is how package net reports what the kernel says.
func socketError(err error) error {
	return &net.OpError{Op: "write", Net: "udp", Err: os.NewSyscallError("write", err)}
}
