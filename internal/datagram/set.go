package datagram

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/wholelog/wholelog/internal/errno"
	"github.com/wholelog/wholelog/internal/ship"
	"github.com/wholelog/wholelog/jitter"
)

// ErrNoFlow says that no socket is open towards the address and none can be opened.
var ErrNoFlow = errors.New("no flow")

// Why a message leaves by the flow it leaves by, for the trace.
const (
	whyNew  = "new flow"
	whyTurn = "next flow in turn"
	whyAged = "flow renewed for its age"
	whyLeft = "no new flow possible, next of those open"
	whyHush = "one flow until a refusal is past"
)

// quiet is how long after a message its refusal may be there: more than a round trip in one network, and less than what a wait for it
// would be noticed by.
const quiet = 2 * time.Millisecond

// reopenAfter is how long a failed opening is not tried again while other flows serve: each try costs system calls, and a process
// out of file descriptors does not get some back within a message.
const reopenAfter = time.Second

// hush is how long after a refusal a link keeps to one flow, from the first message it sends then. A refusal reaches only the socket
// that caused it, with its next message, and so each flow would lose a message to find out the same. Hosts send few refusals, Linux
// one a second to each address, so a silence means something only when it is longer than that.
const hush = time.Second

// Config is what a [Set] needs to know.
type Config struct {
	Dial  DialFunc
	Addr  netip.AddrPort
	Flows int           // source ports
	Age   time.Duration // of a flow, ±20 %
	Now   func() time.Time
	Meter *ship.Meter
}

// Set holds the flows towards one address. A load balancer hashes source and destination, so what leaves by one flow reaches one
// node, and several flows reach several of the nodes behind one address. All but Close belongs to the link's goroutine.
type Set struct {
	config Config

	next    int       // the slot whose turn it is
	again   time.Time // no opening before, while other flows serve
	refused bool      // and not yet past: the flow at next does all the work
	probed  time.Time // when the first message after a refusal left; zero: not yet

	pending func(net.Conn) error // what the kernel keeps for a socket
	usedAt  time.Time            // when the last message was given a flow
	unheard []*Flow              // used since anybody listened; several times the same, perhaps

	mu     sync.Mutex // for Close, which only reads; so the link's goroutine locks to write and not to read
	slots  []*Flow    // nil: not open
	closed bool
}

// Open opens the first flow. That sends nothing, and yet fails when the host has no route to the address, or none for its family.
func Open(ctx context.Context, c Config) (*Set, error) {
	s := &Set{config: c, pending: pendingError, slots: make([]*Flow, c.Flows)}
	if _, err := s.open(ctx, 0, c.Now()); err != nil {
		return nil, err
	}
	return s, nil
}

// Pick returns the flow of the next message and why it is this one. [Set.Done] is told how it fared. Its error is the refusal of an earlier
// message, if one has come in meanwhile, or ErrNoFlow with the reason.
func (s *Set) Pick(ctx context.Context) (*Flow, string, error) {
	if err := s.news(); err != nil {
		s.discardAll()
		return nil, "", err
	}
	return s.pick(ctx)
}

// Done says how the message fared that left by f.
func (s *Set) Done(f *Flow, err error) {
	switch {
	case err == nil:
		s.used(f)
		s.silent()
	case errno.Refused(err):
		s.discardAll()
	case !errno.TooLong(err): // which says nothing about the flow
		s.discard(f)
	}
}

// pick is Pick without the news. Slots take turns, and a slot without a flow, or with an old
// one, gets a new one first: every message opens a flow until all exist, and a quiet sender has few. After a refusal there is one.
func (s *Set) pick(ctx context.Context) (*Flow, string, error) {
	i, now := s.next, s.config.Now()
	s.usedAt = now
	f := s.slots[i]
	switch {
	case f == nil, f.old(now):
		return s.renew(ctx, i, now)
	case s.refused:
		return f, whyHush, nil
	}
	s.advance(i)
	return f, whyTurn, nil
}

// news returns the refusal of an earlier message, if one has come in meanwhile. The kernel keeps it for the next use of the port that
// sent, and a quiet sender comes back to that after as many messages as there are flows: all of these would be lost. A busy one is
// back at once, and does not listen: it costs a system call for each flow.
func (s *Set) news() error {
	if len(s.unheard) == 0 || s.config.Now().Sub(s.usedAt) < quiet {
		return nil
	}
	return s.Listen()
}

// Listen returns a refusal that the kernel keeps for one of the flows used since the last time. The meter hears of any other answer,
// such as a router's that a datagram was too long.
func (s *Set) Listen() error {
	defer func() {
		clear(s.unheard)
		s.unheard = s.unheard[:0]
	}()
	for _, f := range s.unheard {
		err := s.pending(f.conn)
		if errno.Refused(err) {
			return err
		}
		if err != nil {
			s.config.Meter.Trouble(ship.CauseOf(err), fmt.Errorf("the answer to an earlier message: %w", err))
		}
	}
	return nil
}

// used notes that a message left by f.
func (s *Set) used(f *Flow) {
	if len(s.unheard) < len(s.slots) {
		s.unheard = append(s.unheard, f)
	}
}

// advance gives the turn to the slot after i, unless i has to show first that the address is back.
func (s *Set) advance(i int) {
	if !s.refused {
		i = (i + 1) % len(s.slots)
	}
	s.next = i
}

// silent takes note that a message left and no refusal was heard. The one that ends the caution is on the same flow as the first:
// only there a refusal of the first would have been heard.
func (s *Set) silent() {
	if !s.refused {
		return
	}
	switch now := s.config.Now(); {
	case s.probed.IsZero():
		s.probed = now
	case now.Sub(s.probed) > hush:
		s.refused, s.probed = false, time.Time{}
	}
}

// renew is pick for a slot that needs a new flow. When none can be opened those that exist serve, and the meter hears of it; the
// error is for when there is none.
func (s *Set) renew(ctx context.Context, i int, now time.Time) (*Flow, string, error) {
	why := whyNew
	if s.slots[i] != nil {
		why = whyAged
	}
	alone := !slices.ContainsFunc(s.slots, func(f *Flow) bool { return f != nil })
	if alone || !now.Before(s.again) {
		f, err := s.open(ctx, i, now)
		if err == nil {
			s.advance(i)
			return f, why, nil
		}
		if alone || errors.Is(err, net.ErrClosed) {
			return nil, "", fmt.Errorf("%w: %w", ErrNoFlow, err)
		}
		s.again = now.Add(jitter.Duration(reopenAfter, 0.2))
		s.config.Meter.Trouble(ship.CauseOf(err), fmt.Errorf("no new flow, using those open: %w", err))
	}
	for s.slots[i] == nil {
		i = (i + 1) % len(s.slots)
	}
	s.advance(i)
	return s.slots[i], whyLeft, nil
}

// open puts a new flow into slot i and closes what was there.
func (s *Set) open(ctx context.Context, i int, now time.Time) (*Flow, error) {
	conn, err := s.config.Dial(ctx, "udp", s.config.Addr.String())
	if err != nil {
		return nil, err
	}
	f := NewFlow(conn)
	f.born, f.maxAge = now, jitter.Duration(s.config.Age, 0.2)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		f.Close()
		return nil, net.ErrClosed
	}
	if before := s.slots[i]; before != nil {
		before.Close()
	}
	s.slots[i] = f
	return f, nil
}

// discard closes a flow that failed; its slot gets a new one at its next turn.
func (s *Set) discard(f *Flow) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.Close()
	for i := range s.slots {
		if s.slots[i] == f {
			s.slots[i] = nil
		}
	}
}

// discardAll closes every flow after a refusal. Each of them may hold one of its own, of messages sent before anybody knew; heard one
// by one later, they would look like new ones, from a receiver that may have been back for long.
func (s *Set) discardAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused, s.probed = true, time.Time{}
	for i, f := range s.slots {
		if f != nil {
			f.Close()
			s.slots[i] = nil
		}
	}
}

// Close closes all flows and lets no other be opened. Writes under way end at once. It may be called from any goroutine, and again.
func (s *Set) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, f := range s.slots {
		if f != nil {
			f.Close()
		}
	}
}

// EndsLink says whether a link is given up after err. After any other failure the flow alone is replaced.
func EndsLink(err error) bool {
	return errors.Is(err, ErrNoFlow) || errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
