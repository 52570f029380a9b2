package gelf

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wholelog/wholelog/chunk"
	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/ship"
)

// A rig is a UDP link over fake sockets and everything it says.
type rig struct {
	*udpTransport
	link ship.Link

	// Set before send: errors of the writes and openings to come, by their number from 1.
	failWrite, failDial map[int]error
	block               bool        // writes wait for a deadline or for Close
	onWrite             func(n int) // told the number of every write that succeeded

	mu        sync.Mutex
	dials     int
	writes    int
	flows     []*fakeFlow
	sent      []packet
	settled   []settlement
	wire      []wireCall
	truncated int
	troubles  []trouble
	chosen    []chosen
}

type packet struct {
	flow *fakeFlow
	data []byte
	at   time.Time
}

type settlement struct {
	from, to int
	ship.Outcome
}

type wireCall struct {
	bytes int
	at    time.Time
}

type trouble struct {
	cause delivery.Cause
	err   error
}

type chosen struct {
	local          netip.AddrPort
	records, bytes int
	why            string
}

var rigAddr = netip.MustParseAddrPort("192.0.2.1:12201")

// newRig dials a link with c, whose zero fields get defaults: 1232 bytes, 16 flows of a minute, no pacing, 10 s
// for a write.
func newRig(t testing.TB, c udpConfig) *rig {
	t.Helper()
	if c.chunkSize == 0 {
		c.chunkSize = 1232
	}
	if c.flows == 0 {
		c.flows = 16
	}
	if c.flowAge == 0 {
		c.flowAge = time.Minute
	}
	if c.packetRate == 0 {
		c.packetRate = -1
	}
	if c.sendTimeout == 0 {
		c.sendTimeout = defaultSend
	}
	r := &rig{udpTransport: newUDP(c)}
	r.dial = r.open
	link, err := r.Dial(t.Context(), rigAddr, ship.NewMeter(ship.Recorder{
		Wire: func(n int) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.wire = append(r.wire, wireCall{n, time.Now()})
		},
		Truncated: func(n int) { r.truncated += n },
		Trouble:   func(cause delivery.Cause, err error) { r.troubles = append(r.troubles, trouble{cause, err}) },
		Chose: func(local netip.AddrPort, records, bytes int, why string) {
			r.chosen = append(r.chosen, chosen{local, records, bytes, why})
		},
	}))
	if err != nil {
		t.Fatal(err)
	}
	r.link = link
	t.Cleanup(func() { link.Close() })
	return r
}

// send sends records as one batch.
func (r *rig) send(ctx context.Context, records ...[]byte) error {
	return r.link.Send(ctx, ship.NewBatch(records, func(from, to int, o ship.Outcome) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.settled = append(r.settled, settlement{from, to, o})
	}))
}

// outcomes tells what was settled, in order: "2 delivered, 1 requeue refused". A record left out or settled twice shows.
func (r *rig) outcomes() string { return outcomesOf(r.settled) }

func outcomesOf(settled []settlement) string {
	names := map[ship.Do]string{
		ship.Delivered: "delivered", ship.Requeue: "requeue", ship.Resend: "resend",
		ship.Divert: "divert", ship.Halve: "halve", ship.Drop: "drop",
	}
	var out []string
	next, count, last := 0, 0, ""
	flush := func() {
		if count > 0 {
			out = append(out, fmt.Sprintf("%d %s", count, last))
		}
	}
	for _, s := range settled {
		if s.from != next {
			out = append(out, fmt.Sprintf("%d follows %d", s.from, next))
		}
		next = s.to
		word := strings.Join(strings.Fields(fmt.Sprint(names[s.Do], " ", s.Cause, " ", s.Reason)), " ")
		if word != last {
			flush()
			count, last = 0, word
		}
		count += s.to - s.from
	}
	flush()
	return strings.Join(out, ", ")
}

// messages puts the datagrams together by id, and checks what every message must keep: one flow, datagrams no longer than size,
// at most 128, none empty. Messages of which a chunk is missing are nil.
func (r *rig) messages(t testing.TB, size int) [][]byte {
	t.Helper()
	type message struct {
		flow  *fakeFlow
		parts [][]byte
	}
	var order []*message
	byID := map[uint64]*message{}
	for _, d := range r.sent {
		if len(d.data) > size || len(d.data) < 2 {
			t.Errorf("datagram of %d bytes, limit %d", len(d.data), size)
		}
		h, data, err := chunk.Parse(d.data)
		if err != nil {
			order = append(order, &message{d.flow, [][]byte{d.data}})
			continue
		}
		if h.Count > chunk.MaxChunks || len(data) == 0 {
			t.Errorf("chunk %d of %d with %d bytes", h.Seq, h.Count, len(data))
		}
		m := byID[h.ID]
		if m == nil {
			m = &message{d.flow, make([][]byte, h.Count)}
			byID[h.ID] = m
			order = append(order, m)
		}
		if m.flow != d.flow {
			t.Errorf("message %x leaves by %v and %v", h.ID, m.flow.LocalAddr(), d.flow.LocalAddr())
		}
		m.parts[h.Seq] = data
	}
	var out [][]byte
	for _, m := range order {
		if slices.ContainsFunc(m.parts, func(p []byte) bool { return p == nil }) {
			out = append(out, nil)
		} else {
			out = append(out, slices.Concat(m.parts...))
		}
	}
	return out
}

func (r *rig) open(_ context.Context, network, addr string) (net.Conn, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dials++
	if network != "udp" || addr != rigAddr.String() {
		return nil, fmt.Errorf("dial %s %s", network, addr)
	}
	if err := r.failDial[r.dials]; err != nil {
		return nil, err
	}
	f := &fakeFlow{rig: r, port: uint16(40000 + r.dials), closed: make(chan struct{})}
	r.flows = append(r.flows, f)
	return f, nil
}

// fakeFlow is a connected socket of a rig. Methods that a link has no business to call panic.
type fakeFlow struct {
	net.Conn
	rig      *rig
	port     uint16
	once     sync.Once
	closed   chan struct{}
	deadline time.Time
	limits   int // deadlines set
}

func (f *fakeFlow) Write(b []byte) (int, error) {
	select {
	case <-f.closed:
		return 0, net.ErrClosed
	default:
	}
	if f.rig.block {
		var expired <-chan time.Time
		if !f.deadline.IsZero() {
			timer := time.NewTimer(time.Until(f.deadline))
			defer timer.Stop()
			expired = timer.C
		}
		select {
		case <-f.closed:
			return 0, net.ErrClosed
		case <-expired:
			return 0, errTimedOut
		}
	}
	f.rig.mu.Lock()
	defer f.rig.mu.Unlock()
	f.rig.writes++
	if err := f.rig.failWrite[f.rig.writes]; err != nil {
		return 0, err
	}
	f.rig.sent = append(f.rig.sent, packet{f, slices.Clone(b), time.Now()})
	if f.rig.onWrite != nil {
		f.rig.onWrite(f.rig.writes)
	}
	return len(b), nil
}

func (f *fakeFlow) SetWriteDeadline(t time.Time) error {
	f.deadline = t
	f.limits++
	return nil
}

func (f *fakeFlow) LocalAddr() net.Addr {
	return &net.UDPAddr{IP: net.IPv4(192, 0, 2, 9), Port: int(f.port)}
}

func (f *fakeFlow) RemoteAddr() net.Addr { return net.UDPAddrFromAddrPort(rigAddr) }

func (f *fakeFlow) Close() error {
	f.once.Do(func() { close(f.closed) })
	return nil
}

// isClosed says whether the link has closed the flow.
func (f *fakeFlow) isClosed() bool {
	select {
	case <-f.closed:
		return true
	default:
		return false
	}
}

// prose returns n bytes of log-like text that repeats itself as little as logs do.
func prose(n int) string {
	words := strings.Fields("request accepted upstream timeout connection refused retry attempt user session token expired cache miss " +
		"database query slow index rebuilt worker started queue depth latency percentile region zone shard replica leader elected")
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	var b strings.Builder
	for b.Len() < n {
		fmt.Fprintf(&b, "%s=%x ", words[rng.IntN(len(words))], rng.Uint32()>>(4*rng.IntN(8)))
	}
	return b.String()[:n]
}

// noise returns n bytes that do not compress, none of which JSON escapes.
func noise(n int) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/!#$%&()*,-.:;<=>?@[]^_{|}~ "
	rng := rand.New(rand.NewPCG(2, uint64(n)))
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[rng.IntN(len(alphabet))]
	}
	return string(b)
}

// recordOf returns a GELF message of exactly n bytes, around text made by fill.
func recordOf(n int, fill func(int) string) []byte {
	const head, tail = `{"version":"1.1","host":"h","short_message":"`, `"}`
	return []byte(head + fill(n-len(head)-len(tail)) + tail)
}

// discardLink dials a link whose sockets take everything and keep nothing.
func discardLink(t testing.TB, c udpConfig) ship.Link {
	t.Helper()
	c.flowAge, c.sendTimeout = time.Hour, defaultSend
	tr := newUDP(c)
	tr.dial = func(context.Context, string, string) (net.Conn, error) { return discardFlow{}, nil }
	link, err := tr.Dial(t.Context(), rigAddr, ship.NewMeter(ship.Recorder{Wire: func(int) {}}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { link.Close() })
	return link
}

type discardFlow struct{ net.Conn }

func (discardFlow) Write(b []byte) (int, error)      { return len(b), nil }
func (discardFlow) SetWriteDeadline(time.Time) error { return nil }
func (discardFlow) LocalAddr() net.Addr              { return &net.UDPAddr{} }
func (discardFlow) Close() error                     { return nil }
