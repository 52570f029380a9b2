package ship

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/wholelog/wholelog/delivery"
)

// grace is what code that is not ours (links, hooks) gets to return in when CloseTimeout is used up.
const grace = time.Second

// Close stops Put, flushes, says goodbye to every link and waits for the hooks, all within CloseTimeout; what is left then is
// dropped as closed. It may be called more than once and from anywhere, a hook included; every call returns the same.
func (e *Engine) Close() error {
	if e.ending.CompareAndSwap(false, true) {
		e.close()
	} else if e.hooks.inside() {
		return nil // the Close under way waits for this very hook
	}
	<-e.closed
	_ = e.hooks.await(grace) // it was perhaps called from inside a hook
	return e.result
}

func (e *Engine) close() {
	defer close(e.closed)
	end := time.Now().Add(e.opts.CloseTimeout)
	ctx, cancel := context.WithDeadline(context.Background(), end)
	defer cancel()

	e.links.Lock()
	e.mu.Lock()
	e.state = closing
	e.freed() // callers that wait for room learn that none will come
	before := e.ledger.dropped
	e.mu.Unlock()
	e.links.Unlock()

	flush, stop := context.WithDeadline(ctx, end.Add(-e.opts.CloseTimeout/8)) // the rest is for goodbyes
	_ = e.Flush(flush)                                                        // what it left is dropped below
	stop()

	e.links.Lock()
	e.mu.Lock()
	e.state, e.parting = over, ctx
	e.mu.Unlock()
	e.announce()
	e.links.Unlock()
	e.cancel()
	for _, rt := range e.routes {
		rt.pool.Close()
	}
	err := e.join(ctx)
	e.partSync(ctx)

	total, why := e.abandon()
	lost := total - before
	if hookErr := e.hooks.finish(max(time.Until(end), grace)); err == nil {
		err = hookErr
	}
	if lost > 0 {
		text := fmt.Errorf("%s: %w: %d records dropped", e.name, delivery.ErrClosed, lost)
		for _, more := range []error{why, err} {
			if more != nil {
				text = fmt.Errorf("%w; %w", text, more)
			}
		}
		err = text
	}
	e.result = err
}

// join wakes every goroutine for its goodbye and waits for all of them, closing links by force when ctx ends.
func (e *Engine) join(ctx context.Context) error {
	e.rouse() // wakes them
	ended := make(chan struct{})
	go func() {
		e.wg.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
	}
	for _, l := range e.rouse() {
		guardClose(l)
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-ended:
		return nil
	case <-timer.C:
		return fmt.Errorf("%s: a link does not end", e.name)
	}
}

// partSync says goodbye to the links that have no goroutine to do so.
func (e *Engine) partSync(ctx context.Context) {
	if !e.opts.Sync {
		return
	}
	e.links.Lock()
	for _, rt := range e.routes {
		e.leaving = append(e.leaving, rt.slots...)
	}
	e.links.Unlock()
	e.closeLeaving(ctx)
}

// abandon drops what is still there, and returns how many records were dropped in all and what had kept them from leaving.
func (e *Engine) abandon() (uint64, error) {
	e.links.Lock()
	defer e.links.Unlock()
	why := e.why()
	cause := delivery.ErrClosed
	if why != nil {
		cause = fmt.Errorf("%w; %w", delivery.ErrClosed, why)
	}
	for _, rt := range e.routes {
		for _, s := range slices.Concat(rt.slots, rt.retired) {
			s.takeBack(nil)
			s.reclaim()
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.enter()
	for _, rt := range e.routes {
		for r := rt.hand.pop(); r != nil; r = rt.hand.pop() {
			e.lose(r, delivery.ReasonClosed, r.avoid, cause)
		}
		for r := rt.back.pop(); r != nil; r = rt.back.pop() {
			e.lose(r, delivery.ReasonClosed, r.avoid, cause)
		}
	}
	for r := e.queue.pop(); r != nil; r = e.queue.pop() {
		e.lose(r, delivery.ReasonClosed, nil, cause)
	}
	return e.ledger.dropped, why
}
