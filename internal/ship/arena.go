package ship

import (
	"log/slog"
	"unsafe"
)

const (
	segmentBytes = 64 << 10
	blockRecs    = 64
	maxGiant     = 1 << 20 // larger ones are too rare to be kept
	keptGiants   = 4
	keptBlocks   = 8 // of an empty segment: enough for records of 128 bytes
)

// block is a run of records that never moves, so that pointers to them hold.
type block [blockRecs]Rec

const (
	blockCost   = int(unsafe.Sizeof(block{}))
	segmentCost = int(unsafe.Sizeof(segment{}))
)

// segment is a piece of memory that holds the bytes of consecutive records and the records themselves. It is given back as a
// whole, when the last of them is settled.
type segment struct {
	buf        []byte
	blocks     []*block
	n          int // records in it
	open       int // of these not settled
	charge     int // bytes of the budget
	prev, next *segment
}

// arena holds every byte that is kept for records. Its charge is what its segments occupy, not what the records add up to, so the
// budget bounds the heap. All of it is guarded by the engine's mu.
type arena struct {
	budget      int
	reserve     int      // of budget: for records at Warn and above
	used        int      // charges of the segments in the list
	first, last *segment // in order of Seq; last is being filled
	spare       []*segment
	giants      []*segment // spares larger than usual
	spareCost   int        // charges of both
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
	if s == nil || cap(s.buf)-len(s.buf) < len(data) {
		if s = a.open(len(data), limit); s == nil {
			return nil
		}
	}
	if s.n == len(s.blocks)*blockRecs {
		if !a.room(blockCost, limit) {
			return nil
		}
		s.blocks = append(s.blocks, new(block))
		s.charge += blockCost
		a.used += blockCost
	}
	r := &s.blocks[s.n/blockRecs][s.n%blockRecs]
	s.n++
	s.open++
	at := len(s.buf)
	s.buf = append(s.buf, data...)
	a.seq++
	r.data, r.seg, r.seq, r.level = s.buf[at:len(s.buf):len(s.buf)], s, a.seq, level
	r.tries, r.halve, r.flags = 0, 0, 0
	return r
}

// room says whether cost more bytes fit below limit, giving spare segments back where the budget needs it.
func (a *arena) room(cost, limit int) bool {
	if a.used+cost > limit {
		return false
	}
	for a.used+a.spareCost+cost > a.budget {
		if len(a.giants) > 0 {
			a.takeSpare(&a.giants)
		} else {
			a.takeSpare(&a.spare)
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

// open appends a segment with room for size bytes; a record larger than a segment gets one alone.
func (a *arena) open(size, limit int) *segment {
	if a.last != nil && a.last.open == 0 {
		a.release(a.last)
	}
	s := a.reuse(size)
	if s == nil {
		size = (size + segmentBytes - 1) / segmentBytes * segmentBytes // whole ones, so that giants fit each other
		size = max(size, segmentBytes)
		cost := size + segmentCost + blockCost
		if !a.room(cost, limit) {
			return nil
		}
		s = &segment{buf: make([]byte, 0, size), blocks: []*block{new(block)}, charge: cost}
	} else if a.used+s.charge > limit {
		a.keep(s)
		return nil
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

// settled takes note that n records of s are done, and frees s when they were the last. The segment being filled is emptied in
// place.
func (a *arena) settled(s *segment, n int) (freed bool) {
	s.open -= n
	if s.open > 0 {
		return false
	}
	if s == a.last && cap(s.buf) == segmentBytes {
		a.used -= s.empty()
		return true
	}
	a.release(s)
	return true
}

// empty makes s ready for other records and returns by how much its charge fell: blocks that only very short records need are let go.
func (s *segment) empty() (less int) {
	s.n, s.buf = 0, s.buf[:0]
	if extra := len(s.blocks) - keptBlocks; extra > 0 {
		clear(s.blocks[keptBlocks:])
		s.blocks = s.blocks[:keptBlocks]
		less = extra * blockCost
		s.charge -= less
	}
	return less
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
	s.empty()
	a.keep(s)
}

// keep makes an empty segment a spare, or leaves it to the garbage collector.
func (a *arena) keep(s *segment) {
	to := &a.spare
	if cap(s.buf) > segmentBytes {
		if to = &a.giants; cap(s.buf) > maxGiant || len(a.giants) >= keptGiants {
			return
		}
	}
	*to = append(*to, s)
	a.spareCost += s.charge
}

// rest gives back what a quiet engine does not need: all spares but one.
func (a *arena) rest() {
	for len(a.giants) > 0 {
		a.takeSpare(&a.giants)
	}
	for len(a.spare) > 1 {
		a.takeSpare(&a.spare)
	}
}

// oldest returns the first record that is not settled.
func (a *arena) oldest() *Rec {
	for s := a.first; s != nil; s = s.next {
		for i := 0; s.open > 0 && i < s.n; i++ {
			if r := &s.blocks[i/blockRecs][i%blockRecs]; r.flags&done == 0 {
				return r
			}
		}
	}
	return nil
}
