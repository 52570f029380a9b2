package ship

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/wholelog/wholelog/delivery"
)

const (
	// leastTime is what must be left of a caller's time for a try to say something about an address.
	leastTime = 5 * time.Millisecond
	// leastShare is the least of it that a try gets, however many addresses there are.
	leastShare = 50 * time.Millisecond
)

// errTurn is the end of a wait for one's turn at a link.
var errTurn = errors.New("the link was in use")

// trySend is sendSync within this address's share of the time that ctx has left, so that one that hangs does not take it all.
func (s *slot) trySend(ctx context.Context, left int, r *Rec) (o Outcome, stale bool) {
	if end, ok := ctx.Deadline(); ok && left > 1 {
		share, cancel := context.WithTimeout(ctx, max(time.Until(end)/time.Duration(left), leastShare))
		defer cancel()
		ctx = share
	}
	return s.sendSync(ctx, r)
}

// sendSync sends r through s, which it has for itself meanwhile, and returns what became of it. stale is a link that had been open and
// broke: what its peer closed while nobody looked says nothing of a new one.
func (s *slot) sendSync(ctx context.Context, r *Rec) (o Outcome, stale bool) {
	rt, e := s.route, s.route.eng
	link, was, err := s.linkSync(ctx)
	if errors.Is(err, errTurn) {
		return Outcome{Do: Requeue}, false // others were using the link: no evidence against the address
	}
	if err != nil {
		o := Outcome{Do: Requeue, Cause: CauseOf(err), Err: err}
		e.links.Lock()
		rt.fail(s.ep, o.Cause, o.Err, 0)
		e.links.Unlock()
		e.observe(s, o, false)
		return o, false
	}
	b := &Batch{recs: []*Rec{r}, slot: s, open: 1, answered: make(chan struct{})}
	over := false
	defer func() {
		if !over { // code of the application ended the goroutine
			guardClose(link)
			e.links.Lock()
			b.dead, s.link, s.lost = true, nil, true
			e.links.Unlock()
		}
		s.yield()
	}()
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
	o = Outcome{Do: Resend, Err: err}
	if b.answer != nil {
		o = *b.answer
		var f *Fault
		if o.Cause == "" && o.Err == nil && o.Do != Delivered && errors.As(err, &f) {
			o.Cause, o.Err = f.Cause, err // the link ended, and says why only once
		}
	}
	s.ep.picked += r.counts()
	proof := false
	if cause, failed := o.failed(); failed && err != nil {
		s.broke(cause, o.Err, o.After)
	} else if failed {
		rt.fail(s.ep, cause, o.Err, o.After)
	}
	switch o.Do {
	case Delivered:
		s.ep.delivered += r.counts()
		e.latest = time.Now()
		proof = s.served()
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
	over = true
	e.links.Unlock()
	e.observe(s, o, proof)
	return o, was && err != nil && ctx.Err() == nil
}

// linkSync waits for its turn at s and returns the link, which was open or is opened now. Without an error the turn is the caller's.
func (s *slot) linkSync(ctx context.Context) (link Link, was bool, err error) {
	e := s.route.eng
	select {
	case s.turnstile <- struct{}{}:
	case <-ctx.Done():
		return nil, false, errTurn
	}
	defer func() {
		if err != nil {
			s.yield()
		}
	}()
	e.links.Lock()
	old := s.link
	if old == nil || isGone(old) || s.maxAge > 0 && s.opened.over(e.clock.stamp(), s.maxAge) {
		s.link = nil
	}
	link = s.link
	e.links.Unlock()
	if link != nil && late(ctx) {
		return nil, false, errTurn
	}
	if link != nil {
		return link, true, nil
	}
	if old != nil {
		parting, cancel := brief(ctx)
		s.goodbye(parting, old)
		cancel()
	}
	link, err = s.dialSync(ctx)
	return link, false, err
}

// dialSync opens the link of s, when no other link of its address is being opened.
func (s *slot) dialSync(ctx context.Context) (link Link, err error) {
	e := s.route.eng
	select {
	case s.ep.dials <- struct{}{}:
		defer func() { <-s.ep.dials }()
	case <-ctx.Done():
	}
	if late(ctx) {
		return nil, errTurn
	}
	link, err = s.connect(ctx)
	e.links.Lock()
	over := e.state == over
	if !over {
		s.linked(link, err)
	}
	e.links.Unlock()
	if over && err == nil { // Close has not waited for us
		guardClose(link)
		return nil, delivery.ErrClosed
	}
	return link, err
}

// late says whether ctx leaves so little time that a try would say nothing about an address.
func late(ctx context.Context) bool {
	end, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && time.Until(end) < leastTime
}

// brief is a quarter of the time that ctx has left: for goodbyes, which must not cost a record its try.
func brief(ctx context.Context) (context.Context, context.CancelFunc) {
	if end, ok := ctx.Deadline(); ok {
		return context.WithTimeout(ctx, time.Until(end)/4)
	}
	return context.WithCancel(ctx)
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
func (e *Engine) readySync(caller context.Context) error {
	ctx, cancel := context.WithCancel(caller)
	defer cancel()
	defer context.AfterFunc(e.ctx, cancel)() // Close ends it
	tried := make(map[netip.AddrPort]bool)
	err := delivery.ErrNoEndpoint
	for s, _ := e.dueSync(e.routes[0], tried); s != nil; s, _ = e.dueSync(e.routes[0], tried) {
		if _, _, err = s.linkSync(ctx); err == nil {
			s.yield()
			return nil
		}
		err = fmt.Errorf("connect to %s: %w", place(s.ep.addr), err)
	}
	switch {
	case e.ctx.Err() != nil:
		return delivery.ErrClosed
	case caller.Err() != nil:
		return fmt.Errorf("%s: %w", e.name, caller.Err())
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
	if len(leaving) == 0 {
		return
	}
	if !closing {
		var cancel context.CancelFunc
		ctx, cancel = brief(ctx)
		defer cancel()
	}
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
