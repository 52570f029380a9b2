package ship

import "unsafe"

const (
	blockRecs = 64
	blockCost = int(unsafe.Sizeof(block{}))
)

// block is a run of records that never moves, so that pointers to them hold. Each is used again as soon as it is settled: a record that
// a slow link keeps for long keeps no other from being used, as it would if blocks were given back like segments.
type block struct {
	recs       [blockRecs]Rec
	free       *Rec // settled ones, linked by next
	fresh      int  // of recs, so many were used since the block was idle
	used       int  // of recs, so many are in use
	pinned     int  // records that links have; guarded by the engine's links
	prev, next *block
}

// blocks are the records of an arena.
type blocks struct {
	roomy *block // those in use that have a free record, linked by prev and next
	idles *block // those of which no record is in use, linked by next
	spare int    // number of these
	dense *block // the one that moved records go to; nil until there are any
}

// take returns a record of a block in use, or nil when all are taken.
func (p *blocks) take() *Rec {
	if p.roomy == nil {
		return nil
	}
	return p.takeOf(p.roomy)
}

// takeOf returns a record of b, which has a free one.
func (p *blocks) takeOf(b *block) *Rec {
	r := b.free
	if r != nil {
		b.free, r.next = r.next, nil
	} else {
		r = &b.recs[b.fresh]
		r.block, r.next = b, nil
		b.fresh++
	}
	if b.used++; b.used == blockRecs {
		p.unlink(b)
	}
	return r
}

// idle says whether there is a block of which no record is in use.
func (p *blocks) idle() bool { return p.idles != nil }

// open brings a block into use: an idle one, else a new one.
func (p *blocks) open() {
	b := p.idles
	if b != nil {
		p.idles = b.next
		p.spare--
	} else {
		b = new(block)
	}
	p.link(b)
}

// give takes back the records of f, which are of one block, and says whether that block is idle now.
func (p *blocks) give(f *run) (idle bool) {
	b := f.head.block
	if b.used == blockRecs {
		p.link(b)
	}
	f.tail.next, b.free = b.free, f.head
	if b.used -= f.n; b.used > 0 {
		return false
	}
	p.unlink(b)
	b.free, b.fresh = nil, 0 // one after the other again: the processor finds those, and not where a list leads
	b.next, p.idles = p.idles, b
	p.spare++
	if p.dense == b {
		p.dense = nil
	}
	return true
}

// letGo leaves up to n idle blocks to the garbage collector, and returns what they cost.
func (p *blocks) letGo(n int) (cost int) {
	for ; n > 0 && p.idles != nil; n-- {
		p.idles = p.idles.next
		p.spare--
		cost += blockCost
	}
	return cost
}

func (p *blocks) link(b *block) {
	b.prev, b.next = nil, p.roomy
	if p.roomy != nil {
		p.roomy.prev = b
	}
	p.roomy = b
}

func (p *blocks) unlink(b *block) {
	if b.prev == nil {
		p.roomy = b.next
	} else {
		b.prev.next = b.next
	}
	if b.next != nil {
		b.next.prev = b.prev
	}
	b.prev, b.next = nil, nil
}
