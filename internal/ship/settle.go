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
	e.links.Lock()
	if b.dead {
		e.links.Unlock()
		return
	}
	s.progress.Add(1)
	from, to = max(from, 0), min(to, len(b.recs))
	if b.answered != nil { // Sync
		if b.answer == nil && from < to {
			b.answer = &o
			close(b.answered)
		}
		e.links.Unlock()
		return
	}
	if cause, failed := o.failed(); failed {
		rt.fail(s.ep, cause, o.Err, o.After)
	} else if (o.Do == Drop || o.Do == Divert) && o.Cause != "" {
		rt.note(s.ep, o.Cause, o.Err)
	}
	settled, proof := false, false
	if from < to {
		if o.Do == Delivered {
			settled, proof = e.deliver(s, b, from, to)
		} else {
			settled = e.conclude(s, b, from, to, o)
		}
	}
	s.release(b)
	again := settled && (o.Do != Delivered || e.anyHungry())
	if s.blocked {
		s.blocked = false
		s.signal()
	}
	e.links.Unlock()
	if again {
		e.signal()
	}
	e.observe(s, o, proof)
}

// deliver ends the records [from, to) of b as delivered. It says whether any of them was not settled before, and whether that proves
// something about the address. The caller holds links.
func (e *Engine) deliver(s *slot, b *Batch, from, to int) (settled, proof bool) {
	var f run
	var n, bytes int
	var counts uint64
	for _, r := range b.recs[from:to] {
		if r.batch != b {
			continue
		}
		e.unpin(r)
		n++
		bytes += len(r.data)
		counts += r.counts()
		if !f.add(r) {
			e.runs = append(e.runs, f)
			f = run{}
			f.add(r)
		}
	}
	if n == 0 {
		return false, false
	}
	s.let(b, n, bytes)
	s.ep.delivered += counts
	e.runs, e.latest = append(e.runs, f), time.Now()
	e.post()
	return true, s.served()
}

// footing is how long a link must last before a kernel's word proves something: a balancer whose servers are all away, and a receiver
// that dies of every connection, accept it and the first bytes, and close it then.
const footing = time.Second

// lasted says whether what the link delivered proves that its address works. The caller holds links.
func (s *slot) lasted() bool {
	return s.gave && (!s.route.limits.Faint || s.opened.over(s.route.eng.clock.stamp(), footing))
}

// served notes that the address of s delivered, and says whether that proves something. A blind transport has no word of the peer: for
// it a failure is forgotten when nothing was heard for a second after the rest (Linux sends one ICMP error a second). The caller holds
// links.
func (s *slot) served() (proof bool) {
	ep := s.ep
	s.gave = true
	switch {
	case s.route.limits.Blind:
		ep.trial = false
		if ep.failures > 0 && ep.failed.over(s.route.eng.clock.stamp(), ep.rest+time.Second) {
			ep.failures = 0
		}
		return false
	case ep.failures > 0 && !s.lasted():
		return false
	}
	ep.trial, ep.failures = false, 0
	return true
}

// broke notes that the link ended for err, and says whether it had proved before that its address works. One that had not puts the
// address on trial, so that no more than a record is lost with the next. The caller holds links.
func (s *slot) broke(cause delivery.Cause, err error, after time.Duration) (lasted bool) {
	if lasted = s.lasted(); lasted {
		s.ep.failures = 0
	}
	s.gave = false
	s.route.fail(s.ep, cause, err, after)
	s.ep.trial = !lasted && !s.route.limits.Blind
	s.ep.idled = lasted && cause == delivery.CausePeerClosed && s.sentRecs+s.inbox.n == 0
	return lasted
}

// conclude does with the records [from, to) of b what the outcome says when it is not Delivered. It says whether any of them was
// not settled before. The caller holds links.
func (e *Engine) conclude(s *slot, b *Batch, from, to int, o Outcome) bool {
	n := b.open
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range b.recs[from:to] {
		if r.batch != b {
			continue
		}
		s.unhold(b, r)
		switch {
		case o.Do == Requeue:
			r.avoid = s.ep
			s.route.putBack(r)
		case o.Do == Divert:
			e.divert(s, r, o)
		case o.Do == Halve && to-from > 1:
			r.halve = uint32(to-from+1) / 2
			s.route.putBack(r)
		case o.Do == Halve, o.Do == Drop:
			e.lose(r, reasonOr(o.Reason), s.ep, o.Err)
		default:
			s.resend(r, o.Err, to-from)
		}
	}
	return n > b.open
}

// observe tells the pool and the hooks what was seen; proof says that a Delivered proves something. No mutex is held.
func (e *Engine) observe(s *slot, o Outcome, proof bool) {
	cause, failed := o.failed()
	switch {
	case failed:
		s.route.pool.Observe(s.ep.addr, false, cause)
		if o.Err != nil {
			e.hooks.trouble(cause, fmt.Errorf("%s: %w", place(s.ep.addr), o.Err))
		}
	case o.Do == Delivered:
		if proof {
			s.route.pool.Observe(s.ep.addr, true, "")
		}
	case o.Do < Delivered || o.Do > Drop:
		e.hooks.trouble(delivery.CauseOther, fmt.Errorf("%s: a link settled records without saying how (%d)", s.ep.addr, o.Do))
	}
}

// unhold takes r from its batch: the link has it no more. The caller holds links.
func (s *slot) unhold(b *Batch, r *Rec) {
	s.route.eng.unpin(r)
	s.let(b, 1, len(r.data))
}

// let counts n records of so many bytes out of what the link has. The caller holds links.
func (s *slot) let(b *Batch, n, bytes int) {
	b.open -= n
	s.sent -= bytes
	s.sentRecs -= n
	s.route.eng.held -= bytes + n*recCost
}

// resend puts a record back that s perhaps brought over, unless it was tried often enough. The caller holds links and mu.
//
// It, or another of the together that failed, may bring down every link it is sent by. From the second time on they are suspects: they
// are sent in quarters, and while a link has some it gets nothing else. The last try of each is made alone. So no record is lost for
// another's fault, however few tries there are.
func (s *slot) resend(r *Rec, err error, together int) {
	e := s.route.eng
	r.tries++
	r.flags &^= shaped
	r.avoid = s.ep
	if int(r.tries) >= e.opts.Tries {
		e.lose(r, delivery.ReasonTriesExhausted, s.ep, err)
		return
	}
	switch left := e.opts.Tries - int(r.tries); {
	case left == 1:
		r.halve, r.flags = 1, r.flags|suspect
	case r.tries > 1:
		r.halve, r.flags = uint32(together+3)/4, r.flags|suspect
	}
	e.ledger.resent += r.counts()
	s.ep.resent += r.counts()
	s.route.putBack(r)
}

// divert moves a record to the fallback route. The caller holds links and mu.
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
	e.ledger.diverted += r.counts()
	r.avoid, r.halve = nil, 0
	r.flags &^= suspect
	to.putBack(r)
}

func reasonOr(r delivery.Reason) delivery.Reason {
	if r == "" {
		return delivery.ReasonRejected
	}
	return r
}
