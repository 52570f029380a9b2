package gelf

import (
	"context"
	"net"
	"time"
)

const (
	// burst is the most datagrams that leave back to back. A receive buffer of the usual default holds about 92 of them, and the
	// receiver may be busy with something else when they come.
	burst = 32
	// quantum is the shortest wait at common rates, because the runtime rounds shorter ones up to about this. What a wait comes
	// late by is not lost, it is granted as a longer burst; but no burst is longer than 32, and nothing here spins, so from some
	// 30 000 datagrams a second on it is the timers that limit the rate.
	quantum = time.Millisecond
	// spread is the longest that a message may take from its first chunk to its last by the pacer's will. Receivers forget it
	// after 5 s and the design allows 2; the rest is for late timers and slow writes.
	spread = 1750 * time.Millisecond
	// mostSpread is how old a message's first chunk may be when another one is to leave: half of what receivers allow, less the way.
	mostSpread = 2 * time.Second
	// mostAge is how old it may be when the last one has left. In between a receiver most likely has the message, and sent again it
	// would have it twice; beyond it most likely has not.
	mostAge = 4 * time.Second
)

// pacer is a token bucket in datagrams, kept as the one instant since which it has been filling (GCRA). It belongs to a link's
// goroutine.
type pacer struct {
	interval time.Duration // between datagrams; 0: unlimited
	since    time.Time
	timer    *time.Timer
}

// newPacer makes a pacer of rate datagrams a second, with a full bucket; a rate below zero does not limit.
func newPacer(rate int) *pacer {
	p := &pacer{timer: time.NewTimer(time.Hour)}
	p.timer.Stop()
	if rate > 0 {
		// Rounded up, so that the rate is a limit and not an average of roundings.
		p.interval = (time.Second + time.Duration(rate) - 1) / time.Duration(rate)
		p.since = time.Now().Add(-burst * p.interval)
	}
	return p
}

// head is how many datagrams of a message of n must be granted at once before its first one may leave, so that the others still
// leave within spread. It is 0 or 1 at all but the slowest rates, and never more than a burst from 64 datagrams a second on.
func (p *pacer) head(n int) int {
	if p.interval == 0 {
		return 0
	}
	return n - int(min(spread/p.interval, time.Duration(n)))
}

// take grants up to want datagrams that may leave now, or none when it cannot grant at least least of them.
func (p *pacer) take(want, least int) int {
	if p.interval == 0 {
		return want
	}
	now := time.Now()
	if full := now.Add(-burst * p.interval); p.since.Before(full) {
		p.since = full
	}
	n := min(int(now.Sub(p.since)/p.interval), want)
	if n < least {
		return 0
	}
	p.since = p.since.Add(time.Duration(n) * p.interval)
	return n
}

// wait waits until at least one more datagram has been earned: for a quantum if that earns more, and at high rates for half a
// burst, since what a full bucket earns is lost. Its errors are sleep's.
func (p *pacer) wait(ctx context.Context, closed <-chan struct{}) error {
	earned := time.Since(p.since)
	return p.sleep(ctx, closed, max(p.interval-earned%p.interval, min(quantum, burst/2*p.interval)))
}

// sleep waits for d, and ends early with ctx's error, or with net.ErrClosed when closed is.
func (p *pacer) sleep(ctx context.Context, closed <-chan struct{}, d time.Duration) error {
	p.timer.Reset(d)
	select {
	case <-p.timer.C:
		return nil
	case <-ctx.Done():
		p.timer.Stop()
		return ctx.Err()
	case <-closed:
		p.timer.Stop()
		return net.ErrClosed
	}
}
