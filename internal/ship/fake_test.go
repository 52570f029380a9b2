package ship

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/leak"
	"github.com/wholelog/wholelog/internal/pool"
	"github.com/wholelog/wholelog/resolve"
)

func TestMain(m *testing.M) { leak.Main(m) }

// fakeNet is what all fake links of a test write into: a receiver behind every address, which tests may break.
type fakeNet struct {
	mu     sync.Mutex
	limits Limits
	got    map[string][]string // by address, in order of arrival
	dials  map[string]int
	refuse map[string]error // addresses that cannot be dialled
	open   int              // links dialled and not closed
	drains int
	nudges int
	meters map[string]*Meter

	confirmed map[string]bool // settled as delivered by a link that was open then
	lost      map[string]bool // left, and arrived nowhere: what datagrams do
	misused   []string        // what the engine did with a link and must not

	// send handles a batch at an address; nil: everything is delivered at once.
	send func(l *fakeLink, b *Batch) error
	// meet is called first in every other method of a link ("dial", "nudge", "drain", "close", "gone"). It may wait, or panic.
	meet func(l *fakeLink, call string)
}

func newFakeNet(limits Limits) *fakeNet {
	return &fakeNet{
		limits: limits, got: make(map[string][]string), dials: make(map[string]int),
		refuse: make(map[string]error), meters: make(map[string]*Meter),
		confirmed: make(map[string]bool), lost: make(map[string]bool),
	}
}

func (n *fakeNet) Limits() Limits { return n.limits }

func (n *fakeNet) Dial(_ context.Context, addr netip.AddrPort, m *Meter) (Link, error) {
	a := addr.String()
	l := &fakeLink{net: n, addr: a, meter: m, closed: make(chan struct{}), gone: make(chan struct{})}
	l.meet("dial")
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dials[a]++
	if err := n.refuse[a]; err != nil {
		return nil, err
	}
	n.open++
	n.meters[a] = m
	return l, nil
}

// counts returns how many links are open, and how often addr was dialled.
func (n *fakeNet) counts(addr string) (open, dials int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.open, n.dials[addr]
}

// setRefuse makes an address refuse dials, or not.
func (n *fakeNet) setRefuse(addr string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.refuse[addr] = err
}

// received returns a copy of what arrived at addr.
func (n *fakeNet) received(addr string) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]string(nil), n.got[addr]...)
}

// total counts what arrived anywhere.
func (n *fakeNet) total() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	sum := 0
	for _, g := range n.got {
		sum += len(g)
	}
	return sum
}

type fakeLink struct {
	net    *fakeNet
	addr   string
	meter  *Meter
	ctx    context.Context // of the last Send
	once   sync.Once
	closed chan struct{}
	gone   chan struct{}

	settling sync.Mutex     // held for a confirm, and while the link is closed
	acks     sync.WaitGroup // outcomes that will come later
	written  int            // bytes taken by a stream
	room     int            // and those that it takes in all
	state    linkState      // guarded by net.mu
}

// linkState says which calls a link may get.
type linkState uint8

const (
	idle linkState = iota
	inUse
	ended // Send failed or Drain was called
)

// enter notes a call of Send or Drain. They never overlap, and after an error or a goodbye none follows.
func (l *fakeLink) enter(call string) {
	l.net.mu.Lock()
	defer l.net.mu.Unlock()
	if l.state != idle {
		l.net.misused = append(l.net.misused, fmt.Sprintf("%s at %s in state %d", call, l.addr, l.state))
	}
	l.state = inUse
}

func (l *fakeLink) leaveTo(next linkState) {
	l.net.mu.Lock()
	defer l.net.mu.Unlock()
	l.state = next
}

var errLinkClosed = errors.New("link closed")

// take notes the records [from, to) of b as arrived.
func (l *fakeLink) take(b *Batch, from, to int) {
	l.net.mu.Lock()
	defer l.net.mu.Unlock()
	for i := from; i < to; i++ {
		l.net.got[l.addr] = append(l.net.got[l.addr], string(b.At(i).Bytes()))
		l.meter.Wire(len(b.At(i).Bytes()))
	}
}

// deliver is the simplest receiver.
func (l *fakeLink) deliver(b *Batch) {
	l.take(b, 0, b.Len())
	l.confirm(b, 0, b.Len())
}

// confirm settles the records [from, to) of b as delivered, unless the link is closed, and notes which these were.
func (l *fakeLink) confirm(b *Batch, from, to int) {
	l.settling.Lock()
	defer l.settling.Unlock()
	select {
	case <-l.closed:
		return
	default:
	}
	l.note(l.net.confirmed, b, from, to)
	b.Settle(from, to, Outcome{Do: Delivered})
}

// note enters the records [from, to) of b in a set.
func (l *fakeLink) note(set map[string]bool, b *Batch, from, to int) {
	l.net.mu.Lock()
	defer l.net.mu.Unlock()
	for i := from; i < to; i++ {
		set[string(b.At(i).Bytes())] = true
	}
}

// leave is the peer going away.
func (l *fakeLink) leave() {
	l.net.mu.Lock()
	defer l.net.mu.Unlock()
	select {
	case <-l.gone:
	default:
		close(l.gone)
	}
}

// hang is a receiver that reads nothing: Send returns when the link is closed.
func (l *fakeLink) hang() error {
	<-l.closed
	return errLinkClosed
}

// requeue is a receiver that certainly takes nothing.
func (l *fakeLink) requeue(b *Batch) error {
	b.Settle(0, b.Len(), Outcome{Do: Requeue, Cause: delivery.CauseRefused, Err: errors.New("refused")})
	return nil
}

func (l *fakeLink) meet(call string) {
	if l.net.meet != nil {
		l.net.meet(l, call)
	}
}

func (l *fakeLink) Send(ctx context.Context, b *Batch) error {
	l.enter("Send")
	next := ended // after a panic, too
	defer func() { l.leaveTo(next) }()
	l.ctx = ctx
	if l.net.send == nil {
		l.deliver(b)
	} else if err := l.net.send(l, b); err != nil {
		return err
	}
	next = idle
	return nil
}

func (l *fakeLink) Nudge() {
	l.meet("nudge")
	l.net.mu.Lock()
	defer l.net.mu.Unlock()
	l.net.nudges++
}

func (l *fakeLink) Drain(context.Context) error {
	l.enter("Drain")
	defer l.leaveTo(ended)
	l.meet("drain")
	l.net.mu.Lock()
	defer l.net.mu.Unlock()
	l.net.drains++
	return nil
}

func (l *fakeLink) Close() error {
	l.meet("close")
	l.once.Do(func() {
		l.settling.Lock() // a confirm under way still counts
		close(l.closed)
		l.settling.Unlock()
		l.net.mu.Lock()
		l.net.open--
		l.net.mu.Unlock()
	})
	return nil
}

func (l *fakeLink) Gone() <-chan struct{} {
	l.meet("gone")
	return l.gone
}

// newTestEngine makes an engine that sends to addrs over n.
func newTestEngine(n Transport, o delivery.Options, r resolve.Options) *Engine {
	if o.OnError == nil {
		o.OnError = func(error) {}
	}
	e := New(Config{Name: "test", Main: Route{n, pool.New(pool.Config{Options: r})}, Options: o})
	e.hooks.print = func(error) {} // the output of tests is for failures
	return e
}

func resolveTo(set ...string) resolve.Options {
	return resolve.Options{Resolver: &answer{set: set}}
}

// balanced checks the equation of the counters.
func balanced(t testing.TB, s delivery.Stats) {
	t.Helper()
	var reasons uint64
	for _, n := range s.Reasons {
		reasons += n
	}
	if s.Accepted != s.Delivered+s.Dropped+s.Pending || reasons != s.Dropped {
		t.Fatalf("counters do not add up: accepted %d, delivered %d, dropped %d, pending %d, reasons %v",
			s.Accepted, s.Delivered, s.Dropped, s.Pending, s.Reasons)
	}
}

// mustFlush flushes within a generous limit.
func mustFlush(t testing.TB, e *Engine) {
	t.Helper()
	mustFlushWithin(t, e, time.Minute)
}

func mustFlushWithin(t testing.TB, e *Engine, limit time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := e.Flush(ctx); err != nil {
		t.Fatal(err)
	}
}

// hangAt is a send of a network in which links to addr hang in Send and all others deliver.
func hangAt(addr string) func(l *fakeLink, b *Batch) error {
	return func(l *fakeLink, b *Batch) error {
		if l.addr == addr {
			return l.hang()
		}
		l.deliver(b)
		return nil
	}
}

// hangInDrain is a meet of a network in which only Close ends a goodbye.
func hangInDrain(l *fakeLink, call string) {
	if call == "drain" {
		<-l.closed
	}
}
