package ship

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/wholelog/wholelog/delivery"
)

// putSync sends one record on the caller's goroutine: it has the due link for itself, sends a batch of one and waits for its
// outcome, at each usable address once, and once more by a new link where the open one was dead. There is no dispatcher and no queue, and
// no timer that outlives the call.
func (e *Engine) putSync(level slog.Level, data []byte) (err error) {
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
	d := delivery.Drop{Reason: delivery.ReasonPanicked, Err: errEnded} // if code of the application ends the goroutine now
	defer func() { err = e.concludeSync(r, d, inHook, until) }()
	if late := e.paceSync(ctx, r); late.Reason != "" {
		d = late
	} else {
		d = e.trySync(ctx, e.routes[0], r)
	}
	if d.Reason != "" && e.ctx.Err() != nil {
		d.Reason, d.Err = delivery.ReasonClosed, delivery.ErrClosed
	}
	return nil
}

// concludeSync ends r as d says, and returns that as the error of Handle.
func (e *Engine) concludeSync(r *Rec, d delivery.Drop, inHook bool, until time.Time) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if d.Reason != delivery.ReasonSyncFailed && d.Reason != delivery.ReasonNoEndpoint {
		defer e.summarise(e.clock.stamp(), until) // the way is good, and some of this call's time is left
	}
	if d.Reason == "" {
		e.finishOne(r, "")
		return nil
	}
	d.Records, d.Bytes, d.Level = 1, len(r.data), r.level
	if !inHook {
		told := d
		told.Data = r.data
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
	tried, again := make(map[netip.AddrPort]bool), make(map[netip.AddrPort]bool)
	for s, left := e.dueSync(rt, tried); s != nil; s, left = e.dueSync(rt, tried) {
		e.closeLeaving(ctx)
		o, stale := s.trySend(ctx, left, r)
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
		if stale && !again[s.ep.addr] {
			again[s.ep.addr] = true
			delete(tried, s.ep.addr) // it rests now, so the others go first
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
		case len(s.turnstile) > 0, s.link == nil && len(s.ep.dials) > 0:
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
