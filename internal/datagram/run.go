package datagram

import (
	"context"
	"time"

	"github.com/wholelog/wholelog/internal/ship"
)

// Run sends batches one message after the other. What was sent is settled in runs: at the end, and before everything that may take
// time or ends otherwise. It belongs to the link's goroutine.
type Run struct {
	// Message sends one record, as a whole or not at all.
	Message func(ctx context.Context, data []byte) error
	// Outcome says what becomes of a record for which Message returned err, and whether the link is over then.
	Outcome func(err error) (o ship.Outcome, over bool)

	batch      *ship.Batch
	sent, done int // records [done, sent) of batch are sent and not settled
}

// Send is what [ship.Link] asks of a link's Send.
func (r *Run) Send(ctx context.Context, b *ship.Batch) error {
	r.batch, r.sent, r.done = b, 0, 0
	defer func() { r.batch = nil }()
	for r.sent < b.Len() {
		err := ctx.Err()
		if err == nil {
			err = r.Message(ctx, b.At(r.sent).Bytes())
		}
		if err == nil {
			r.sent++
			continue
		}
		r.Settle()
		switch o, over := r.Outcome(err); {
		case o.Do != ship.Requeue: // a verdict on this record alone
			b.Settle(r.sent, r.sent+1, o)
			r.sent++
			r.done = r.sent
		case past(ctx): // the caller's time was used up, which says nothing about the address
			b.Settle(r.sent, b.Len(), ship.Outcome{Do: ship.Requeue})
			return nil
		case over:
			// The end of the link is the evidence against the address; told twice it would count twice.
			b.Settle(r.sent, b.Len(), ship.Outcome{Do: ship.Requeue})
			if o.Cause != "" {
				err = &ship.Fault{Cause: o.Cause, Err: err}
			}
			return err
		default:
			b.Settle(r.sent, b.Len(), o)
			return nil
		}
	}
	r.Settle()
	return nil
}

// Settle settles what was sent since the last time. Message calls it before it waits.
func (r *Run) Settle() {
	if r.done < r.sent {
		o, _ := r.Outcome(nil)
		r.batch.Settle(r.done, r.sent, o)
		r.done = r.sent
	}
}

// past says whether the deadline of ctx is over.
func past(ctx context.Context) bool {
	end, ok := ctx.Deadline()
	return ok && !time.Now().Before(end)
}
