package ship

import (
	"time"

	"github.com/wholelog/wholelog/delivery"
)

const (
	tick     = 2 * time.Millisecond   // records that did not wake the dispatcher wait this long at most
	tickFor  = 100 * time.Millisecond // the tick runs on this long after the last record
	dealMost = 64                     // records dealt before mu is released once, so that callers are not held up
)

// dispatch is the one goroutine that deals records to links. It does no I/O and waits only for something to do.
func (e *Engine) dispatch() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var last time.Duration // when new records were last found
	var seq uint64         // the newest one then
	for {
		refresh := e.kick()
		e.mu.Lock()
		now := e.clock.stamp()
		e.born = now
		if e.arena.seq != seq {
			seq, last = e.arena.seq, now.mono
		}
		wait := e.deal(now)
		e.stirDue()
		if e.state == over {
			e.mu.Unlock()
			return
		}
		e.ticking = seq > 0 && now.mono-last < tickFor
		if e.ticking {
			wait = min(wait, tick)
		} else if e.ledger.pending == 0 {
			e.arena.rest()
		}
		e.parked = true
		e.mu.Unlock()

		timer.Reset(min(wait, refresh))
		select {
		case <-e.wake:
		case <-timer.C:
		}
		e.mu.Lock()
		e.parked = false
		e.mu.Unlock()
	}
}

// kick lets the pools start the look-ups that are due, and returns how long until the next one is.
func (e *Engine) kick() time.Duration {
	wait := time.Hour
	for _, rt := range e.routes {
		if rt.fallback && !rt.needed.Load() {
			continue
		}
		if next := rt.pool.Kick(); !next.IsZero() {
			wait = min(wait, max(time.Until(next), time.Millisecond))
		}
	}
	return wait
}

// deal gives every record that can leave to a link, in order, and returns how long until something may have changed by itself. The
// caller holds mu; deal releases it now and then.
func (e *Engine) deal(now stamp) time.Duration {
	wait := time.Hour
	for _, rt := range e.routes {
		rt.hungry = false
		rt.follow()
		wait = min(wait, rt.tend(now))
		for n := 1; ; n++ {
			from := rt.next()
			if from == nil {
				break
			}
			r := from.head
			if e.opts.RetryFor > 0 && r.born.over(now, e.opts.RetryFor) {
				from.pop()
				e.expire(r, rt)
				continue
			}
			s, w := rt.pick(r, now)
			if s == nil {
				rt.hungry = true
				wait = min(wait, w)
				if e.opts.RetryFor > 0 {
					wait = min(wait, e.opts.RetryFor-r.born.age(now)+time.Millisecond)
				}
				break
			}
			from.pop()
			if s.push(r) {
				e.due = append(e.due, s)
			}
			if n%dealMost == 0 {
				e.breathe()
			}
		}
	}
	return max(wait, time.Millisecond)
}

// breathe lets others have mu for a moment, after waking the links that have something to do.
func (e *Engine) breathe() {
	e.stirDue()
	e.mu.Unlock()
	e.mu.Lock()
}

// stirDue wakes the links that were dealt something. The caller holds mu.
func (e *Engine) stirDue() {
	for _, s := range e.due {
		s.stir()
	}
	e.due = e.due[:0]
}

// expire drops a record that was tried for as long as RetryFor allows.
func (e *Engine) expire(r *Rec, rt *route) {
	if len(rt.eps) == 0 {
		e.lose(r, delivery.ReasonNoEndpoint, nil, delivery.ErrNoEndpoint)
		return
	}
	e.lose(r, delivery.ReasonRetryExpired, r.avoid, nil)
}

// hungry says whether records wait for a link to make room. The caller holds mu.
func (e *Engine) hungry() bool {
	for _, rt := range e.routes {
		if rt.hungry {
			return true
		}
	}
	return false
}

// inflight is how many bytes of records links hold. The caller holds mu.
func (e *Engine) inflight() int {
	n := int(e.ledger.pendingBytes) - e.queue.bytes
	for _, rt := range e.routes {
		n -= rt.back.bytes
	}
	return n
}
