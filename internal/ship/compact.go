package ship

import (
	"cmp"
	"iter"
	"log/slog"
	"slices"

	"github.com/wholelog/wholelog/delivery"
)

// maxMoving is how many segments are compacted at a time: what waits for the two mutexes meanwhile are log calls.
const maxMoving = 16

// lists yields every list of records that no link has seen, with the slot whose inbox it is, if it is one. Their bytes may be moved, and
// they may be evicted. The caller holds links and mu.
func (e *Engine) lists() iter.Seq2[*list, *slot] {
	return func(yield func(*list, *slot) bool) {
		if !yield(&e.queue, nil) {
			return
		}
		for _, rt := range e.routes {
			if !yield(&rt.back, nil) || !yield(&rt.hand, nil) {
				return
			}
			for _, s := range rt.slots {
				if !yield(&s.inbox, s) {
					return
				}
			}
		}
	}
}

// oldest returns the first record that is not settled. The caller holds links and mu.
func (e *Engine) oldest() (first *Rec) {
	look := func(r *Rec) {
		if r != nil && (first == nil || r.seq < first.seq) {
			first = r
		}
	}
	for l := range e.lists() {
		look(l.head)
	}
	for _, rt := range e.routes {
		for _, slots := range [][]*slot{rt.slots, rt.retired} {
			for _, s := range slots {
				for b := s.batches; b != nil; b = b.next {
					for _, r := range b.recs {
						if r.batch == b {
							look(r)
						}
					}
				}
			}
		}
	}
	return first
}

// worthy says whether so much died since compaction was last tried that it may free a segment.
func (a *arena) worthy() bool { return a.dead >= a.tried+segmentBytes }

// compact moves the records of the emptiest segments together, and says whether that freed memory. Segments that a link has a record
// of stay: it may be reading that record. While a segment is copied, the arena is over its budget by one segment at most. The caller
// holds links and mu.
func (e *Engine) compact() bool {
	e.enter() // delivered records that are not yet counted look as if a link had them
	a := &e.arena
	a.tried = a.dead
	sources, recs := a.sources(e.lists())
	if sources == nil {
		return false
	}
	for l := range e.lists() {
		for r := l.head; r != nil; r = r.next {
			if s := r.seg; s.moving {
				recs[s.first+s.loose-1] = r
				s.loose--
			}
		}
	}
	before := a.used
	var to *segment
	for _, s := range sources {
		s.moving = false
		for _, r := range recs[s.first : s.first+s.open] {
			if to == nil || cap(to.buf)-len(to.buf) < len(r.data) {
				to = a.target()
			}
			to.fill(r, r.data)
		}
		a.dead += s.live
		s.open, s.live = 0, 0
		a.release(s)
	}
	a.tried = a.dead
	return a.used < before
}

// sources picks the segments to move, the emptiest first, if moving them frees one or more. recs has room for all their records, of
// which each source knows where its own begin and, in loose, how many they are.
func (a *arena) sources(lists iter.Seq2[*list, *slot]) (sources []*segment, recs []*Rec) {
	for s := a.first; s != nil; s = s.next {
		s.loose = 0
	}
	for l := range lists {
		for r := l.head; r != nil; r = r.next {
			r.seg.loose++
		}
	}
	for s := a.first; s != nil; s = s.next {
		if s != a.last && s.loose == s.open && !s.alone() {
			sources = append(sources, s)
		}
	}
	slices.SortFunc(sources, func(x, y *segment) int { return cmp.Compare(x.live, y.live) })
	live, count, most := 0, 0, 0
	for i, s := range sources[:min(len(sources), maxMoving)] {
		if live += s.live; live <= i*segmentBytes {
			most = i + 1
		}
	}
	sources = sources[:most]
	for _, s := range sources {
		s.moving, s.first = true, count
		count += s.open
	}
	if most == 0 {
		return nil, nil
	}
	return sources, make([]*Rec, count)
}

// pin notes that a link has the records of b now: from here on they cannot be moved. Links that hang keep theirs for long, and when these
// are one in a hundred of those that were logged, they keep a hundred times their size from being used again. Where that becomes much
// of the budget, what a link gets is moved together first. The caller holds links.
func (e *Engine) pin(b *Batch) {
	for _, r := range b.recs {
		e.pinOne(r, b)
	}
	if e.pinned > e.opts.QueueBytes/4 {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.gather(b)
	}
}

func (e *Engine) pinOne(r *Rec, b *Batch) {
	r.batch = b
	if r.seg.pinned++; r.seg.pinned == 1 {
		e.pinned += r.seg.charge
	}
	if r.block.pinned++; r.block.pinned == 1 {
		e.pinned += blockCost
	}
}

// unpin notes that no link has r any more. The caller holds links.
func (e *Engine) unpin(r *Rec) {
	r.batch = nil
	if r.seg.pinned--; r.seg.pinned == 0 {
		e.pinned -= r.seg.charge
	}
	if r.block.pinned--; r.block.pinned == 0 {
		e.pinned -= blockCost
	}
}

// gather moves the records of b, which no link has seen yet, into memory of their own: segments of the usual size at most, so that
// those which come back can be moved again. For a moment that may be more than the budget has;
// it ends by compacting what the records have left behind. The caller holds links and mu.
func (e *Engine) gather(b *Batch) {
	a := &e.arena
	before, size := a.used, 0
	for _, r := range b.recs {
		if !r.seg.alone() {
			size += len(r.data)
		}
	}
	if size == 0 {
		return
	}
	var to *segment
	for i, old := range b.recs {
		if old.seg.alone() {
			continue
		}
		if to == nil || cap(to.buf)-len(to.buf) < len(old.data) {
			n := min(size, segmentBytes)
			to = a.insert(&segment{buf: make([]byte, 0, n), charge: n + segmentCost})
		}
		size -= len(old.data)
		e.unpin(old)
		r := a.packed()
		block := r.block
		*r = *old
		r.block = block
		to.fill(r, old.data)
		var left run
		left.add(old)
		a.settled(&left)
		b.recs[i] = r
		e.pinOne(r, b)
	}
	for a.used > a.budget && e.compact() {
	}
	if a.used < before {
		e.freed()
	}
}

// alone says whether s has a record of its own, which is never moved.
func (s *segment) alone() bool { return cap(s.buf) > segmentBytes }

// target returns an empty segment, in front of all others, whatever the budget says.
func (a *arena) target() *segment {
	s := a.reuse(segmentBytes)
	if s == nil {
		s = &segment{buf: make([]byte, 0, segmentBytes), charge: segmentBytes + segmentCost}
	}
	return a.insert(s)
}

// insert puts s in front of all other segments: it will not be filled by new records.
func (a *arena) insert(s *segment) *segment {
	s.prev, s.next = nil, a.first
	if a.first == nil {
		a.last = s
	} else {
		a.first.prev = s
	}
	a.first = s
	a.used += s.charge
	return s
}

// dig finds room for a record where the quick way found none: by compaction and, to evict what is oldest, in the lists of the
// dispatcher and of links too. The caller holds mu, which is released for a moment. It returns the admitted record or nil; the engine
// may have been closed meanwhile.
func (e *Engine) dig(level slog.Level, data []byte, evict bool) *Rec {
	e.mu.Unlock()
	e.links.Lock()
	defer e.links.Unlock()
	e.mu.Lock()
	for e.state < closing {
		r := e.arena.add(level, data)
		if r == nil && e.compact() {
			e.freed()
			r = e.arena.add(level, data)
		}
		if r != nil || !evict || !e.evictDeep(level, segmentBytes+len(data)) {
			return r
		}
	}
	return nil
}

// evictDeep drops the oldest records that no link has seen, so many bytes of them, and says whether there was one. The caller holds
// links and mu.
func (e *Engine) evictDeep(level slog.Level, bytes int) (found bool) {
	for ; bytes > 0; found = true {
		var from *list
		var of *slot
		var before, r *Rec
		for l, s := range e.lists() {
			if b, v := l.victim(level); v != nil && (r == nil || v.seq < r.seq) {
				from, of, before, r = l, s, b, v
			}
		}
		if r == nil {
			return found
		}
		bytes -= r.cost()
		from.remove(before, r)
		for _, rt := range e.routes {
			rt.last = nil // it may be r
		}
		if of != nil {
			of.ep.picked -= r.counts()
			e.held -= r.cost()
		}
		e.lose(r, delivery.ReasonEvicted, nil, delivery.ErrQueueFull)
	}
	return found
}
