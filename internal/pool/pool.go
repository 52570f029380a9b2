// Package pool keeps the addresses of one service: it looks them up in the background, remembers the last good answer, judges the
// health of each address, and offers all of it as a snapshot that is read without a lock.
//
// # Who drives it
//
// Look-ups and everything that ends by time have no timer and no goroutine. Whoever sends calls [Pool.Kick], and again when the time
// it returned has come; a look-up that is due then runs in a goroutine that ends with it. So a process that was frozen, and whose
// timers slept with it, looks up with the first thing it sends.
//
// Checks have to run although nobody sends. With a [resolve.Check] there is one goroutine, from the first look-up to Close, that
// starts each check when it is due, and Kick wakes it when it has overslept. Without a Check it does not exist.
//
// All times are those of the wall clock, which goes on while a process is frozen. Where it was set back, what it says is not used.
//
// # How an address is judged
//
// See [Pool.Observe] for what is seen from sends, and the comment of health for how that and the Check's verdict fit together.
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
	Weight   int // effective: the resolver's, 100 by default, times the Check's percentage; at least 1
	Share    int // of the traffic, in proportion to the others': the exact weight, and half of it when Degraded; at least 1
	Priority uint16
	State    resolve.State
	Usable   bool      // it may be given records
	Since    time.Time // when State began

	steady bool // another success would change nothing
}

// Snapshot is the set of addresses at one time. It never changes: who keeps one sees no update.
type Snapshot struct {
	Endpoints []Endpoint // sorted by Addr
	Gen       uint64     // grows when an address comes or goes and when a Share, Priority or Usable changes; a State alone changes no choice
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
	Local   bool            // the service is a socket of this host, for which the zero address stands
}

// Pool keeps the addresses of one service. All methods but Bind are safe for concurrent use.
type Pool struct {
	c     Config
	name  string // of the resolver, for errors
	hooks Hooks
	now   func() time.Time // the wall clock; tests step it
	checks

	snapshot atomic.Pointer[Snapshot]

	ctx    context.Context // of all look-ups, ends at Close
	cancel context.CancelFunc
	wg     sync.WaitGroup  // the goroutines of the look-up and the checks under way
	stray  <-chan struct{} // a look-up that was given up and has not returned; only the goroutine of the look-up uses it

	mu       sync.Mutex
	closed   bool
	flight   *flight   // the look-up under way
	lastErr  error     // of the last look-up
	begun    time.Time // when the last look-up began
	next     time.Time // when the next one is due
	failures int       // in a row
	hurried  bool      // next was brought forward by an Observe
	confirms bool      // the next look-up confirms that an address is gone
	members  map[netip.AddrPort]*member
	sorted   []*member // by address
	due      time.Time // when the next thing ends by time: see expire; zero: nothing does
	seen     time.Time // the clock, when it was last compared with due
	forced   bool      // no address was fit for use, so all are used; said once
	news     news
	stats    Stats
	answered time.Time // when the last good answer came
}

// Hooks are what a pool tells its user. Any may be nil. They are called from the goroutine of a look-up or a check, from Kick and from
// Observe, with no lock held. They must not block, and must not call Close, which may wait for the very goroutine.
type Hooks struct {
	// Changed is called after every look-up, and when the snapshot's Gen has grown: the time that Kick returned may be another one.
	Changed func()
	// Trouble is told of failed look-ups and of addresses in an answer that cannot be used (CauseDNS), and of what Checks found and
	// that no address is fit for use (CauseHealth).
	Trouble func(delivery.Cause, error)
	// Connected says whether there is an open connection to addr, so that a check that would open another one is left out.
	Connected func(addr netip.AddrPort) bool
}

// CauseHealth is the kind of a trouble with the health of addresses.
const CauseHealth delivery.Cause = "health"

// news is what happened while mu was held.
type news struct {
	changed  bool
	troubles []trouble
}

type trouble struct {
	cause delivery.Cause
	err   error
}

func (n *news) tell(cause delivery.Cause, err error) {
	n.troubles = append(n.troubles, trouble{cause, err})
}

// unlock lets go of mu and tells the user what happened meanwhile. After Close nothing is told.
func (p *Pool) unlock() {
	n, closed := p.news, p.closed
	p.news = news{}
	p.mu.Unlock()
	if closed {
		return
	}
	if p.hooks.Trouble != nil {
		for _, t := range n.troubles {
			p.hooks.Trouble(t.cause, t.err)
		}
	}
	if n.changed && p.hooks.Changed != nil {
		p.hooks.Changed()
	}
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
		checks:  newChecks(c.Options),
	}
	if o := &p.c.Options; o.Zone != "" {
		if z, ok := o.Resolver.(interface {
			Zonal(zone string) resolve.Resolver
		}); ok { // always, if the options are valid
			o.Resolver = z.Zonal(o.Zone)
		}
	}
	p.name = fmt.Sprintf("%T", p.c.Options.Resolver)
	if s, ok := p.c.Options.Resolver.(fmt.Stringer); ok {
		p.name = fmt.Sprint(s) // not s.String(), which may panic
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.snapshot.Store(&Snapshot{})
	return p
}

// Options returns what the pool was made with.
func (p *Pool) Options() resolve.Options { return p.c.Options }

// Bind sets the pool's hooks; it is called once, before any other use.
func (p *Pool) Bind(h Hooks) { p.hooks = h }

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

// Close cancels look-ups and checks under way and waits for their goroutines. It is idempotent, and nothing is looked up or checked
// after it. The last snapshot stays. A Resolver or Check that does not return when its context ends is left to end alone.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cancel()
	p.wg.Wait()
}
