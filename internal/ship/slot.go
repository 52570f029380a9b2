package ship

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/wholelog/wholelog/internal/pool"
)

const (
	patience = 100 * time.Millisecond // a due link that is full and makes no progress for this long is stuck
	proof    = 300 * time.Millisecond // for the refusal of a datagram to arrive: a long round trip
	waiting  = time.Second            // and one that others wait behind, though it is not full
	minBatch = 4 << 10                // of a link's share of a small budget
)

// slot is the place of one link in the rotation: a Link comes and goes, the slot stays as long as its address does. Its goroutine
// starts with the first record and alone calls the link's Send and Drain. Fields are guarded by the engine's links.
type slot struct {
	route *route
	ep    *endpoint
	turn  pool.Turn
	wake  chan struct{}

	turnstile chan struct{} // Sync: who holds its place has the link

	running bool // the goroutine runs
	retired bool // the address left: finish what was sent, say goodbye, end
	want    bool // open a link though no record is there
	busy    bool // dialling or saying goodbye, since then
	since   stamp
	away    bool // was not in line when that was last looked at
	shy     bool // records were taken back because busy took long; deals go elsewhere meanwhile

	inbox    list // dealt, not yet sent
	link     Link
	ending   Link // one that is being said goodbye to
	opened   stamp
	maxAge   time.Duration // jittered
	lost     bool          // the last link broke
	gave     bool          // the link has delivered something
	sent     int           // bytes with the link, not settled
	sentRecs int
	batches  *Batch // with the link, not settled; a ring through prev and next
	free     *Batch // settled ones, for the next Send
	blocked  bool   // the goroutine waits for the window, or for the outcome of suspects
	suspects bool   // what was last sent are suspects, which are sent alone

	watch    *time.Timer // runs while Send does, and while the link has records
	watched  uint64      // progress, when that was last looked at
	lookedAt stamp       // then
	cut      bool        // the watch closed the link
	stuck    bool
	progress atomic.Uint64 // grows with every Settle and Wire
	seen     uint64        // progress when still began to count
	stillAt  stamp
}

// stir wakes the goroutine of the slot, which the first call starts. The caller holds links.
func (s *slot) stir() {
	if s.running || s.route.eng.state == over {
		s.signal()
		return
	}
	s.running = true
	s.route.eng.wg.Go(s.run)
}

// retire has s end: its address left. The caller holds links.
func (s *slot) retire() {
	s.retired = true
	s.reclaim()
	if !s.running && s.link == nil {
		s.detach()
		return
	}
	s.ep.retired++
	s.route.retired = append(s.route.retired, s)
	if s.route.eng.opts.Sync {
		s.route.eng.leaving = append(s.route.eng.leaving, s)
	}
	s.signal()
}

// detach takes s out of its address's slots. The caller holds links.
func (s *slot) detach() {
	s.ep.slots = slices.DeleteFunc(s.ep.slots, func(o *slot) bool { return o == s })
}

// ended notes that a retired slot has closed its link: one in its place may open another. The caller holds links.
func (s *slot) ended() {
	n := len(s.route.retired)
	s.route.retired = slices.DeleteFunc(s.route.retired, func(o *slot) bool { return o == s })
	if len(s.route.retired) == n {
		return
	}
	s.ep.retired--
	s.detach()
	for _, o := range s.ep.slots {
		o.signal()
	}
	s.route.forgetOldest()
}

// signal wakes the goroutine of the slot, if there is one. It never waits.
func (s *slot) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// push deals r to s and says whether the goroutine must be woken.
func (s *slot) push(r *Rec) (wake bool) {
	s.ep.picked += r.counts()
	s.route.eng.held += r.cost()
	s.inbox.push(r)
	return s.inbox.n == 1 || !s.running
}

// full says whether s cannot take n bytes more: what it holds is a window (or a batch) with the link and a batch behind it.
func (s *slot) full(n int) bool {
	l := &s.route.limits
	recs := s.inbox.n + s.sentRecs
	if recs == 0 {
		return false
	}
	if l.BatchRecords > 0 && l.Window == 0 && recs >= 2*l.BatchRecords {
		return true
	}
	return s.inbox.bytes+s.sent+n > max(s.route.window, s.route.batch)+s.route.batch
}

// still is for how long s has made no progress, since it was first asked.
func (s *slot) still(now stamp) time.Duration {
	if p := s.progress.Load(); p != s.seen || s.stillAt == (stamp{}) {
		s.seen, s.stillAt = p, now
	}
	return now.mono - s.stillAt.mono
}

// giveUp has s passed over until it moves again. What waits behind it goes to others. The caller holds links.
func (s *slot) giveUp() {
	s.stuck = true
	s.reclaim()
}

// reclaim gives the records that were not yet sent back to the queue.
func (s *slot) reclaim() {
	if s.inbox.n == 0 {
		return
	}
	e := s.route.eng
	s.stillAt = stamp{}
	for r := s.inbox.head; r != nil; r = r.next {
		s.ep.picked -= r.counts()
		e.held -= r.cost()
	}
	s.route.putBackAll(&s.inbox)
}

// take makes the next batch, or returns nil when there is nothing to send or the window is full. The caller holds links.
func (s *slot) take(now stamp) *Batch {
	l := &s.route.limits
	head := s.inbox.head
	if head == nil {
		return nil
	}
	suspects := head.flags&suspect != 0
	if s.sentRecs > 0 && (suspects || s.suspects || s.sent+len(head.data) > s.route.window) {
		s.blocked = true
		return nil
	}
	s.suspects = suspects
	b := s.free
	if b == nil {
		b = new(Batch)
	} else {
		s.free = b.next
	}
	b.recs, b.slot, b.next, b.prev = b.recs[:0], s, nil, nil
	bytes, most, halve := 0, l.BatchRecords, int(head.halve)
	if halve > 0 {
		most = halve
	}
	for r := s.inbox.head; r != nil; r = s.inbox.head {
		n := len(b.recs)
		if n > 0 && (most > 0 && n >= most || int(r.halve) != halve || bytes+len(r.data) > s.route.batch ||
			s.sent+bytes+len(r.data) > max(s.route.window, s.route.batch)) {
			break
		}
		s.inbox.pop()
		r.batch = b
		bytes += len(r.data)
		b.recs = append(b.recs, r)
	}
	b.open, b.sending, b.dead = len(b.recs), true, false
	s.watched, s.lookedAt = s.progress.Load(), now
	s.sent += bytes
	s.sentRecs += len(b.recs)
	s.hold(b)
	s.route.eng.pin(b)
	return b
}

// hold adds b to the batches with the link.
func (s *slot) hold(b *Batch) {
	b.next = s.batches
	if s.batches != nil {
		s.batches.prev = b
	}
	s.batches = b
}

// release takes a settled batch out, and keeps it for the next Send once this one has returned.
func (s *slot) release(b *Batch) {
	if b.open > 0 || b.sending || b.dead {
		return
	}
	if b.prev == nil {
		s.batches = b.next
	} else {
		b.prev.next = b.next
	}
	if b.next != nil {
		b.next.prev = b.prev
	}
	clear(b.recs) // a spare must not keep memory alive that the budget has let go
	b.prev, b.next = nil, s.free
	s.free = b
}
