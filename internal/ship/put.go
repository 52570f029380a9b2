package ship

import (
	"log/slog"
	"time"

	"github.com/wholelog/wholelog/delivery"
)

// Put takes one encoded record; data is copied. It waits only with the Block policy when the budget is full, and in Sync mode,
// where it returns what became of the record. The error is delivery.ErrClosed after Close (then the record counts nowhere), or a
// delivery.Drop that wraps the reason.
func (e *Engine) Put(level slog.Level, data []byte) error {
	if e.opts.Sync {
		return e.putSync(level, data)
	}
	inHook := e.hooks.inside()
	lock(&e.mu)
	if e.state >= closing {
		e.mu.Unlock()
		return delivery.ErrClosed
	}
	if len(data) > e.max {
		return e.reject(level, data, delivery.ReasonTooLarge, delivery.ErrTooLarge, inHook)
	}
	var r *Rec
	if !e.refuse || level >= slog.LevelWarn { // what is reserved is for those, also now
		r = e.arena.add(level, data)
	}
	if r == nil {
		var reason delivery.Reason
		if r, reason = e.makeRoom(level, data, inHook); r == nil {
			err := delivery.ErrQueueFull
			if reason == delivery.ReasonClosed {
				err = delivery.ErrClosed
			}
			return e.reject(level, data, reason, err, inHook)
		}
	}
	if inHook {
		r.flags |= quiet
	}
	wake := e.enqueue(r)
	e.mu.Unlock()
	if wake {
		e.signal()
	}
	return nil
}

// enqueue appends an admitted record to the queue and says whether the dispatcher must be woken for it: waking costs the caller
// more than everything else here, so the first record after idleness, a good fill and urgent levels do it, and a short tick takes the
// others along. The caller holds mu.
func (e *Engine) enqueue(r *Rec) (wake bool) {
	e.start()
	if e.parked && !e.ticking {
		e.born = e.clock.stamp() // else the dispatcher's last look is recent enough
	}
	r.born = e.born
	e.admit(r)
	e.queue.push(r)
	e.urgent = e.urgent || r.level >= slog.LevelError
	if !e.parked || e.ticking && (e.hungry || !e.pressing()) {
		return false
	}
	e.parked = false // one wake is enough
	return true
}

// pressing says whether what is in the queue cannot wait for the next tick. The caller holds mu.
func (e *Engine) pressing() bool { return e.urgent || e.queue.cost() >= e.fill }

// reject counts a record that never entered the queue, unlocks mu and returns the loss as an error.
func (e *Engine) reject(level slog.Level, data []byte, reason delivery.Reason, err error, inHook bool) error {
	e.turnAway(&delivery.Drop{Records: 1, Bytes: len(data), Level: level, Reason: reason, Err: err, Data: data}, inHook)
	e.mu.Unlock()
	return e.returned(level, len(data), reason, err)
}

// turnAway counts a record in and, at once, out. The caller holds mu.
func (e *Engine) turnAway(d *delivery.Drop, inHook bool) {
	r := &e.turned // has no bytes: they were never held
	r.flags = 0
	e.admit(r)
	if !inHook {
		e.hooks.drop(d)
	}
	e.finishOne(r, d.Reason)
}

// Refuse counts a record that could not be encoded (n bytes of it, as far as that is known) as accepted and dropped, and returns
// the loss as Put would.
func (e *Engine) Refuse(level slog.Level, n int, reason delivery.Reason, err error) error {
	inHook := e.hooks.inside()
	e.mu.Lock()
	if e.state >= closing {
		e.mu.Unlock()
		return delivery.ErrClosed
	}
	e.turnAway(&delivery.Drop{Records: 1, Bytes: n, Level: level, Reason: reason, Err: err}, inHook)
	e.mu.Unlock()
	return e.returned(level, n, reason, err)
}

// makeRoom does what the overflow policy says when the budget is full. The caller holds mu, which is released while waiting. It
// returns the admitted record, or why there is none.
func (e *Engine) makeRoom(level slog.Level, data []byte, inHook bool) (*Rec, delivery.Reason) {
	var r *Rec
	if e.arena.worthy() && (!e.refuse || level >= slog.LevelWarn) {
		r = e.dig(level, data, false)
	}
	if r == nil && e.opts.Overflow == delivery.DropOldest && e.state < closing && !inHook {
		if r = e.evictFor(level, data); r == nil {
			r = e.dig(level, data, true)
		}
	}
	switch {
	case r != nil:
		return r, ""
	case e.state >= closing:
		return nil, delivery.ReasonClosed
	case e.opts.Overflow == delivery.Block && !e.refuse && !inHook:
		return e.await(level, data)
	}
	return nil, delivery.ReasonQueueFull
}

// evictFor evicts what is oldest in the queue until a record fits. It gives up after as much as a segment holds: so much memory is free
// then, in pieces between records that stay. The caller holds mu.
func (e *Engine) evictFor(level slog.Level, data []byte) *Rec {
	for bytes := segmentBytes + len(data); bytes > 0; {
		from := &e.queue
		before, r := from.victim(level)
		for _, rt := range e.routes {
			if b, v := rt.back.victim(level); v != nil && (r == nil || v.seq < r.seq) {
				from, before, r = &rt.back, b, v
				rt.last = nil
			}
		}
		if r == nil {
			return nil
		}
		bytes -= r.cost()
		from.remove(before, r)
		e.lose(r, delivery.ReasonEvicted, nil, delivery.ErrQueueFull)
		if r := e.arena.add(level, data); r != nil {
			return r
		}
	}
	return nil
}

// await waits for room, MaxBlock at most. The caller holds mu, which is released while waiting.
func (e *Engine) await(level slog.Level, data []byte) (*Rec, delivery.Reason) {
	began := time.Now()
	timer := time.NewTimer(e.opts.MaxBlock)
	defer timer.Stop()
	e.ledger.waits++
	defer func() { e.ledger.waitTime += time.Since(began) }()
	for {
		if e.roomy == nil {
			e.roomy = make(chan struct{})
		}
		roomy := e.roomy
		e.mu.Unlock()
		var late bool
		select {
		case <-roomy:
		case <-timer.C:
			late = true
		}
		e.mu.Lock()
		if e.state >= closing {
			return nil, delivery.ReasonClosed
		}
		if r := e.arena.add(level, data); r != nil {
			return r, ""
		}
		if late {
			e.refuse = true
			return nil, delivery.ReasonQueueFull
		}
	}
}
