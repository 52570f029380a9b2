package ship

import (
	"sync/atomic"
	"time"

	"github.com/wholelog/wholelog/delivery"
)

// ledger holds the counters. Those that must agree with each other are guarded by the engine's mutex; each is raised in one place:
// accepted and pending in admit, delivered and dropped in finish.
type ledger struct {
	accepted, delivered, dropped uint64
	pending                      uint64
	pendingBytes                 uint64
	resent, diverted             uint64
	waits                        uint64
	waitTime                     time.Duration
	lastDelivered                time.Time
	reconnects                   uint64
	reasons                      map[delivery.Reason]uint64

	repaired, truncated, unconfirmed, bytes atomic.Uint64
}

// admit counts a record that was given to the engine. The caller holds mu.
func (e *Engine) admit(r *Rec) {
	e.ledger.accepted++
	e.ledger.pending++
	e.ledger.pendingBytes += uint64(len(r.data))
	r.epoch = e.epochs.enter()
}

// finish ends a record's life: it is delivered, or lost for reason. The caller holds mu.
func (e *Engine) finish(r *Rec, lost delivery.Reason) {
	r.flags |= done
	e.ledger.pending--
	e.ledger.pendingBytes -= uint64(len(r.data))
	if lost == "" {
		e.ledger.delivered++
	} else {
		e.ledger.dropped++
		e.ledger.reasons[lost]++
	}
	r.batch, r.avoid = nil, nil
	e.epochs.leave(r.epoch)
	if r.seg != nil && e.arena.settled(r.seg) {
		e.freed()
	}
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
	e.finish(r, reason)
}

// Stats returns a consistent snapshot. It may be called at any time, also after Close.
func (e *Engine) Stats() delivery.Stats {
	l := &e.ledger
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.clock.stamp()
	s := delivery.Stats{
		Accepted: l.accepted, Delivered: l.delivered, Dropped: l.dropped, Pending: l.pending,
		Resent: l.resent, Diverted: l.diverted, Truncated: l.truncated.Load(), Repaired: l.repaired.Load(),
		Unconfirmed: l.unconfirmed.Load(), Bytes: l.bytes.Load(), PendingBytes: l.pendingBytes,
		Waits: l.waits, WaitTime: l.waitTime, LastDelivered: l.lastDelivered, Reconnects: l.reconnects,
		Reasons: make(map[delivery.Reason]uint64, len(l.reasons)),
	}
	for k, v := range l.reasons {
		s.Reasons[k] = v
	}
	if r := e.arena.oldest(); r != nil {
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
