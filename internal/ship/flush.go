package ship

import (
	"context"
	"fmt"
	"slices"

	"github.com/wholelog/wholelog/delivery"
)

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
		if ep.last != nil {
			return false, fmt.Errorf("no address can be reached: %s: %w", place(ep.addr), ep.last)
		}
	}
	return false, delivery.ErrNoEndpoint
}

// ask has the slot open its link though no record is there. The caller holds links.
func (s *slot) ask() {
	s.want = true
	s.stir()
}
