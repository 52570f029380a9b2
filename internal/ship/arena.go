package ship

import (
	"log/slog"
	"unsafe"
)

const (
	segmentBytes = 64 << 10
	segmentCost  = int(unsafe.Sizeof(segment{}))
	maxGiant     = 1 << 20 // larger ones are too rare to be kept
	keptGiants   = 4
)

// segment is a piece of memory that holds the bytes of records. It is given back as a whole: when the last of them is settled, or
// when compaction has moved the last ones elsewhere.
type segment struct {
	buf        []byte
	open       int // records in it that are not settled
	live       int // their bytes
	charge     int // bytes of the budget
	prev, next *segment
	pinned     int // records that links have; guarded by the engine's links

	// While compacting.
	loose  int // of the open records, those that may be moved
	first  int // of its records, among all that are moved
	moving bool
}

// arena holds every byte that is kept for records: their bytes in segments, the records themselves in blocks. Its charge is what these
// occupy, not what the records add up to, so the budget bounds the heap. All of it is guarded by the engine's mu.
type arena struct {
	budget      int
	reserve     int      // of budget: for records at Warn and above
	used        int      // charges of the segments in the list and of the blocks in use
	first, last *segment // last is being filled
	spare       []*segment
	giants      []*segment // spares larger than usual
	spareCost   int        // charges of both, and of the blocks that are not in use
	blocks      blocks
	dead        int // bytes of settled records in the segments of the list
	tried       int // dead, when compaction was last tried
	seq         uint64
}

// limit is what a record of this level may fill the arena up to.
func (a *arena) limit(level slog.Level) int {
	if level >= slog.LevelWarn {
		return a.budget
	}
	return a.budget - a.reserve
}

// add copies data into the arena, or returns nil when the budget has no room for it.
func (a *arena) add(level slog.Level, data []byte) *Rec {
	s, limit := a.last, a.limit(level)
	if a.used > limit {
		return nil
	}
	if s == nil || s.alone() || cap(s.buf)-len(s.buf) < len(data) {
		if s = a.begin(len(data), limit); s == nil {
			return nil
		}
	}
	r := a.record(limit)
	if r == nil {
		if s.open == 0 {
			a.release(s)
		}
		return nil
	}
	a.seq++
	s.fill(r, data)
	r.seq, r.level = a.seq, level
	r.tries, r.halve, r.flags = 0, 0, 0
	return r
}

// fill makes data the bytes of r, for which there is room.
func (s *segment) fill(r *Rec, data []byte) {
	at := len(s.buf)
	s.buf = append(s.buf, data...)
	s.open++
	s.live += len(data)
	r.data, r.seg = s.buf[at:len(s.buf):len(s.buf)], s
}

// room says whether cost more bytes fit below limit, giving spare segments back where the budget needs it.
func (a *arena) room(cost, limit int) bool {
	if a.used+cost > limit {
		return false
	}
	for a.used+a.spareCost+cost > a.budget {
		switch {
		case len(a.giants) > 0:
			a.takeSpare(&a.giants)
		case len(a.spare) > 0:
			a.takeSpare(&a.spare)
		default:
			a.spareCost -= a.blocks.letGo(1)
		}
	}
	return true
}

// takeSpare takes the newest out of a list of spares.
func (a *arena) takeSpare(from *[]*segment) *segment {
	last := len(*from) - 1
	s := (*from)[last]
	(*from)[last] = nil
	*from = (*from)[:last]
	a.spareCost -= s.charge
	return s
}

// reuse returns a spare with room for size bytes that is not much too large for them, or nil.
func (a *arena) reuse(size int) *segment {
	if size <= segmentBytes && len(a.spare) > 0 {
		return a.takeSpare(&a.spare)
	}
	if n := len(a.giants); size > segmentBytes && n > 0 && cap(a.giants[n-1].buf) >= size && cap(a.giants[n-1].buf) <= 2*size {
		return a.takeSpare(&a.giants)
	}
	return nil
}

// begin adds a segment with room for size bytes. A record larger than a segment gets one alone, and what is being filled stays last.
func (a *arena) begin(size, limit int) *segment {
	if a.last != nil && a.last.open == 0 {
		a.release(a.last)
	}
	s := a.reuse(size)
	if s == nil {
		size = (size + segmentBytes - 1) / segmentBytes * segmentBytes // whole ones, so that giants fit each other
		size = max(size, segmentBytes)
		cost := size + segmentCost
		if !a.room(cost, limit) {
			return nil
		}
		s = &segment{buf: make([]byte, 0, size), charge: cost}
	} else if a.used+s.charge > limit {
		a.keep(s)
		return nil
	}
	if s.alone() {
		return a.insert(s)
	}
	s.prev = a.last
	if a.last == nil {
		a.first = s
	} else {
		a.last.next = s
	}
	a.last = s
	a.used += s.charge
	return s
}

// record returns a record without bytes, or nil when the budget has no room for another block of them.
func (a *arena) record(limit int) *Rec {
	if r := a.blocks.take(); r != nil {
		return r
	}
	if a.blocks.idle() {
		if a.used+blockCost > limit {
			return nil
		}
		a.spareCost -= blockCost
	} else if !a.room(blockCost, limit) {
		return nil
	}
	a.used += blockCost
	a.blocks.open()
	return a.blocks.take()
}

// packed returns a record beside others that were moved, whatever the budget says.
func (a *arena) packed() *Rec {
	p := &a.blocks
	if p.dense == nil || p.dense.used == blockRecs {
		if p.idle() {
			a.spareCost -= blockCost
		}
		a.used += blockCost
		p.open()
		p.dense = p.roomy
	}
	return p.takeOf(p.dense)
}

// settled takes back the records of f, and says whether that freed memory. The segment being filled is emptied in place.
func (a *arena) settled(f *run) (freed bool) {
	if emptied := a.blocks.give(f); emptied {
		a.used -= blockCost
		a.spareCost += blockCost
		freed = true
	}
	s := f.seg
	s.open -= f.n
	s.live -= f.bytes
	a.dead += f.bytes
	if s.open > 0 {
		return freed
	}
	if s == a.last && cap(s.buf) == segmentBytes {
		a.clear(s)
	} else {
		a.release(s)
	}
	return true
}

// clear makes s, of which nothing lives, ready for other records.
func (a *arena) clear(s *segment) {
	a.dead -= len(s.buf)
	a.tried = min(a.tried, a.dead)
	s.buf = s.buf[:0]
}

// release takes s out of the list and keeps it as a spare.
func (a *arena) release(s *segment) {
	if s.prev == nil {
		a.first = s.next
	} else {
		s.prev.next = s.next
	}
	if s.next == nil {
		a.last = s.prev
	} else {
		s.next.prev = s.prev
	}
	s.prev, s.next = nil, nil
	a.used -= s.charge
	a.clear(s)
	a.keep(s)
}

// keep makes an empty segment a spare, or leaves it to the garbage collector.
func (a *arena) keep(s *segment) {
	to := &a.spare
	if cap(s.buf) < segmentBytes {
		return
	}
	if s.alone() {
		if to = &a.giants; cap(s.buf) > maxGiant || len(a.giants) >= keptGiants {
			return
		}
	}
	*to = append(*to, s)
	a.spareCost += s.charge
}

// rest gives back what a quiet engine does not need: all spares but one of each kind.
func (a *arena) rest() {
	for len(a.giants) > 0 {
		a.takeSpare(&a.giants)
	}
	for len(a.spare) > 1 {
		a.takeSpare(&a.spare)
	}
	a.spareCost -= a.blocks.letGo(a.blocks.spare - 1)
}
