package ship

import (
	"fmt"
	"time"

	"github.com/wholelog/wholelog/delivery"
)

const (
	tick     = 2 * time.Millisecond   // records that did not wake the dispatcher wait this long at most
	tickFor  = 100 * time.Millisecond // the tick runs on this long after the last record
	dealMost = 64                     // records dealt before the links are let go for a moment
	never    = time.Hour              // nothing changes by itself
)

// dispatch is the one goroutine that deals records to links. It does no I/O and waits only for something to do.
func (e *Engine) dispatch() {
	timer := time.NewTimer(never)
	defer timer.Stop()
	var recent arrivals
	for {
		refresh := e.kick()
		now := e.clock.stamp()
		wait, hungry := e.deal(now)

		e.mu.Lock()
		if e.state == over {
			e.mu.Unlock()
			return
		}
		e.ticking = recent.fresh(e.arena.seq, now)
		if e.ticking {
			wait = min(wait, tick)
		} else if e.ledger.pending == 0 {
			e.arena.rest()
		}
		wait = min(wait, e.summarise(now, time.Time{}))
		e.hungry = hungry
		e.parked = hungry || e.queue.n == 0 || e.ticking && !e.pressing()
		parked := e.parked
		e.mu.Unlock()
		if !parked {
			continue // much came while the last ones were dealt; a little goes with the next tick, in one write
		}

		timer.Reset(min(wait, refresh))
		select {
		case <-e.wake:
		case <-timer.C:
		}
	}
}

// arrivals remembers when there were new records.
type arrivals struct {
	seq uint64
	at  time.Duration
}

// fresh says whether a record came within tickFor.
func (n *arrivals) fresh(seq uint64, now stamp) bool {
	if seq != n.seq {
		n.seq, n.at = seq, now.mono
	}
	return seq > 0 && now.mono-n.at < tickFor
}

// kick lets the pools start the look-ups that are due, and returns how long until the next one is.
func (e *Engine) kick() time.Duration {
	wait := never
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

// deal gives every record that can leave to a link, in order, a handful at most: look-ups may be due afterwards. It returns how long
// until something may have changed by itself, and whether records of the main route wait for a link.
func (e *Engine) deal(now stamp) (wait time.Duration, hungry bool) {
	e.links.Lock()
	defer e.links.Unlock()
	wait = never
	for _, rt := range e.routes {
		rt.follow()
		wait = min(wait, rt.tend(now))
	}
	e.take(now)
	for _, rt := range e.routes {
		wait = min(wait, rt.play(now), rt.summon(now))
	}
	return max(wait, time.Millisecond), e.routes[0].hand.n > 0 || e.enough
}

// take fills the hands of the routes. It is the one place where the dispatcher meets those who log, so it does all that needs mu at once.
func (e *Engine) take(now stamp) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.enter()
	if e.roomy != nil && e.arena.worthy() && e.compact() {
		e.freed()
	}
	e.parked, e.urgent, e.born = false, false, now
	for _, rt := range e.routes {
		var at *Rec
		for r := rt.back.pop(); r != nil; r = rt.back.pop() {
			at = rt.hand.insert(at, r)
		}
		rt.last = nil
		if !rt.fallback {
			e.draw(rt)
		}
	}
}

// draw fills the hand of the main route from the queue, unless links and hand have half of the budget between them: the other half
// stays where DropOldest finds it. The caller holds links and mu.
func (e *Engine) draw(rt *route) {
	e.enough = false
	if e.queue.n == 0 {
		return
	}
	most := min(e.handful, e.opts.QueueBytes/2-e.held)
	if e.held+rt.hand.n > 0 && rt.hand.cost()+e.queue.head.cost() > most {
		e.enough = rt.hand.n == 0
		return
	}
	rt.hand.draw(&e.queue, most)
}

// play deals the records in hand until one cannot be dealt, and returns how long until that may change by itself. The links are let
// go now and then, so that they may settle.
func (rt *route) play(now stamp) time.Duration {
	e := rt.eng
	defer e.stirDue()
	rt.lineUp(now)
	shaping, limit := e.shaper.on(), e.opts.RetryFor
	for n := 1; rt.hand.n > 0; n++ {
		r := rt.hand.head
		if limit > 0 && r.born.over(now, limit) {
			rt.hand.pop()
			e.expire(r, rt)
			continue
		}
		wait := time.Duration(0)
		if shaping && r.flags&shaped == 0 {
			wait = e.shaper.wait(now)
		}
		var s *slot
		if wait <= 0 {
			s, wait = rt.pick(r, now)
		}
		if s == nil {
			if limit > 0 {
				wait = min(wait, limit-r.born.age(now)+time.Millisecond)
			}
			return wait
		}
		rt.hand.pop()
		rt.dealt = true
		if shaping && r.flags&shaped == 0 {
			r.flags |= shaped
			e.shaper.take(now, len(r.data))
		}
		if s.push(r) {
			e.due = append(e.due, s)
		}
		if n%dealMost == 0 {
			e.stirDue()
			e.links.Unlock()
			e.links.Lock()
			rt.lineUp(now)
		}
	}
	return never
}

// stirDue wakes the links that were dealt something. The caller holds links.
func (e *Engine) stirDue() {
	for _, s := range e.due {
		s.stir()
	}
	e.due = e.due[:0]
}

// expire drops a record that was tried for as long as RetryFor allows. The caller holds links.
func (e *Engine) expire(r *Rec, rt *route) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(rt.eps) == 0 {
		err := delivery.ErrNoEndpoint
		if why := rt.pool.Err(); why != nil {
			err = fmt.Errorf("%w: %w", err, why)
		}
		e.lose(r, delivery.ReasonNoEndpoint, nil, err)
		return
	}
	e.lose(r, delivery.ReasonRetryExpired, r.avoid, e.why())
}

// anyHungry says whether records wait for a link. The caller holds links.
func (e *Engine) anyHungry() bool {
	if e.enough {
		return true
	}
	for _, rt := range e.routes {
		if rt.hand.n > 0 {
			return true
		}
	}
	return false
}
