package ship

import "time"

// pick chooses the link for one record, once, of those in line. The due link is the one with the smallest pass; one that is full but
// progressing is waited for, one that is stuck is passed over. It allocates nothing and never waits: with no link to give, it says
// how long until that may have changed by itself. The caller holds links.
func (rt *route) pick(r *Rec, now stamp) (*slot, time.Duration) {
	if e := rt.eng; e.held > 0 && e.held+r.cost() > e.opts.QueueBytes/2 {
		return nil, never // so that DropOldest always has something to evict; a settle wakes us
	}
	for {
		i := rt.line.due(r.avoid)
		if i < 0 {
			return nil, rt.soonest(now)
		}
		s := rt.line[i]
		if s.ep.trial && s.ep.holds() {
			s.away = true // whatever becomes of its record, others do not wait for it
			rt.line.remove(i)
			continue
		}
		if !s.full(len(r.data)) {
			rt.stride.Take(&s.turn)
			rt.line.sink(i)
			if rt.limits.Blind && s.ep.failures > 0 && s.ep.probed == (stamp{}) {
				s.ep.probed = now
				rt.lineUp(now) // without it
			}
			return s, 0
		}
		if left := patience - s.still(now); left > 0 {
			return nil, left
		}
		s.giveUp()
		rt.line.remove(i)
		if rt.oneForAll {
			return nil, 0 // the next look may choose another address
		}
	}
}

// lineUp finds the slots that records may be dealt to now. One that was out of line comes back at the current virtual time, so that
// it does not get in a burst what it missed.
func (rt *route) lineUp(now stamp) {
	if rt.oneForAll {
		rt.pin(now)
	}
	rt.line = rt.line[:0]
	for _, s := range rt.slots {
		if !s.eligible(now) {
			s.away = true
			continue
		}
		if s.away {
			s.away = false
			rt.stride.Enter(&s.turn)
		}
		if !s.stuck {
			rt.line = append(rt.line, s)
		}
	}
	rt.line.init()
}

// holds says whether records of ep are under way.
func (ep *endpoint) holds() bool {
	for _, s := range ep.slots {
		if s.inbox.n+s.sentRecs > 0 {
			return true
		}
	}
	return false
}

// eligible says whether records may be dealt to s. After a failure the link is opened first, so that records need not wait for it. That
// an idle link was closed is no such failure: of addresses that all did that, the next records would go to the nearest.
func (s *slot) eligible(now stamp) bool {
	if !s.ep.usable || s.route.pinned != nil && s.route.pinned != s.ep || s.shy || s.ep.retired > 0 {
		return false
	}
	if s.ep.failures == 0 {
		return true
	}
	if s.ep.resting(now) {
		return false
	}
	if s.route.limits.Blind {
		return s.ep.proving(now) <= 0
	}
	return s.link != nil && s.untried(now) <= 0 || s.ep.idled
}

// untried is how long s, on trial, must still last before it is dealt a second record.
func (s *slot) untried(now stamp) time.Duration {
	if !s.ep.trial || !s.gave || s.lasted() {
		return 0
	}
	return footing - s.opened.age(now) + time.Millisecond
}

// proving is how long records are still kept from an address that was dealt one after its rest. A datagram is sent in no time and its
// refusal takes a round trip: without the wait a whole backlog would follow the first record to a host that is far away and dead.
func (ep *endpoint) proving(now stamp) time.Duration {
	if ep.probed == (stamp{}) {
		return 0
	}
	return proof - ep.probed.age(now)
}

// soonest is how long until the first address that rests or is on trial may be used again.
func (rt *route) soonest(now stamp) time.Duration {
	wait := never
	for _, s := range rt.slots {
		if left := s.untried(now); left > 0 {
			wait = min(wait, left)
		}
	}
	for _, ep := range rt.eps {
		if ep.usable && ep.resting(now) {
			wait = min(wait, ep.rest-(now.mono-ep.failed.mono)+time.Millisecond)
		} else if left := ep.proving(now); ep.usable && left > 0 {
			wait = min(wait, left)
		}
	}
	return wait
}

// pin keeps one address for the life of the handler, until it leaves, is not usable, hangs, or rests after it failed again and again.
// The next one is that which failed longest ago, or never.
func (rt *route) pin(now stamp) {
	p := rt.pinned
	if p != nil && p.usable && !p.stuck() && (p.failures < fall || !p.resting(now)) {
		return
	}
	var best *slot
	for _, s := range rt.slots {
		if s.ep == p || !s.ep.usable || s.ep.resting(now) || s.stuck {
			continue
		}
		if best == nil || s.ep.failed.mono < best.ep.failed.mono || s.ep.failed.mono == best.ep.failed.mono && s.turn.Tie < best.turn.Tie {
			best = s
		}
	}
	switch {
	case best != nil:
		rt.pinned = best.ep
	case p != nil && !p.usable:
		rt.pinned = nil
	}
}

// stuck says whether no link of ep makes progress.
func (ep *endpoint) stuck() bool {
	for _, s := range ep.slots {
		if !s.stuck && !s.retired {
			return false
		}
	}
	return true
}

// tend looks after what changes by itself: links that were stuck re-enter the rotation, and records do not wait behind a link that
// hangs or a dial that is slow. It returns how long until it must look again.
func (rt *route) tend(now stamp) time.Duration {
	wait := never
	for _, s := range rt.slots {
		if s.stuck && (s.sentRecs == 0 || s.progress.Load() != s.seen) {
			s.stuck = false
			rt.stride.Enter(&s.turn)
		}
		if s.shy && (s.link != nil || !s.busy) {
			s.shy = false
		}
		if s.inbox.n == 0 || s.shy || s.stuck {
			continue
		}
		left := never
		switch {
		case s.link == nil && s.busy:
			left = patience - (now.mono - s.since.mono)
		case s.link != nil && s.sentRecs > 0:
			left = waiting - s.still(now)
		}
		if left > 0 {
			wait = min(wait, left)
		} else if rt.other(s, now) {
			s.shy = s.link == nil
			s.giveUp()
		}
	}
	return wait
}

// summon has addresses that failed dialled again while there are records to send, so that no record need find out whether they are
// back. It returns how long until the next one has rested. To a blind transport a dial says nothing: there the next record does find
// out.
func (rt *route) summon(now stamp) time.Duration {
	if rt.limits.Blind || rt.hand.n == 0 && !rt.dealt {
		return never
	}
	rt.dealt = false
	for _, s := range rt.slots {
		if s.ep.failures == 0 || s.link != nil || s.busy || s.want || s.ep.dialling || !s.ep.usable || s.ep.resting(now) {
			continue
		}
		s.ask()
	}
	return rt.soonest(now)
}

// other says whether a slot of another address could be used now.
func (rt *route) other(s *slot, now stamp) bool {
	for _, o := range rt.slots {
		if o.ep != s.ep && o.eligible(now) && !o.stuck {
			return true
		}
	}
	return false
}
