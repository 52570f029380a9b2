package gelf

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/wholelog/wholelog/chunk"
)

// transmit writes payload as datagrams of one new id to one flow, in bursts that the pacer allows. It ends early when the chunks
// cannot reach the receiver together any more.
func (l *udpLink) transmit(ctx context.Context, f *flow, payload []byte) error {
	rest := payload
	n := chunk.Count(len(payload), l.size)
	if n > 1 {
		var err error
		// The id is the only thing by which a receiver tells messages apart: it is random for every attempt.
		if l.wire, err = chunk.Append(l.wire[:0], payload, l.size, rand.Uint64()); err != nil {
			return err
		}
		rest = l.wire
	}
	chunked := n > 1
	var first time.Time // when the first chunk left
	for head := l.pacer.head(n); n > 0; head = 1 {
		granted, err := l.acquire(ctx, n, head)
		if err != nil {
			return err
		}
		n -= granted
		now := l.flows.now()
		if first.IsZero() {
			first = now
		} else if apart(first, now, mostSpread) {
			return errLate
		}
		if err := l.limit(ctx, f, now); err != nil {
			return err
		}
		burst := rest[:min(granted*l.size, len(rest))]
		rest = rest[len(burst):]
		written, err := f.write(burst, l.size)
		l.meter.Wire(written)
		if err != nil {
			return err
		}
	}
	if chunked && apart(first, l.flows.now(), mostAge) {
		return errLate
	}
	return nil
}

// apart says whether more than limit may have passed between two instants, by the clock that went further: a frozen process
// advances the wall clock alone, and one set back says nothing.
func apart(from, to time.Time, limit time.Duration) bool {
	wall := to.Round(0).Sub(from.Round(0))
	return to.Sub(from) > limit || wall > limit || wall < -limit
}

// limit gives the writes of a burst SendTimeout, or what ctx leaves of it. The pacer's waits in between are no writes.
func (l *udpLink) limit(ctx context.Context, f *flow, now time.Time) error {
	limit := now.Add(l.config.sendTimeout)
	if end, ok := ctx.Deadline(); ok && end.Before(limit) {
		limit = end
	}
	return f.until(now, limit)
}

// acquire waits until the pacer grants at least least and at most want datagrams.
func (l *udpLink) acquire(ctx context.Context, want, least int) (int, error) {
	for {
		if n := l.pacer.take(want, least); n > 0 {
			return n, nil
		}
		l.settleSent()
		l.meter.Wire(0) // paced is not stuck
		if err := l.pacer.wait(ctx, l.closed); err != nil {
			return 0, err
		}
	}
}

// write writes the datagrams that lie back to back in burst, all but the last size bytes long: many with one call where the kernel
// cuts them apart (see [flow.train]), else one by one. It returns how many bytes the kernel took.
func (f *flow) write(burst []byte, size int) (written int, err error) {
	for len(burst) > 0 {
		n, err := f.train(burst, size)
		if n == 0 && err == nil {
			n, err = f.conn.Write(burst[:min(size, len(burst))])
		}
		if err != nil {
			return written, err
		}
		burst = burst[n:]
		written += n
	}
	return written, nil
}
