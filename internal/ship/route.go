package ship

import (
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/pool"
	"github.com/wholelog/wholelog/resolve"
)

const (
	keptGone    = 16 // endpoints that left and still have a row of their own in Stats
	fall        = 3  // failures in a row after which PerProcess chooses anew
	maxLastText = 256
)

// route is one way: its transport, its addresses, and the records that came back to it. Guarded by the engine's links, but for
// back and last.
type route struct {
	eng       *Engine
	transport Transport
	pool      *pool.Pool
	limits    Limits
	fallback  bool
	oneForAll bool // PerProcess

	snap     *pool.Snapshot // what eps and slots follow
	eps      []*endpoint
	byAddr   map[netip.AddrPort]*endpoint
	slots    []*slot
	retired  []*slot // of addresses that left, with a link that is not yet closed
	batch    int     // most bytes dealt to a link at once
	window   int     // bytes a link may hold unsettled
	dealt    bool    // records were dealt since summon last looked
	line     line    // those that records may be dealt to, while a hand is played
	stride   pool.Stride
	hand     list        // taken from the queue and not yet dealt; what came back stands in front, all by Seq
	back     list        // records that came back (and diverted ones), by Seq; guarded by mu
	last     *Rec        // where the last one was inserted; guarded by mu
	needed   atomic.Bool // a fallback's addresses are looked up when it first gets a record
	pinned   *endpoint
	gone     []*endpoint // most recent last
	departed *endpoint   // sum of older ones
}

// endpoint is what the engine knows of one address.
//
// Two things keep records from an address that failed. Both must be over before it gets the next one:
//
//   - its rest, which is the route's: after each failure, for a back-off that grows with the failures in a row. It spaces the tries,
//     and applies to the last address that is left too;
//   - its health, which is the pool's: after 3 failures in a row, if others are left, or when a Check says so, the address is not
//     usable at all, is not tried, and its rest runs out meanwhile.
//
// An address that becomes usable again, or whose last link broke before it had proved anything, has one record on trial before it gets
// its share: see trial and broke. What proves something is what a link delivers; of a dial that succeeds nothing follows.
type endpoint struct {
	addr     netip.AddrPort
	weight   int  // as Stats shows it
	share    int  // as it is dealt to
	usable   bool // in the snapshot, and fit for use
	live     bool // in the snapshot
	state    resolve.State
	since    time.Time
	slots    []*slot // retired ones too, until they have ended
	retired  int     // of slots
	dialling bool
	dials    chan struct{} // Sync: who holds its place dials

	failures int // in a row
	failed   stamp
	rest     time.Duration // after failed, before it is used again
	bidden   bool          // to rest, by the server's Retry-After
	trial    bool          // it was out, or has broken links that had proved nothing: one record at a time until it has proved itself
	idled    bool          // all it did was to close an idle link
	probed   stamp         // blind transports: when it was dealt its first record after its rest

	picked, delivered, resent uint64
	errors                    map[delivery.Cause]uint64
	last                      error  // the latest failure
	lastError                 string // its text, made short
	notedAt                   int64  // when lastError was noted, in Unix nanoseconds
	bytes                     atomic.Uint64
}

func newRoute(e *Engine, r Route, fallback bool) *route {
	l := r.Transport.Limits()
	l.LinksPerAddr = max(l.LinksPerAddr, 1)
	if l.BatchBytes <= 0 {
		l.BatchBytes = segmentBytes
	}
	return &route{
		eng: e, transport: r.Transport, pool: r.Pool, limits: l, fallback: fallback,
		byAddr: make(map[netip.AddrPort]*endpoint), batch: l.BatchBytes,
		oneForAll: r.Pool.Options().Policy == resolve.PerProcess,
	}
}

// follow brings endpoints and slots in line with the pool's snapshot: new addresses enter the rotation at the current virtual
// time, those that left drain. The caller holds links.
func (rt *route) follow() {
	snap := rt.pool.Snapshot()
	if snap == rt.snap {
		return
	}
	same := rt.snap != nil && snap.Gen == rt.snap.Gen
	if rt.snap = snap; same {
		return // only what is known of the addresses has changed
	}
	for _, ep := range rt.eps {
		ep.live = false
	}
	for i := range snap.Endpoints {
		p := &snap.Endpoints[i]
		ep := rt.byAddr[p.Addr]
		if ep == nil {
			ep = rt.join(p.Addr)
		}
		ep.live = true
		ep.adopt(p)
	}
	for _, s := range rt.slots {
		s.turn.Weigh(s.ep.share)
	}
	rt.eps = slices.DeleteFunc(rt.eps, func(ep *endpoint) bool {
		if !ep.live {
			rt.leave(ep)
		}
		return !ep.live
	})
	// A link that hangs keeps what it holds, and the memory between its records: all of them together must leave room for the others.
	share := rt.eng.opts.QueueBytes / 4 / max(len(rt.slots), 1)
	rt.batch = max(min(rt.limits.BatchBytes, share), minBatch)
	rt.window = min(rt.limits.Window, share)
}

// adopt takes over what the pool says of the address. The caller holds links.
func (ep *endpoint) adopt(p *pool.Endpoint) {
	switch {
	case p.Usable && !ep.usable && ep.failures > 0:
		ep.trial = true
		if (p.State == resolve.Up || p.State == resolve.Degraded) && !ep.bidden {
			ep.rest = 0 // a Check found it well
		}
	case !p.Usable && ep.usable && p.State != resolve.Draining:
		for _, s := range ep.slots {
			s.reclaim()
		}
	}
	ep.usable, ep.state, ep.since = p.Usable, p.State, p.Since
	ep.weight, ep.share = p.Weight, p.Share
}

// connected says whether there is an open connection to addr. A blind transport has none.
func (rt *route) connected(addr netip.AddrPort) bool {
	if rt.limits.Blind {
		return false
	}
	rt.eng.links.Lock()
	defer rt.eng.links.Unlock()
	ep := rt.byAddr[addr]
	return ep != nil && slices.ContainsFunc(ep.slots, func(s *slot) bool { return s.link != nil })
}

// join adds an address, with the counters it had if it left not long ago.
func (rt *route) join(a netip.AddrPort) *endpoint {
	ep := &endpoint{addr: a, errors: make(map[delivery.Cause]uint64), dials: make(chan struct{}, 1)}
	if i := slices.IndexFunc(rt.gone, func(g *endpoint) bool { return g.addr == a }); i >= 0 {
		ep = rt.gone[i]
		rt.gone = slices.Delete(rt.gone, i, i+1)
	}
	rt.eps = append(rt.eps, ep)
	rt.byAddr[a] = ep
	for i := range rt.limits.LinksPerAddr {
		s := &slot{route: rt, ep: ep, wake: make(chan struct{}, 1), turnstile: make(chan struct{}, 1)}
		// Each handler begins somewhere else. All first links of addresses go before all second ones, so that the shares of the
		// addresses stay equal whatever the number of links.
		s.turn.Tie = uint64(i)<<48 | rand.Uint64()>>16
		rt.stride.Enter(&s.turn)
		rt.slots = append(rt.slots, s)
		ep.slots = append(ep.slots, s)
	}
	return ep
}

// leave retires an address: what no link has yet goes back to the queue, links end in order.
func (rt *route) leave(ep *endpoint) {
	ep.usable, ep.since = false, time.Unix(0, rt.eng.clock.stamp().wall)
	delete(rt.byAddr, ep.addr)
	rt.slots = slices.DeleteFunc(rt.slots, func(s *slot) bool {
		if s.ep == ep {
			s.retire()
		}
		return s.ep == ep
	})
	if rt.pinned == ep {
		rt.pinned = nil
	}
	rt.gone = append(rt.gone, ep)
	rt.forgetOldest()
}

// forgetOldest keeps the number of gone addresses small. One whose link has not ended yet still counts.
func (rt *route) forgetOldest() {
	for i := 0; i < len(rt.gone) && len(rt.gone) > keptGone; {
		if rt.gone[i].retired > 0 {
			i++
			continue
		}
		rt.forget(rt.gone[i])
		rt.gone = slices.Delete(rt.gone, i, i+1)
	}
}

// forget adds the counters of an address that left long ago to the common row.
func (rt *route) forget(ep *endpoint) {
	if rt.departed == nil {
		rt.departed = &endpoint{errors: make(map[delivery.Cause]uint64)}
	}
	d := rt.departed
	d.picked += ep.picked
	d.delivered += ep.delivered
	d.resent += ep.resent
	d.bytes.Add(ep.bytes.Load())
	for c, n := range ep.errors {
		d.errors[c] += n
	}
	d.since = ep.since
}

// putBack inserts a record that came back, by Seq: it goes ahead of the backlog. The caller holds mu.
func (rt *route) putBack(r *Rec) {
	if rt.back.n == 0 {
		rt.last = nil
	}
	rt.last = rt.back.insert(rt.last, r)
}

// putBackAll empties l into the records that came back.
func (rt *route) putBackAll(l *list) {
	if l.n == 0 {
		return
	}
	rt.eng.mu.Lock()
	defer rt.eng.mu.Unlock()
	for r := l.pop(); r != nil; r = l.pop() {
		rt.putBack(r)
	}
}

// fail notes a failure of ep: it rests before it is used again, longer after each one. The caller holds links.
func (rt *route) fail(ep *endpoint, cause delivery.Cause, err error, after time.Duration) {
	e := rt.eng
	ep.failures++
	ep.trial, ep.idled, ep.probed = false, false, stamp{}
	ep.failed = e.clock.stamp()
	ep.rest = max(e.backoff(ep.failures), min(after, e.retryAfterLimit()))
	ep.bidden = after > 0
	rt.note(ep, cause, err)
	for _, s := range ep.slots {
		s.reclaim() // it rests: what is not sent goes elsewhere, and what comes back must not be overtaken
	}
}

// note counts a failure and keeps its text. The caller holds links.
func (rt *route) note(ep *endpoint, cause delivery.Cause, err error) {
	if cause == "" {
		cause = CauseOf(err)
	}
	ep.errors[cause]++
	if err != nil {
		ep.notedAt = rt.eng.clock.stamp().wall
		text := err.Error()
		ep.last, ep.lastError = err, strings.ToValidUTF8(text[:min(len(text), maxLastText)], "")
	}
}

// resting says whether ep is left alone for now.
func (ep *endpoint) resting(now stamp) bool {
	return ep.failures > 0 && !ep.failed.over(now, ep.rest)
}

// stats appends a row for every endpoint.
func (rt *route) stats(rows []delivery.EndpointStats) []delivery.EndpointStats {
	n := len(rt.eps) + len(rt.gone)
	if rt.departed != nil {
		n++
	}
	rows = slices.Grow(rows, n) // none stay nil
	row := func(ep *endpoint, state string) {
		s := delivery.EndpointStats{
			Addr: ep.addr, State: state, Since: ep.since, Weight: ep.weight,
			Picked: ep.picked, Delivered: ep.delivered, Resent: ep.resent, Bytes: ep.bytes.Load(),
			Errors: maps.Clone(ep.errors), LastError: ep.lastError,
		}
		for _, sl := range ep.slots {
			s.PendingBytes += uint64(sl.inbox.bytes + sl.sent)
		}
		rows = append(rows, s)
	}
	for _, p := range rt.pool.Snapshot().Endpoints { // newer than what was dealt by last, perhaps
		if ep := rt.byAddr[p.Addr]; ep != nil {
			ep.state, ep.since, ep.weight = p.State, p.Since, p.Weight
		}
	}
	for _, ep := range rt.eps {
		row(ep, ep.state.String())
		if text, at := rt.pool.Text(ep.addr); text != "" && at.UnixNano() >= ep.notedAt {
			rows[len(rows)-1].LastError = text
		}
	}
	for _, ep := range rt.gone {
		row(ep, "gone")
	}
	if rt.departed != nil {
		row(rt.departed, "gone")
	}
	return rows
}
