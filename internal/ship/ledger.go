package ship

import (
	"sync/atomic"
	"time"

	"github.com/wholelog/wholelog/delivery"
)

// ledger holds the counters, guarded by mu but for the atomic ones. Each is raised in one place: accepted and pending in admit,
// delivered and dropped in finish.
type ledger struct {
	accepted, delivered, dropped uint64
	pending                      uint64
	pendingBytes                 uint64
	resent, diverted             uint64
	own                          uint64
	waits                        uint64
	waitTime                     time.Duration
	reasons                      []reasonCount // few, so that a search beats a map

	repaired, truncated, unconfirmed, bytes, reconnects atomic.Uint64
}

type reasonCount struct {
	reason delivery.Reason
	n      uint64
}

// admit counts a record that was given to the engine. The caller holds mu.
func (e *Engine) admit(r *Rec) {
	r.epoch = e.epochs.enter()
	if r.flags&own != 0 {
		e.ledger.own++
		return
	}
	e.ledger.accepted++
	e.ledger.pending++
	e.ledger.pendingBytes += uint64(len(r.data))
}

// run is a number of records that end in the same way and lie together, so that they are counted at once.
type run struct {
	seg        *segment
	block      *block
	epoch      uint64
	own        bool
	head, tail *Rec // linked by next
	n, bytes   int
}

// add takes r into the run, or says that it belongs to another one. A record in a run is done with.
func (f *run) add(r *Rec) bool {
	mine := r.flags&own != 0
	if f.n == 0 {
		f.seg, f.block, f.epoch, f.own, f.head = r.seg, r.block, r.epoch, mine, r
	} else if f.seg != r.seg || f.block != r.block || f.epoch != r.epoch || f.own != mine {
		return false
	} else {
		f.tail.next = r
	}
	f.tail = r
	f.n++
	f.bytes += len(r.data)
	r.data, r.seg, r.avoid = nil, nil, nil // whoever waits to be used again keeps no memory alive
	return true
}

// finish ends the life of a run of records: they are delivered, or lost for reason. The caller holds mu.
func (e *Engine) finish(f run, lost delivery.Reason) {
	if n := uint64(f.n); !f.own {
		e.ledger.pending -= n
		e.ledger.pendingBytes -= uint64(f.bytes)
		if lost == "" {
			e.ledger.delivered += n
		} else {
			e.ledger.dropped += n
			e.ledger.reasons = count(e.ledger.reasons, lost, n)
			e.summary.losses(lost, n)
		}
	}
	e.epochs.leave(f.epoch, f.n)
	if f.seg == nil { // was never in the arena
		return
	}
	if e.arena.settled(&f) {
		e.freed()
	} else if e.roomy != nil && e.arena.worthy() {
		e.signal() // the dispatcher compacts
	}
}

// count adds n records lost for reason.
func count(to []reasonCount, reason delivery.Reason, n uint64) []reasonCount {
	for i := range to {
		if to[i].reason == reason {
			to[i].n += n
			return to
		}
	}
	return append(to, reasonCount{reason, n})
}

// post brings delivered runs into the ledger. Callers who log in a loop keep mu busy; a link does not queue up behind them for a
// few additions, but leaves them to the dispatcher if mu is taken. The caller holds links.
func (e *Engine) post() {
	if e.mu.TryLock() {
		e.enter()
		e.mu.Unlock()
		return
	}
	e.signal()
}

// enter brings delivered runs into the ledger. The caller holds links and mu.
func (e *Engine) enter() {
	for i := range e.runs {
		e.finish(e.runs[i], "")
	}
	clear(e.runs)
	e.runs = e.runs[:0]
}

// finishOne is finish for a single record. The caller holds mu.
func (e *Engine) finishOne(r *Rec, lost delivery.Reason) {
	var f run
	f.add(r)
	e.finish(f, lost)
}

// freed tells waiting callers that there is room again. The caller holds mu.
func (e *Engine) freed() {
	if e.refuse && e.arena.used <= e.arena.budget/4*3 {
		e.refuse = false
	}
	if e.roomy != nil {
		close(e.roomy)
		e.roomy = nil
	}
}

// lose ends a record as lost and tells OnDrop. The caller holds mu.
func (e *Engine) lose(r *Rec, reason delivery.Reason, at *endpoint, err error) {
	if r.flags&quiet == 0 {
		d := &delivery.Drop{Records: 1, Bytes: len(r.data), Level: r.level, Reason: reason, Err: err, Data: r.data}
		if at != nil {
			d.Addr = at.addr
		}
		e.hooks.drop(d)
	}
	e.finishOne(r, reason)
}

// Stats returns a consistent snapshot. It may be called at any time, also after Close.
func (e *Engine) Stats() delivery.Stats {
	l := &e.ledger
	e.links.Lock()
	defer e.links.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.enter()
	now := e.clock.stamp()
	s := delivery.Stats{
		Accepted: l.accepted, Delivered: l.delivered, Dropped: l.dropped, Pending: l.pending,
		Resent: l.resent, Diverted: l.diverted, Truncated: l.truncated.Load(), Repaired: l.repaired.Load(),
		Own: l.own, Unconfirmed: l.unconfirmed.Load(), Bytes: l.bytes.Load(), PendingBytes: l.pendingBytes,
		Waits: l.waits, WaitTime: l.waitTime, LastDelivered: e.latest, Reconnects: l.reconnects.Load(),
		Reasons: make(map[delivery.Reason]uint64, len(l.reasons)),
	}
	for _, c := range l.reasons {
		s.Reasons[c.reason] = c.n
	}
	if r := e.oldest(); r != nil {
		s.OldestPending = r.born.age(now)
	}
	for _, rt := range e.routes {
		p := rt.pool.Stats()
		s.Lookups += p.Lookups
		s.LookupErrors += p.LookupErrors
		s.AnswerAge = max(s.AnswerAge, p.AnswerAge)
		s.Endpoints = rt.stats(s.Endpoints)
	}
	return s
}
