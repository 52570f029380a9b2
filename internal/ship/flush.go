package ship

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/wholelog/wholelog/delivery"
)

// grace is what code that is not ours (links, hooks) gets to return in when CloseTimeout is used up.
const grace = time.Second

// Flush waits until everything accepted before the call is delivered or counted as dropped, or until ctx ends; then its error says
// how many are pending.
func (e *Engine) Flush(ctx context.Context) error {
	e.mu.Lock()
	done := e.epochs.close()
	if done == nil {
		e.mu.Unlock()
		return nil
	}
	e.mu.Unlock()
	e.flushes.Add(1)
	defer e.flushes.Add(-1)
	for _, l := range e.rouse() {
		guardNudge(l)
	}
	stop := e.hurryLookup(ctx)
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		err = ctx.Err()
	}
	stop()
	if err == nil {
		return nil
	}
	e.links.Lock()
	defer e.links.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.epochs.drop(done)
	err = fmt.Errorf("%s: flush: %w with %d records pending", e.name, err, e.ledger.pending)
	if why := e.why(); why != nil {
		err = fmt.Errorf("%w; the last trouble: %w", err, why)
	}
	return err
}

// hurryLookup has the addresses looked up as soon as may be when there are none: somebody waits. What it returns ends that.
func (e *Engine) hurryLookup(ctx context.Context) (stop func()) {
	p := e.routes[0].pool
	if len(p.Snapshot().Endpoints) > 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = p.Refresh(ctx) // its error is told by the pool
	}()
	return func() {
		cancel()
		<-done
	}
}

// why is what keeps records from leaving, as far as that is known. The caller holds links.
func (e *Engine) why() error {
	main := e.routes[0]
	if len(main.eps) == 0 {
		return main.pool.Err()
	}
	var last *endpoint
	for _, ep := range main.eps {
		if ep.failures > 0 && (last == nil || ep.failed.mono > last.failed.mono) {
			last = ep
		}
	}
	if last == nil {
		return nil
	}
	return fmt.Errorf("%s: %s", place(last.addr), last.lastError)
}

// rouse returns the open links, those that are being said goodbye to as well, and wakes the goroutines that linger. Addresses that
// only rest are tried at once when there are no others: somebody waits.
func (e *Engine) rouse() []Link {
	e.links.Lock()
	defer e.links.Unlock()
	var links []Link
	now := e.clock.stamp()
	for _, rt := range e.routes {
		for _, s := range slices.Concat(rt.slots, rt.retired) {
			for _, l := range []Link{s.link, s.ending} {
				if l != nil {
					links = append(links, l)
				}
			}
			s.signal()
		}
		rt.endRests(now)
	}
	e.signal()
	return links
}

// endRests lets all addresses be tried again, if none can be used as it is: with PerProcess, if the one in use cannot. The caller holds
// links.
func (rt *route) endRests(now stamp) {
	for _, ep := range rt.eps {
		if ep.usable && !ep.resting(now) && (rt.pinned == nil || rt.pinned == ep) {
			return
		}
	}
	for _, ep := range rt.eps {
		if !ep.bidden {
			ep.rest = 0
		}
	}
}

// announce tells Ready that a dial has ended. The caller holds links.
func (e *Engine) announce() {
	if e.dialled != nil {
		close(e.dialled)
		e.dialled = nil
	}
}

// Ready looks up the addresses now and opens a link to one of them. It returns nil when a record could leave now, else why not:
// the look-up's error, the error of the last dial once every address refused, or ctx's.
func (e *Engine) Ready(ctx context.Context) error {
	main := e.routes[0]
	e.mu.Lock()
	if e.state >= closing {
		e.mu.Unlock()
		return delivery.ErrClosed
	}
	e.start()
	e.mu.Unlock()
	if err := main.pool.Refresh(ctx); err != nil {
		return fmt.Errorf("%s: %w", e.name, err)
	}
	if e.opts.Sync {
		return e.readySync(ctx)
	}
	asked := e.clock.stamp()
	for {
		e.links.Lock()
		main.follow()
		ready, err := main.ready(asked)
		if e.dialled == nil {
			e.dialled = make(chan struct{})
		}
		dialled, closing := e.dialled, e.state >= closing
		e.links.Unlock()
		switch {
		case ready:
			return nil
		case closing:
			return delivery.ErrClosed
		case err != nil:
			return fmt.Errorf("%s: %w", e.name, err)
		}
		select {
		case <-dialled:
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", e.name, ctx.Err())
		}
	}
}

// ready says whether a link is open, and sees to it that every address without one is dialled. Once all have failed since asked,
// it returns why the last one did. The caller holds links.
func (rt *route) ready(asked stamp) (bool, error) {
	if rt.oneForAll {
		rt.pin(rt.eng.clock.stamp())
	}
	trying := false
	for _, s := range rt.slots {
		if !s.ep.usable || rt.pinned != nil && rt.pinned != s.ep {
			continue
		}
		if s.link != nil {
			return true, nil
		}
		if s.ep.failures > 0 && s.ep.failed.mono >= asked.mono {
			continue
		}
		trying = true
		s.ask()
	}
	if trying {
		return false, nil
	}
	for _, ep := range rt.eps {
		if ep.lastError != "" {
			return false, errors.New("no address can be reached: " + place(ep.addr) + ": " + ep.lastError)
		}
	}
	return false, delivery.ErrNoEndpoint
}

// ask has the slot open its link though no record is there. The caller holds links.
func (s *slot) ask() {
	s.want = true
	s.stir()
}

// Close stops Put, flushes, says goodbye to every link and waits for the hooks, all within CloseTimeout; what is left then is
// dropped as closed. It may be called more than once and from anywhere, a hook included; every call returns the same.
func (e *Engine) Close() error {
	if e.ending.CompareAndSwap(false, true) {
		e.close()
	} else if e.hooks.inside() {
		return nil // the Close under way waits for this very hook
	}
	<-e.closed
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
