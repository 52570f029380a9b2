package gelf

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/wholelog/wholelog/chunk"
	"github.com/wholelog/wholelog/internal/datagram"
)

// transmit writes payload as datagrams of one new id to one flow, in bursts that the pacer allows. It ends early when the chunks
// cannot reach the receiver together any more.
func (l *udpLink) transmit(ctx context.Context, f *datagram.Flow, payload []byte) error {
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
		now := l.now()
		if first.IsZero() {
			first = now
		} else if datagram.Apart(first, now, mostSpread) {
			return errLate
		}
		// The pacer's waits in between are no writes.
		if err := f.Within(ctx, now, l.config.sendTimeout); err != nil {
			return err
		}
		burst := rest[:min(granted*l.size, len(rest))]
		rest = rest[len(burst):]
		written, err := f.Write(burst, l.size)
		l.meter.Wire(written)
		if err != nil {
			return err
		}
	}
	if chunked && datagram.Apart(first, l.now(), mostAge) {
		return errLate
	}
	return nil
}

// acquire waits until the pacer grants at least least and at most want datagrams.
func (l *udpLink) acquire(ctx context.Context, want, least int) (int, error) {
	for {
		if n := l.pacer.take(want, least); n > 0 {
			return n, nil
		}
		l.run.Settle()
		l.meter.Wire(0) // paced is not stuck
		if err := l.pacer.wait(ctx, l.closed); err != nil {
			return 0, err
		}
	}
}
