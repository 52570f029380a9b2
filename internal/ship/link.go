package ship

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/resolve"
)

// run is the goroutine of a slot. Code of the application that links call (Trace, a callback of TLS) may end it with runtime.Goexit, as
// t.FailNow does: then another one goes on.
func (s *slot) run() {
	over := false
	defer func() {
		if !over {
			s.route.eng.wg.Go(s.revive)
		}
	}()
	s.rounds()
	over = true
}

// revive ends whatever the goroutine before it was about.
func (s *slot) revive() {
	e := s.route.eng
	e.links.Lock()
	link, half := s.link, s.ending
	if link == nil {
		link = half
	}
	s.ending = nil
	if s.busy {
		s.busy, s.ep.dialling = false, false
	}
	for b := s.batches; b != nil; b = b.next {
		b.sending = false
	}
	e.links.Unlock()
	s.end(link, errEnded)
	s.run()
}

// rounds does in each the one thing that is due: open a link, send a batch, or end.
func (s *slot) rounds() {
	e := s.route.eng
	linger := time.NewTimer(never)
	defer linger.Stop()
	for {
		e.links.Lock()
		b, wait, leave := s.turnFor()
		link, cut := s.link, s.cut
		e.links.Unlock()
		switch {
		case cut:
			s.end(link, &Fault{delivery.CauseTimeout, errStill})
			continue
		case leave:
			s.part()
			return
		case b != nil:
			s.send(link, b)
			continue
		}
		if wait < 0 {
			s.dial()
			continue
		}
		linger.Reset(wait)
		var gone <-chan struct{}
		if link != nil {
			gone = guardGone(link)
		}
		select {
		case <-s.wake:
		case <-linger.C:
		case <-gone:
			s.end(link, goneWhy(link))
		}
	}
}

// turnFor says what s has to do: send b, dial (wait < 0; the address is marked as being dialled then), end, or wait. The caller holds links.
func (s *slot) turnFor() (b *Batch, wait time.Duration, leave bool) {
	e := s.route.eng
	now := e.clock.stamp()
	switch {
	case s.cut:
		return nil, never, false // the link is closed
	case s.retired && s.inbox.n == 0, e.state == over:
		return nil, 0, true
	case s.inbox.n == 0 && !(s.want && s.link == nil):
		s.want = false
		return nil, never, false
	case s.link != nil && s.maxAge > 0 && s.opened.over(now, s.maxAge) && !s.ep.dialling:
		s.ep.dialling = true
		return nil, -1, false // dial says goodbye to the old one first
	case s.link == nil:
		if s.ep.dialling || s.ep.retired > 0 && !s.retired {
			return nil, never, false // at most one dial in progress per address, and no link beside one that ends; its end wakes us
		}
		s.ep.dialling = true // before another link of the address asks
		return nil, -1, false
	}
	if left := s.lingers(now); left > 0 {
		return nil, left, false
	}
	if b = s.take(now); b == nil {
		return nil, never, false
	}
	return b, 0, false
}

// lingers is how long the batch in the inbox still waits for more. The caller holds links.
func (s *slot) lingers(now stamp) time.Duration {
	l := &s.route.limits
	if l.Linger == 0 || s.route.eng.flushes.Load() > 0 || s.route.eng.state >= closing || s.retired ||
		s.inbox.bytes >= s.route.batch || l.BatchRecords > 0 && s.inbox.n >= l.BatchRecords {
		return 0
	}
	return l.Linger - s.inbox.head.born.age(now)
}

// dial opens a link, after an orderly goodbye to one that has reached its age.
func (s *slot) dial() {
	rt, e := s.route, s.route.eng
	e.links.Lock()
	old := s.link
	s.link, s.ending, s.want, s.cut = nil, old, false, false
	s.busy, s.since = true, e.clock.stamp()
	e.links.Unlock()
	e.signal() // it must know that this takes time
	if old != nil {
		s.goodbye(e.ctx, old)
	}
	link, err := s.connect(e.ctx)

	e.links.Lock()
	s.busy, s.ep.dialling = false, false
	s.linked(link, err)
	if err != nil {
		rt.fail(s.ep, CauseOf(err), err, 0)
		s.reclaim()
	}
	for _, o := range s.ep.slots {
		if o != s {
			o.signal() // it may have waited for this dial
		}
	}
	e.announce()
	e.links.Unlock()
	e.signal()
	if err != nil && e.ctx.Err() == nil {
		rt.pool.Observe(s.ep.addr, false, CauseOf(err))
		e.hooks.trouble(CauseOf(err), fmt.Errorf("connect to %s: %w", place(s.ep.addr), err))
	}
}

// connect opens a link within DialTimeout.
func (s *slot) connect(ctx context.Context) (Link, error) {
	ctx, cancel := context.WithTimeout(ctx, s.route.eng.opts.DialTimeout)
	defer cancel()
	return guardDial(ctx, s.route.transport, s.ep.addr, s.meter())
}

// linked takes note of how a dial ended. The caller holds links.
func (s *slot) linked(link Link, err error) {
	if err != nil {
		s.lost = true
		return
	}
	s.link, s.opened, s.maxAge, s.cut = link, s.route.eng.clock.stamp(), 0, false
	if limit := s.route.limits.MaxAge; limit > 0 {
		s.maxAge = aged(limit)
	}
	if s.lost {
		s.route.eng.ledger.reconnects.Add(1)
	}
	s.lost, s.gave, s.stillAt = false, false, stamp{}
}

// send hands b to the link, and ends the link if that fails. Links have deadlines of their own; should one hang in spite of them, it
// is closed when nothing moved for SendTimeout. So is one that returned from Send and never says what became of the records.
func (s *slot) send(link Link, b *Batch) {
	e := s.route.eng
	if s.watch == nil {
		s.watch = time.AfterFunc(never, s.checkProgress)
	}
	s.watch.Reset(e.opts.SendTimeout)
	err := guardSend(e.ctx, link, b)
	e.links.Lock()
	b.sending = false
	s.release(b)
	if s.sentRecs == 0 {
		s.watch.Stop()
	}
	if s.cut { // the link is closed, whatever Send says
		err = &Fault{delivery.CauseTimeout, errStill}
	}
	nudge := err == nil && e.flushes.Load() > 0
	e.links.Unlock()
	if err != nil {
		s.end(link, err)
		return
	}
	if nudge {
		guardNudge(link)
	}
}

// checkProgress runs SendTimeout after the last Send began. A link that moves gets as long again.
func (s *slot) checkProgress() {
	e := s.route.eng
	e.links.Lock()
	link, now := s.link, e.clock.stamp()
	if link == nil || s.sentRecs == 0 && !s.inSend() {
		e.links.Unlock()
		return
	}
	if p := s.progress.Load(); p != s.watched {
		s.watched, s.lookedAt = p, now
	}
	if left := e.opts.SendTimeout - (now.mono - s.lookedAt.mono); left > 0 {
		s.watch.Reset(left)
		e.links.Unlock()
		return
	}
	s.cut = true
	e.links.Unlock()
	guardClose(link)
	s.signal() // no Send may be under way that ends with it
}

// inSend says whether the link has a batch whose Send has not returned. The caller holds links.
func (s *slot) inSend() bool {
	for b := s.batches; b != nil; b = b.next {
		if b.sending {
			return true
		}
	}
	return false
}

// end closes a link that broke and takes back all it had not settled: perhaps taken, so each counts a try. What was dealt but not
// sent counts none.
func (s *slot) end(link Link, err error) {
	rt, e := s.route, s.route.eng
	if link != nil {
		guardClose(link)
	}
	e.links.Lock()
	s.link, s.lost, s.cut = nil, true, false
	stopped, lasted := e.state == over, false
	if !stopped {
		lasted = s.broke(CauseOf(err), err, 0)
	}
	s.takeBack(err)
	s.reclaim()
	e.announce()
	e.links.Unlock()
	e.signal()
	if lasted {
		rt.pool.Observe(s.ep.addr, true, "") // it may have been too young to be believed when it delivered
	}
	if !stopped {
		rt.pool.Observe(s.ep.addr, false, CauseOf(err))
		e.hooks.trouble(CauseOf(err), fmt.Errorf("link to %s: %w", place(s.ep.addr), err))
	}
}

// takeBack resends what the link had not settled. The caller holds links.
func (s *slot) takeBack(err error) {
	e := s.route.eng
	e.mu.Lock()
	defer e.mu.Unlock()
	for b := s.batches; b != nil; b = b.next {
		b.dead = true
		together := b.open
		for _, r := range b.recs {
			if r.batch == b {
				s.unhold(b, r)
				s.resend(r, err, together)
			}
		}
	}
	s.batches, s.blocked = nil, false
}

// goodbye waits for the outcomes of an old link and closes it. What it does not settle is taken back.
func (s *slot) goodbye(ctx context.Context, link Link) {
	e := s.route.eng
	ctx, cancel := context.WithTimeout(ctx, e.opts.SendTimeout)
	unhang := context.AfterFunc(ctx, func() { guardClose(link) })
	err := guardDrain(ctx, link)
	unhang()
	cancel()
	guardClose(link)
	e.links.Lock()
	s.ending = nil
	s.takeBack(err)
	e.links.Unlock()
	e.signal()
}

// part ends the slot: its address left, or the engine closes.
func (s *slot) part() {
	e := s.route.eng
	e.links.Lock()
	link, ctx := s.link, e.ctx
	s.link, s.ending, s.busy = nil, link, true
	if e.state == over {
		ctx = e.parting
	}
	e.links.Unlock()
	if link != nil {
		s.goodbye(ctx, link)
	}
	e.links.Lock()
	s.running, s.busy = false, false
	s.ended()
	e.links.Unlock()
}

// meter makes the Meter of the link that is about to be opened.
func (s *slot) meter() *Meter {
	e, ep := s.route.eng, s.ep
	r := Recorder{
		Wire: func(n int) {
			e.ledger.bytes.Add(uint64(n))
			ep.bytes.Add(uint64(n))
			s.progress.Add(1)
		},
		Truncated:   e.Truncated,
		Unconfirmed: func(n int) { e.ledger.unconfirmed.Add(uint64(n)) },
		Trouble: func(cause delivery.Cause, err error) {
			e.links.Lock()
			s.route.note(ep, cause, err)
			e.links.Unlock()
			e.hooks.trouble(cause, fmt.Errorf("%s: %w", place(ep.addr), err))
		},
	}
	if trace := s.route.pool.Options().Trace; trace != nil {
		r.Chose = func(local netip.AddrPort, records, bytes int, why string) {
			defer func() {
				if p := recover(); p != nil {
					e.hooks.trouble("hook", fmt.Errorf("the Trace hook panicked: %v", p))
				}
			}()
			trace(resolve.Choice{Time: time.Now(), Addr: ep.addr, Local: local, Records: records, Bytes: bytes, Why: why})
		}
	}
	return NewMeter(r)
}
