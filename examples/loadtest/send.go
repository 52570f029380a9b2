package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/resolve"
)

// marker begins the text of every message.
const marker = "loadtest"

// text is message number n of a test, filled up to size.
func text(test uint32, n uint64, size int) string {
	s := fmt.Sprintf("%s %08x %d", marker, test, n)
	if fill := size - len(s) - 1; fill > 0 {
		s += " " + strings.Repeat(".", fill)
	}
	return s
}

// send sends until the count, the time or ctx is over, waits for what is on its way, and prints what became of all of it.
func send(ctx context.Context, s settings, out, progress io.Writer) error {
	p, target, err := find(s.target)
	if err != nil {
		return fmt.Errorf("-target: %w", err)
	}
	o := options{
		resolve: resolve.Options{Policy: s.policy},
		delivery: delivery.Options{
			CloseTimeout: max(s.wait, time.Second),
			OnError:      func(err error) { fmt.Fprintln(progress, err) }, // at most once a second for each kind
		},
	}
	if o.tls, err = trust(s.ca); err != nil {
		return err
	}
	if s.addrs != "" {
		o.resolve.Resolver = resolve.Static(strings.Split(s.addrs, ",")...)
	}
	h, err := p.open(target, o)
	if err != nil {
		return err
	}
	test := rand.Uint32()
	r := report{target: shown(s.target), test: test, loggers: s.loggers}
	fmt.Fprintf(progress, "load test %08x to %s\n", test, r.target)

	watch := newWatch(h.Stats, progress)
	began := time.Now()
	r.sent = log(ctx, h, test, s)
	r.took = time.Since(began)
	// Also when ctx is over: its messages are on their way.
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.wait)
	defer cancel()
	flushed := h.Flush(end)
	r.stats = h.Stats() // before Close counts what is left as dropped
	samples := watch.stop()
	closed := h.Close()
	r.write(out)
	if s.chart != "" {
		if err := os.WriteFile(s.chart, chart(fmt.Sprintf("Load test %08x to %s", test, r.target), samples), 0o644); err != nil {
			return err // it names the file
		}
	}
	switch {
	case r.stats.Dropped > 0 || r.stats.Pending > 0:
		return fmt.Errorf("%w: %d dropped, %d still pending", errLost, r.stats.Dropped, r.stats.Pending)
	case flushed != nil:
		return flushed
	}
	return closed
}

// log has every logger log its share of the messages, and returns how many there were.
func log(ctx context.Context, h slog.Handler, test uint32, s settings) uint64 {
	if s.length > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.length)
		defer cancel()
	}
	var last atomic.Uint64
	var loggers sync.WaitGroup
	begin := time.Now()
	for i := range s.loggers {
		loggers.Go(func() {
			logger := slog.New(h).With("logger", i+1)
			// The loggers take turns, so that together they keep the rate as one would.
			pace := pace{next: begin.Add(spacing(s.rate) * time.Duration(i)), step: spacing(s.rate) * time.Duration(s.loggers)}
			for {
				if pace.wait(ctx) != nil {
					return
				}
				n := last.Add(1)
				if s.count > 0 && n > uint64(s.count) {
					last.Add(^uint64(0)) // this number is not taken
					return
				}
				logger.Info(text(test, n, s.size))
			}
		})
	}
	loggers.Wait()
	return last.Load()
}

// spacing is the time between two messages.
func spacing(rate float64) time.Duration { return time.Duration(float64(time.Second) / rate) }

// pace keeps one logger to its rate.
type pace struct {
	next time.Time
	step time.Duration
}

// behind is how far a logger may be late and still catch up. A machine that stood still for longer must not answer with a burst, which
// is another test than the one that was asked for.
const behind = 20 * time.Millisecond

// wait returns when the next message is due, or ctx's error.
func (p *pace) wait(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	now := time.Now()
	if late := now.Sub(p.next); late > behind {
		p.next = now.Add(-behind)
	}
	due := p.next.Sub(now)
	p.next = p.next.Add(p.step)
	// Timers below a millisecond come late: several messages share one, and a fast test would otherwise be a slow one.
	if due < time.Millisecond {
		return nil
	}
	timer := time.NewTimer(due)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
