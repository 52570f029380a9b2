package ship

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"github.com/wholelog/wholelog/delivery"
)

// leastTime is what must be left of a caller's time for a try to say something about an address.
const leastTime = 5 * time.Millisecond

// errTurn is the end of a wait for one's turn at a link.
var errTurn = errors.New("the link was in use")

// putSync sends one record on the caller's goroutine: it has the due link for itself, sends a batch of one and waits for its
// outcome, at each usable address once. There is no dispatcher and no queue, and no timer that outlives the call.
func (e *Engine) putSync(level slog.Level, data []byte) error {
	until := time.Now().Add(e.opts.SyncTimeout)
	defer e.hooks.flushSync()
	inHook := e.hooks.inside()
	e.mu.Lock()
	if e.state >= closing {
		e.mu.Unlock()
		return delivery.ErrClosed
	}
	if len(data) > e.max {
		return e.reject(level, data, delivery.ReasonTooLarge, delivery.ErrTooLarge, inHook)
	}
	e.arena.seq++
	r := &Rec{data: data, seq: e.arena.seq, level: level}
	if inHook {
		r.flags = quiet
	}
	e.admit(r)
	e.wg.Add(1) // Close waits for what is under way
	defer e.wg.Done()
	e.mu.Unlock()

	ctx, cancel := context.WithDeadline(e.ctx, until)
	defer cancel()
	d := e.paceSync(ctx, r)
	if d.Reason == "" {
		d = e.trySync(ctx, e.routes[0], r)
	}
	if d.Reason != "" && e.ctx.Err() != nil {
		d.Reason, d.Err = delivery.ReasonClosed, delivery.ErrClosed
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	defer func() {
		if d.Reason != delivery.ReasonSyncFailed && d.Reason != delivery.ReasonNoEndpoint {
			e.summarise(e.clock.stamp(), until) // the way is good, and some of this call's time is left
		}
	}()
	if d.Reason == "" {
		e.finishOne(r, "")
		return nil
	}
	d.Records, d.Bytes, d.Level = 1, len(data), level
	if !inHook {
		told := d
		told.Data = data
		e.hooks.drop(&told)
	}
	e.finishOne(r, d.Reason)
	return d
}

// paceSync waits until the rates let r leave.
func (e *Engine) paceSync(ctx context.Context, r *Rec) (d delivery.Drop) {
	for {
		now := e.clock.stamp()
		e.links.Lock()
		wait := e.shaper.wait(now)
		if wait <= 0 {
			e.shaper.take(now, len(r.data))
		}
		e.links.Unlock()
		if wait <= 0 {
			return d
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			d.Reason, d.Err = delivery.ReasonSyncFailed, ctx.Err()
			return d
		}
	}
}

// trySync brings r along rt. What it returns has no Reason when that worked; else Reason, Addr and Err say why it did not.
func (e *Engine) trySync(ctx context.Context, rt *route, r *Rec) delivery.Drop {
	rt.pool.Kick()
	if len(rt.pool.Snapshot().Endpoints) == 0 {
		if err := rt.pool.Try(ctx); err != nil {
			return delivery.Drop{Reason: delivery.ReasonNoEndpoint, Err: fmt.Errorf("%w: %w", delivery.ErrNoEndpoint, err)}
		}
	}
	d := delivery.Drop{Reason: delivery.ReasonNoEndpoint, Err: delivery.ErrNoEndpoint}
	tried := make(map[netip.AddrPort]bool)
	for s, left := e.dueSync(rt, tried); s != nil; s, left = e.dueSync(rt, tried) {
		e.closeLeaving(ctx)
		o := s.trySend(ctx, left, r)
		d.Addr, d.Err = s.ep.addr, o.Err
		switch o.Do {
		case Delivered:
			d.Reason = ""
			return d
		case Drop, Halve: // a batch of one names its culprit
			d.Reason = reasonOr(o.Reason)
			return d
		case Divert:
			if rt.fallback || len(e.routes) < 2 {
				d.Reason, d.Err = delivery.ReasonTooLarge, delivery.ErrTooLarge
				return d
			}
			e.mu.Lock()
			e.ledger.diverted += r.counts()
			e.mu.Unlock()
			return e.trySync(ctx, e.routes[1], r)
		}
		d.Reason = delivery.ReasonSyncFailed
		if err := ctx.Err(); err != nil {
			if d.Err == nil {
				d.Err = err
			}
			return d
		}
	}
	return d
}

// dueSync returns the due link among the addresses not tried yet, marks its address as tried, and says how many are left with it. The
// pinned address goes first, then those whose link nobody is using; one that rests after a failure goes last, pinned or not.
func (e *Engine) dueSync(rt *route, tried map[netip.AddrPort]bool) (due *slot, left int) {
	e.links.Lock()
	defer e.links.Unlock()
	rt.follow()
	now := e.clock.stamp()
	if rt.oneForAll {
		rt.pin(now)
	}
	best := 0
	for _, s := range rt.slots {
		if !s.ep.usable || tried[s.ep.addr] {
			continue
		}
		left++
		rank := 1
		switch {
		case s.ep.resting(now):
			rank = 3
		case s.ep == rt.pinned:
			rank = 0
		case len(s.turnstile) > 0:
			rank = 2
		}
		if due == nil || rank < best || rank == best && s.turn.Before(&due.turn) {
			due, best = s, rank
		}
	}
	if due != nil {
		tried[due.ep.addr] = true
		rt.stride.Take(&due.turn)
	}
	return due, left
}

// trySend is sendSync within this address's share of the time that ctx has left, so that one that hangs does not take it all.
func (s *slot) trySend(ctx context.Context, left int, r *Rec) Outcome {
	if end, ok := ctx.Deadline(); ok && left > 1 {
		share, cancel := context.WithTimeout(ctx, time.Until(end)/time.Duration(left))
		defer cancel()
		ctx = share
	}
	return s.sendSync(ctx, r)
}

// sendSync sends r through s, which it has for itself meanwhile, and returns what became of it.
func (s *slot) sendSync(ctx context.Context, r *Rec) Outcome {
	rt, e := s.route, s.route.eng
	link, err := s.linkSync(ctx)
	if errors.Is(err, errTurn) {
		return Outcome{Do: Requeue} // others were using the link: no evidence against the address
	}
	if err != nil {
		o := Outcome{Do: Requeue, Cause: CauseOf(err), Err: err}
		e.links.Lock()
		rt.fail(s.ep, o.Cause, o.Err, 0)
		e.links.Unlock()
		e.observe(s, o)
		return o
	}
	defer s.yield()
	b := &Batch{recs: []*Rec{r}, slot: s, open: 1, answered: make(chan struct{})}
	unhang := context.AfterFunc(ctx, func() { guardClose(link) }) // should it not look at the time
	err = guardSend(ctx, link, b)
	if !unhang() && err == nil {
		err = ctx.Err()
	}
	if err == nil {
		guardNudge(link) // whoever logs waits: ask for the outcome now
		select {
		case <-b.answered:
		case <-guardGone(link):
			err = goneWhy(link)
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if err != nil {
		guardClose(link)
	}
	e.links.Lock()
	b.dead = true
	o := Outcome{Do: Resend, Err: err}
	if b.answer != nil {
		o = *b.answer
		var f *Fault
		if o.Cause == "" && o.Err == nil && o.Do != Delivered && errors.As(err, &f) {
			o.Cause, o.Err = f.Cause, err // the link ended, and says why only once
		}
	}
	s.ep.picked += r.counts()
	if cause, failed := o.failed(); failed {
		rt.fail(s.ep, cause, o.Err, o.After)
	}
	switch o.Do {
	case Delivered:
		s.ep.delivered += r.counts()
		e.latest = time.Now()
		s.served()
	case Requeue, Divert, Halve, Drop:
	default:
		s.ep.resent += r.counts()
		e.mu.Lock()
		e.ledger.resent += r.counts()
		e.mu.Unlock()
	}
	if err != nil {
		s.link, s.lost = nil, true
	}
	e.links.Unlock()
	e.observe(s, o)
	return o
}

// linkSync waits for its turn at s and returns the open link, or opens one. Without an error the turn is the caller's.
func (s *slot) linkSync(ctx context.Context) (link Link, err error) {
	e := s.route.eng
	select {
	case s.turnstile <- struct{}{}:
	case <-ctx.Done():
		return nil, errTurn
	}
	defer func() {
		if err != nil {
			s.yield()
		}
	}()
	if end, ok := ctx.Deadline(); ok && time.Until(end) < leastTime {
		return nil, errTurn
	}
	e.links.Lock()
	old := s.link
	if old == nil || isGone(old) || s.maxAge > 0 && s.opened.over(e.clock.stamp(), s.maxAge) {
		s.link = nil
	}
	link = s.link
	e.links.Unlock()
	if link != nil {
		return link, nil
	}
	if old != nil {
		s.goodbye(ctx, old)
	}
	link, err = s.connect(ctx)
	e.links.Lock()
	s.linked(link, err)
	e.links.Unlock()
	return link, err
}

// yield ends the caller's turn at s. A link whose address left meanwhile is for the next caller to close.
func (s *slot) yield() {
	e := s.route.eng
	e.links.Lock()
	if s.retired && s.link != nil && !slices.Contains(e.leaving, s) {
		e.leaving = append(e.leaving, s)
	}
	e.links.Unlock()
	<-s.turnstile
}

func isGone(l Link) bool {
	select {
	case <-guardGone(l):
		return true
	default:
		return false
	}
}

// readySync opens one link on the caller's goroutine.
func (e *Engine) readySync(ctx context.Context) error {
	tried := make(map[netip.AddrPort]bool)
	err := delivery.ErrNoEndpoint
	for s, _ := e.dueSync(e.routes[0], tried); s != nil; s, _ = e.dueSync(e.routes[0], tried) {
		if _, err = s.linkSync(ctx); err == nil {
			s.yield()
			return nil
		}
		err = fmt.Errorf("connect to %s: %w", place(s.ep.addr), err)
	}
	return fmt.Errorf("%s: no address can be reached: %w", e.name, err)
}

// closeLeaving says goodbye to the links of addresses that left: in Sync mode no goroutine of their own does. A link that somebody is
// using is left to the next caller; Close waits for it, and ends it when ctx does.
func (e *Engine) closeLeaving(ctx context.Context) {
	e.links.Lock()
	leaving, closing := e.leaving, e.state == over
	e.leaving = nil
	e.links.Unlock()
	for _, s := range leaving {
		if s.turnToLeave(ctx, closing) {
			e.links.Lock()
			link := s.link
			s.link, s.ending = nil, link
			e.links.Unlock()
			if link != nil {
				s.goodbye(ctx, link)
			}
			e.links.Lock()
			s.ended()
			e.links.Unlock()
			<-s.turnstile
			continue
		}
		e.links.Lock()
		link := s.link
		if !closing && !slices.Contains(e.leaving, s) {
			e.leaving = append(e.leaving, s)
		}
		e.links.Unlock()
		if closing && link != nil {
			guardClose(link)
		}
	}
}

// turnToLeave takes the turn at s, if it is free or if wait is set and it becomes free before ctx ends.
func (s *slot) turnToLeave(ctx context.Context, wait bool) bool {
	select {
	case s.turnstile <- struct{}{}:
		return true
	default:
	}
	if !wait {
		return false
	}
	select {
	case s.turnstile <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}
