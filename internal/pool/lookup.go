package pool

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/jitter"
	"github.com/wholelog/wholelog/resolve"
)

const (
	defaultRefresh = 60 * time.Second
	minTTL         = 5 * time.Second // a smaller one does not shorten the default refresh any further

	// lookupLimit ends a look-up, whatever the resolver.
	lookupLimit = 2 * time.Second

	// spacing is the shortest time between two look-ups at the default refresh, failed ones and those of Refresh included. It
	// keeps the promise of at most 1 + elapsed/4 s look-ups.
	spacing = 4 * time.Second

	// confirmAfter is when, at the default refresh, an answer in which an address is missing is looked up again. With an explicit
	// one it is the eighth part of it, and a refresh is due after 13/16 to 17/16 of its interval, which is within the promised
	// 20 %: so a changed answer has its full effect, the second look-up included, after 1.2 intervals at most.
	confirmAfter    = 5 * time.Second
	confirmFraction = 8
	refreshCentre   = 15.0 / 16
	refreshSpread   = 2.0 / 15

	// hurryAfter is the shortest time from the last look-up to one that an observed failure asks for.
	hurryAfter = 5 * time.Second
)

var (
	errEmpty = errors.New("the answer holds no address")
	errStray = errors.New("the resolver has not returned from an earlier look-up")
)

// flight is one look-up, shared by everybody who waits for it.
type flight struct {
	done chan struct{}
	err  error // set before done is closed
}

// result is what a Resolver returned.
type result struct {
	resolve.Answer
	err error
}

// Kick starts a look-up in the background if one is due (the first, the next after the refresh interval, a retry) and ends the
// ejections that are over. It returns the time at which Kick should be called again, by the wall clock; the zero time after Close. It
// never waits for a look-up.
func (p *Pool) Kick() (next time.Time) {
	p.mu.Lock()
	defer p.unlock()
	if p.closed {
		return time.Time{}
	}
	now := p.now()
	p.expire(now)
	p.rouse(now)
	// The end of a look-up calls the Changed hook; this is for who has none: by then it must be over.
	next = now.Add(lookupLimit + grace)
	if p.flight == nil {
		// A clock before the last look-up's was set back: it cannot say how old the answer is.
		if now.Before(p.next) && !now.Before(p.begun) {
			next = p.next
		} else {
			p.start(now)
		}
	}
	if !p.due.IsZero() && p.due.Before(next) {
		next = p.due
	}
	return next
}

// Refresh looks up now, or joins a look-up under way, and waits for it, for as long as ctx at most. It returns nil when afterwards an
// endpoint is usable, be it from an earlier answer, and the look-up's error otherwise.
//
// Look-ups keep their distance even if Refresh is called in a loop: within 4 s after the last began, or the refresh interval if that
// is shorter, Refresh is content with a usable endpoint, and waits when there is none.
func (p *Pool) Refresh(ctx context.Context) error {
	for {
		f, wait, err := p.join()
		if err != nil || f == nil && wait == 0 {
			return err
		}
		if f != nil {
			return p.await(ctx, f)
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-p.ctx.Done():
		case <-ctx.Done():
			t.Stop()
			return p.late(ctx)
		}
		t.Stop()
	}
}

// Try is Refresh for callers who must not wait for nothing: while it is too soon for another look-up, and no endpoint is usable, it
// returns why the last one failed.
func (p *Pool) Try(ctx context.Context) error {
	f, wait, err := p.join()
	if f != nil {
		return p.await(ctx, f)
	}
	if wait > 0 {
		return p.Err()
	}
	return err
}

// Err is the error of the last look-up; nil when it succeeded or there was none.
func (p *Pool) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lastErr
}

// await waits for a look-up, for as long as ctx at most.
func (p *Pool) await(ctx context.Context, f *flight) error {
	select {
	case <-f.done:
		if p.Snapshot().usable() {
			return nil
		}
		return f.err
	case <-ctx.Done():
		return p.late(ctx)
	}
}

// join returns the look-up under way or a new one, or else how long it is too soon for one; 0 when none is needed.
func (p *Pool) join() (*flight, time.Duration, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, 0, delivery.ErrClosed
	}
	if p.flight != nil {
		return p.flight, 0, nil
	}
	now := p.now()
	if wait := p.soonest().Sub(now); wait > 0 && !now.Before(p.begun) {
		if p.Snapshot().usable() {
			return nil, 0, nil
		}
		return nil, wait, nil
	}
	p.start(now)
	return p.flight, 0, nil
}

// late is the error of a Refresh that ran out of time. It says why the look-ups before failed, if they did.
func (p *Pool) late(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lastErr != nil {
		return fmt.Errorf("%w; before that: %w", ctx.Err(), p.lastErr)
	}
	return fmt.Errorf("look-up of %s: %w", p.name, ctx.Err())
}

// start begins a look-up. The caller holds mu and has seen that the pool is open and no look-up is under way.
func (p *Pool) start(now time.Time) {
	f := &flight{done: make(chan struct{})}
	p.flight, p.begun, p.hurried = f, now, false
	p.stats.Lookups++
	p.wg.Go(func() {
		defer close(f.done)
		p.land(f, p.call())
	})
}

// call asks the resolver. One that has not returned from an earlier call is not called again before it has, so that there is one such
// goroutine at most.
func (p *Pool) call() (r result) {
	if unreturned(p.stray) {
		return result{err: errStray}
	}
	ctx, cancel := context.WithTimeout(p.ctx, lookupLimit)
	defer cancel()
	r.Answer, p.stray, r.err = ask(ctx, "the resolver", p.c.Options.Resolver.Resolve)
	if p.stray != nil {
		r.err = fmt.Errorf("no answer within %v: %w", lookupLimit, ctx.Err())
	}
	return r
}

// land takes a look-up's result in: the members, the snapshot, and when the next one is due.
func (p *Pool) land(f *flight, r result) {
	p.mu.Lock()
	defer p.unlock()
	p.flight, p.news.changed = nil, true
	if p.closed {
		f.err = delivery.ErrClosed
		return
	}
	now := p.now()
	found, bad := tidy(r.Endpoints, p.c.Local)
	if r.err == nil && len(found) == 0 {
		r.err = errEmpty
	}
	switch {
	case bad != nil && r.err != nil:
		r.err = fmt.Errorf("%w; %w", r.err, bad)
	case bad != nil:
		p.news.tell(delivery.CauseDNS, fmt.Errorf("look-up of %s: %w", p.name, bad))
	}
	p.add(found, now)
	if r.err != nil {
		p.stats.LookupErrors++
		p.next = now.Add(p.c.Backoff.Delay(p.failures))
		if refresh := now.Add(p.interval(r.TTL)); len(found) > 0 && refresh.Before(p.next) {
			p.next = refresh // what was found is as old as any answer by then
		}
		if soonest := p.soonest(); p.next.Before(soonest) {
			p.next = soonest
		}
		p.failures++
		f.err = fmt.Errorf("look-up of %s: %w", p.name, r.err)
		p.news.tell(delivery.CauseDNS, f.err)
	} else {
		missing := p.giveUp(found)
		p.answered, p.failures = now, 0
		p.confirms = missing && !p.confirms
		p.next = now.Add(p.interval(r.TTL))
	}
	p.lastErr = f.err
	p.sort()
	p.publish(now)
	p.beginChecks()
}

// interval is the time from a good answer to the next look-up.
func (p *Pool) interval(ttl time.Duration) time.Duration {
	refresh := p.c.Options.Refresh
	if p.confirms {
		if refresh > 0 {
			return refresh / confirmFraction
		}
		return confirmAfter
	}
	if refresh == 0 {
		refresh = defaultRefresh
		if ttl > 0 {
			refresh = min(refresh, max(ttl, minTTL))
		}
	}
	return jitter.Duration(time.Duration(float64(refresh)*refreshCentre), refreshSpread)
}

// soonest is the earliest time for a look-up after the last, whoever wants it.
func (p *Pool) soonest() time.Time {
	return p.begun.Add(p.atMostRefresh(spacing))
}

// hurry brings the next look-up forward after a failure to send, once. The wobble keeps everybody who lost the same node from asking
// at the same moment. A retry after a failed look-up keeps its back-off.
func (p *Pool) hurry(now time.Time) {
	if p.hurried || p.flight != nil || p.failures > 0 {
		return
	}
	p.hurried = true
	distance := p.atMostRefresh(hurryAfter)
	at := p.begun.Add(distance)
	if at.Before(now) {
		at = now
	}
	if at = at.Add(jitter.Splay(distance / 5)); at.Before(p.next) {
		p.next = at
	}
}

// atMostRefresh is d, or an explicit refresh interval that is shorter.
func (p *Pool) atMostRefresh(d time.Duration) time.Duration {
	if r := p.c.Options.Refresh; r > 0 {
		return min(d, r)
	}
	return d
}
