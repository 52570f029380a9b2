package ship

import (
	"sync/atomic"
	"time"

	"github.com/wholelog/wholelog/internal/pool"
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
	opened   stamp
	maxAge   time.Duration // jittered
	lost     bool          // the last link broke
	sent     int           // bytes with the link, not settled
	sentRecs int
	batches  *Batch // with the link, not settled; a ring through prev and next
	free     *Batch // settled ones, for the next Send
	blocked  bool   // the goroutine waits for the window

	stuck    bool
	progress atomic.Uint64 // grows with every Settle and Wire
	seen     uint64        // progress when the due slot was first found full
	fullAt   stamp
}

// stir wakes the goroutine of the slot, which the first call starts. The caller holds links.
func (s *slot) stir() {
	if !s.running {
		s.running = true
		s.route.eng.wg.Go(s.run)
		return
	}
	s.signal()
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
	s.route.eng.held += len(r.data)
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
	return s.inbox.bytes+s.sent+n > max(l.Window, l.BatchBytes)+l.BatchBytes
}

// patience is how long the due slot, found full, is still waited for. Progress starts it anew.
func (s *slot) patience(now stamp) time.Duration {
	if p := s.progress.Load(); p != s.seen || s.fullAt == (stamp{}) {
		s.seen, s.fullAt = p, now
	}
	return patience - (now.mono - s.fullAt.mono)
}

// reclaim gives the records that were not yet sent back to the queue.
func (s *slot) reclaim() {
	e := s.route.eng
	e.held -= s.inbox.bytes
	for r := s.inbox.head; r != nil; r = r.next {
		s.ep.picked -= r.counts()
	}
	s.route.putBackAll(&s.inbox)
}

// take makes the next batch, or returns nil when there is nothing to send or the window is full. linger asks to wait a little for
// more, unless somebody flushes.
func (s *slot) take() *Batch {
	l := &s.route.limits
	head := s.inbox.head
	if head == nil {
		return nil
	}
	if s.sentRecs > 0 && s.sent+len(head.data) > l.Window {
		s.blocked = true
		return nil
	}
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
		if n > 0 && (most > 0 && n >= most || int(r.halve) != halve || bytes+len(r.data) > l.BatchBytes ||
			s.sent+bytes+len(r.data) > max(l.Window, l.BatchBytes)) {
			break
		}
		s.inbox.pop()
		r.batch = b
		bytes += len(r.data)
		b.recs = append(b.recs, r)
	}
	b.open, b.sending, b.dead = len(b.recs), true, false
	s.sent += bytes
	s.sentRecs += len(b.recs)
	s.hold(b)
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
	b.prev, b.next = nil, s.free
	s.free = b
}
