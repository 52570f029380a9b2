package gelf

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/wholelog/wholelog/internal/errno"
	"github.com/wholelog/wholelog/internal/ship"
	"github.com/wholelog/wholelog/jitter"
)

// dialFunc opens a connected socket; [net.Dialer.DialContext] is one.
type dialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

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

// flow is one connected socket: one source port towards one address. A load balancer hashes both, so all datagrams of a message
// leave by one flow, and several flows reach several of the nodes behind one address.
type flow struct {
	conn     net.Conn
	local    netip.AddrPort
	born     time.Time
	maxAge   time.Duration
	deadline time.Time // the write deadline in force
	single   bool      // datagrams are written one by one
	control  control
}

// old says whether the flow has served its time. A balancer never moves a busy flow, so a fresh port is the only way off a node
// that is leaving.
func (f *flow) old(now time.Time) bool {
	return apart(f.born, now, f.maxAge)
}

// until has the writes that follow end by limit. To set a deadline costs as much as a small write: one in force serves as long as it
// leaves at least half of the time from now.
func (f *flow) until(now, limit time.Time) error {
	if !f.deadline.After(limit) && f.deadline.Sub(now) >= limit.Sub(now)/2 {
		return nil
	}
	f.deadline = limit
	return f.conn.SetWriteDeadline(limit)
}

// flowSet holds the flows towards one address. All but close belongs to the link's goroutine.
type flowSet struct {
	dial  dialFunc
	addr  string
	age   time.Duration
	now   func() time.Time
	meter *ship.Meter

	next    int       // the slot whose turn it is
	again   time.Time // no opening before, while other flows serve
	refused bool      // and not yet past: the flow at next does all the work
	probed  time.Time // when the first message after a refusal left; zero: not yet

	usedAt  time.Time // when the last message was given a flow
	unheard []*flow   // used since anybody listened; several times the same, perhaps

	mu     sync.Mutex // for close, which only reads; so the link's goroutine locks to write and not to read
	slots  []*flow    // nil: not open
	closed bool
}

// pick returns the flow of the next message and why it is this one. Slots take turns, and a slot without a flow, or with an old
// one, gets a new one first: every message opens a flow until all exist, and a quiet sender has few. After a refusal there is one.
func (s *flowSet) pick(ctx context.Context) (*flow, string, error) {
	i, now := s.next, s.now()
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
func (s *flowSet) news() error {
	if len(s.unheard) == 0 || s.now().Sub(s.usedAt) < quiet {
		return nil
	}
	return s.listen()
}

// listen returns a refusal that the kernel keeps for one of the flows used since the last time.
func (s *flowSet) listen() error {
	defer func() {
		clear(s.unheard)
		s.unheard = s.unheard[:0]
	}()
	for _, f := range s.unheard {
		if err := pendingError(f.conn); err != nil && errno.Refused(err) {
			return err
		}
	}
	return nil
}

// used notes that a message left by f.
func (s *flowSet) used(f *flow) {
	if len(s.unheard) < len(s.slots) {
		s.unheard = append(s.unheard, f)
	}
}

// advance gives the turn to the slot after i, unless i has to show first that the address is back.
func (s *flowSet) advance(i int) {
	if !s.refused {
		i = (i + 1) % len(s.slots)
	}
	s.next = i
}

// silent takes note that a message left and no refusal was heard. The one that ends the caution is on the same flow as the first:
// only there a refusal of the first would have been heard.
func (s *flowSet) silent() {
	if !s.refused {
		return
	}
	switch now := s.now(); {
	case s.probed.IsZero():
		s.probed = now
	case now.Sub(s.probed) > hush:
		s.refused, s.probed = false, time.Time{}
	}
}

// renew is pick for a slot that needs a new flow. When none can be opened those that exist serve, and the meter hears of it; the
// error is for when there is none.
func (s *flowSet) renew(ctx context.Context, i int, now time.Time) (*flow, string, error) {
	why := whyNew
	if s.slots[i] != nil {
		why = whyAged
	}
	alone := !slices.ContainsFunc(s.slots, func(f *flow) bool { return f != nil })
	if alone || !now.Before(s.again) {
		f, err := s.open(ctx, i, now)
		if err == nil {
			s.advance(i)
			return f, why, nil
		}
		if alone || errors.Is(err, net.ErrClosed) {
			return nil, "", err
		}
		s.again = now.Add(jitter.Duration(reopenAfter, 0.2))
		s.meter.Trouble(udpOutcome(err).Cause, fmt.Errorf("no new flow, using those open: %w", err))
	}
	for s.slots[i] == nil {
		i = (i + 1) % len(s.slots)
	}
	s.advance(i)
	return s.slots[i], whyLeft, nil
}

// open puts a new flow into slot i and closes what was there.
func (s *flowSet) open(ctx context.Context, i int, now time.Time) (*flow, error) {
	conn, err := s.dial(ctx, "udp", s.addr)
	if err != nil {
		return nil, err
	}
	f := &flow{conn: conn, born: now, maxAge: jitter.Duration(s.age, 0.2), single: !canTrain(conn)}
	if local, err := netip.ParseAddrPort(conn.LocalAddr().String()); err == nil {
		f.local = netip.AddrPortFrom(local.Addr().Unmap(), local.Port())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		conn.Close()
		return nil, net.ErrClosed
	}
	if before := s.slots[i]; before != nil {
		before.conn.Close()
	}
	s.slots[i] = f
	return f, nil
}

// discard closes a flow that failed; its slot gets a new one at its next turn.
func (s *flowSet) discard(f *flow) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.conn.Close()
	for i := range s.slots {
		if s.slots[i] == f {
			s.slots[i] = nil
		}
	}
}

// discardAll closes every flow after a refusal. Each of them may hold one of its own, of messages sent before anybody knew; heard one
// by one later, they would look like new ones, from a receiver that may have been back for long.
func (s *flowSet) discardAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused, s.probed = true, time.Time{}
	for i, f := range s.slots {
		if f != nil {
			f.conn.Close()
			s.slots[i] = nil
		}
	}
}

// close closes all flows and lets no other be opened. Writes in progress end at once.
func (s *flowSet) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, f := range s.slots {
		if f != nil {
			f.conn.Close()
		}
	}
}
