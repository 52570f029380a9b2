// Package pool keeps the addresses of one service: it looks them up in the background, remembers the last good answer and what is
// known of each address, and offers all of it as a snapshot that is read without a lock.
//
// The pool has no timer and no goroutine of its own. Whoever sends calls [Pool.Kick], and again when the time it returned has come,
// and a look-up that is due then runs in a goroutine that ends with it. So a process that was frozen, and whose timers slept with it,
// looks up with the first thing it sends.
package pool

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/jitter"
	"github.com/wholelog/wholelog/resolve"
)

// Endpoint is one address of a [Snapshot].
type Endpoint struct {
	Addr     netip.AddrPort
	Weight   int // effective: the resolver's, 100 by default
	Priority uint16
	State    resolve.State
	Usable   bool      // it may be given records
	Since    time.Time // when State began
}

// Snapshot is the set of addresses at one time. It never changes: who keeps one sees no update.
type Snapshot struct {
	Endpoints []Endpoint // sorted by Addr
	Gen       uint64     // grows when an address comes or goes and when a Weight, Priority or Usable changes; a State alone changes no choice
}

// find returns the index of addr, or -1.
func (s *Snapshot) find(addr netip.AddrPort) int {
	i, ok := slices.BinarySearchFunc(s.Endpoints, addr, func(e Endpoint, a netip.AddrPort) int { return e.Addr.Compare(a) })
	if !ok {
		return -1
	}
	return i
}

func (s *Snapshot) usable() bool {
	return slices.ContainsFunc(s.Endpoints, func(e Endpoint) bool { return e.Usable })
}

// Config is what a [Pool] is made of.
type Config struct {
	Options resolve.Options // validated, with a Resolver
	Backoff jitter.Backoff  // between failed look-ups
}

// Pool keeps the addresses of one service. All methods but Bind are safe for concurrent use.
type Pool struct {
	c       Config
	name    string // of the resolver, for errors
	changed func()
	trouble func(error)
	now     func() time.Time // the wall clock; tests step it

	snapshot atomic.Pointer[Snapshot]

	ctx    context.Context // of all look-ups, ends at Close
	cancel context.CancelFunc
	wg     sync.WaitGroup // the goroutine of the look-up under way
	stray  chan result    // of a call that was given up and has not returned; only the goroutine of the look-up uses it

	mu       sync.Mutex
	closed   bool
	flight   *flight   // the look-up under way
	failed   error     // of the last look-up
	begun    time.Time // when the last look-up began
	next     time.Time // when the next one is due
	failures int       // in a row
	hurried  bool      // next was brought forward by an Observe
	confirms bool      // the next look-up confirms that an address is gone
	members  map[netip.AddrPort]*member
	stats    Stats
	answered time.Time // when the last good answer came
}

// Stats is what a pool counted.
type Stats struct {
	Lookups, LookupErrors uint64        // begun; failed, which includes empty answers
	AnswerAge             time.Duration // of the last good answer, by the wall clock; 0 before the first
}

// New makes a pool. It does no I/O: the first look-up comes with the first Kick or Refresh.
func New(c Config) *Pool {
	p := &Pool{
		c:       c,
		now:     func() time.Time { return time.Now().Round(0) },
		members: make(map[netip.AddrPort]*member),
	}
	p.name = fmt.Sprintf("%T", c.Options.Resolver)
	if s, ok := c.Options.Resolver.(fmt.Stringer); ok {
		p.name = fmt.Sprint(s) // not s.String(), which may panic
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.snapshot.Store(&Snapshot{})
	return p
}

// Options returns what the pool was made with.
func (p *Pool) Options() resolve.Options { return p.c.Options }

// Bind sets the pool's hooks; it is called once, before any other use, and either may be nil. Both are called from the goroutine of a
// look-up. They must not block and must not call Close, which waits for that goroutine.
//
// The error of a failed look-up, or of an address in an answer that cannot be used, goes to trouble. Then changed is called, after
// every look-up: the snapshot may be another one, and the time that Kick returned certainly is.
func (p *Pool) Bind(changed func(), trouble func(error)) { p.changed, p.trouble = changed, trouble }

// Snapshot returns the set of addresses as of now, never nil. It takes no lock and allocates nothing.
func (p *Pool) Snapshot() *Snapshot { return p.snapshot.Load() }

// Stats returns the pool's counters.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stats
	if !p.answered.IsZero() {
		s.AnswerAge = max(p.now().Sub(p.answered), 0)
	}
	return s
}

// Observe tells the pool how a send to addr, or a dial, ended. An address that is not in the snapshot is ignored.
//
// A success shows that the address is up. A failure means that nothing is known of it any more, and brings the next look-up forward:
// the address may have moved. Every sender calls this for every batch, so what changes nothing costs no lock.
func (p *Pool) Observe(addr netip.AddrPort, ok bool, _ delivery.Cause) {
	s := p.Snapshot()
	i := s.find(addr)
	if i < 0 || ok && s.Endpoints[i].State == resolve.Up {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.members[addr]
	if m == nil || p.closed {
		return
	}
	now := p.now()
	state := resolve.Up
	if !ok {
		state = resolve.Unknown
		p.hurry(now)
	}
	if m.state != state {
		m.state, m.since = state, now
		p.publish()
	}
}

// Close cancels a look-up under way and waits for its goroutine. It is idempotent, and nothing starts a look-up after it. The last
// snapshot stays. A Resolver that does not return when its context ends is left to end alone.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cancel()
	p.wg.Wait()
}
