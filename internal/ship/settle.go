package ship

import (
	"fmt"
	"time"

	"github.com/wholelog/wholelog/delivery"
)

// settle ends the records [from, to) of b, or puts them back in front of the queue. What each outcome means:
//
//	Delivered  counted; proves the address good unless the transport is blind
//	Requeue    back to the queue; no try. With a Cause the address rests first
//	Resend     back to the queue; a try and counted as resent. With a Cause the address rests first. Tries exhausted: lost (tries)
//	Divert     to the fallback route; without one: lost (too_large)
//	Halve      back to the queue, to be sent with half as many at once; alone: lost (Reason, else rejected)
//	Drop       lost for Reason (else rejected)
//	anything   a link that forgot to say: as Resend, and reported
func (e *Engine) settle(b *Batch, from, to int, o Outcome) {
	s := b.slot
	rt := s.route
	e.mu.Lock()
	if b.dead {
		e.mu.Unlock()
		return
	}
	s.progress.Add(1)
	from, to = max(from, 0), min(to, len(b.recs))
	if b.answered != nil { // Sync
		if b.answer == nil && from < to {
			b.answer = &o
			close(b.answered)
		}
		e.mu.Unlock()
		return
	}
	if cause, failed := o.failed(); failed {
		rt.fail(s.ep, cause, o.Err, o.After)
	} else if (o.Do == Drop || o.Do == Divert) && o.Cause != "" {
		rt.note(s.ep, o.Cause, o.Err)
	}
	n := 0
	for _, r := range b.recs[from:max(from, to)] {
		if r.batch == b { // else settled before
			n++
			s.unhold(b, r)
			e.conclude(s, r, o, to-from)
		}
	}
	if o.Do == Delivered && n > 0 {
		e.succeeded(rt, s)
	}
	s.release(b)
	again := e.hungry() || o.Do != Delivered && n > 0
	if s.blocked {
		s.blocked = false
		s.signal()
	}
	e.mu.Unlock()
	if again {
		e.signal()
	}
	e.observe(s, o)
}

// conclude does with one record what the outcome of the of records says. The caller holds mu.
func (e *Engine) conclude(s *slot, r *Rec, o Outcome, of int) {
	switch {
	case o.Do == Delivered:
		s.ep.delivered++
		e.finish(r, "")
	case o.Do == Requeue:
		r.avoid = s.ep
		s.route.putBack(r)
	case o.Do == Divert:
		e.divert(s, r, o)
	case o.Do == Halve && of > 1:
		r.halve = uint32(of+1) / 2
		s.route.putBack(r)
	case o.Do == Halve, o.Do == Drop:
		e.lose(r, reasonOr(o.Reason), s.ep, o.Err)
	default:
		s.route.resend(s, r, o.Err)
	}
}

// succeeded notes that s delivered. A blind transport has no word of the peer: for it a failure is forgotten when nothing was
// heard for a second after the rest (Linux sends one ICMP error a second).
func (e *Engine) succeeded(rt *route, s *slot) {
	e.ledger.lastDelivered = time.Now()
	if s.ep.failures > 0 && (!rt.limits.Blind || s.ep.failed.over(e.clock.stamp(), s.ep.rest+time.Second)) {
		s.ep.failures = 0
	}
}

// observe tells the pool and the hooks what was seen. Called without mu.
func (e *Engine) observe(s *slot, o Outcome) {
	cause, failed := o.failed()
	switch {
	case failed:
		s.route.pool.Observe(s.ep.addr, false, cause)
		if o.Err != nil {
			e.hooks.trouble(cause, fmt.Errorf("%s: %w", s.ep.addr, o.Err))
		}
	case o.Do == Delivered && !s.route.limits.Blind:
		s.route.pool.Observe(s.ep.addr, true, "")
	case o.Do < Delivered || o.Do > Drop:
		e.hooks.trouble(delivery.CauseOther, fmt.Errorf("%s: a link settled records without saying how (%d)", s.ep.addr, o.Do))
	}
}

// unhold takes r from its batch: the link has it no more. The caller holds mu.
func (s *slot) unhold(b *Batch, r *Rec) {
	r.batch = nil
	b.open--
	s.sent -= len(r.data)
	s.sentRecs--
}

// resend puts a record back that was perhaps taken, unless it was tried often enough. The caller holds mu.
func (rt *route) resend(s *slot, r *Rec, err error) {
	r.tries++
	r.avoid = s.ep
	if int(r.tries) >= rt.eng.opts.Tries {
		rt.eng.lose(r, delivery.ReasonTriesExhausted, s.ep, err)
		return
	}
	rt.eng.ledger.resent++
	s.ep.resent++
	rt.putBack(r)
}

// divert moves a record to the fallback route. The caller holds mu.
func (e *Engine) divert(s *slot, r *Rec, o Outcome) {
	if s.route.fallback || len(e.routes) < 2 {
		err := o.Err
		if err == nil {
			err = delivery.ErrTooLarge
		}
		e.lose(r, delivery.ReasonTooLarge, s.ep, err)
		return
	}
	to := e.routes[1]
	to.needed.Store(true)
	e.ledger.diverted++
	r.avoid, r.halve = nil, 0
	to.putBack(r)
}

func reasonOr(r delivery.Reason) delivery.Reason {
	if r == "" {
		return delivery.ReasonRejected
	}
	return r
}
