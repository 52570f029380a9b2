package gelf

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/datagram"
	"github.com/wholelog/wholelog/internal/ship"
	"github.com/wholelog/wholelog/jitter"
)

// errDivert says that datagrams cannot carry a record and that there is another way, which can.
var errDivert = errors.New("too large for UDP")

// errLate says that a message's chunks left so far apart that a receiver may have forgotten the first ones.
var errLate = errors.New("chunks too far apart")

// udpOutcome says what becomes of a record by what stopped it on its way into datagrams. A receiver drops a message of which it did not
// get every chunk, so what holds for a datagram holds for all of them.
//
//	errDivert                               Divert
//	ErrTooLarge                             Drop, too_large
//	chunks too far apart, restarts used     Requeue, timeout: our own writes are slow
//	EMSGSIZE, with no smaller size left;
//	ENOBUFS, EAGAIN, ENOMEM, restarts used;
//	anything else                           as [datagram.Outcome] says
func udpOutcome(err error) ship.Outcome {
	switch {
	case errors.Is(err, errDivert):
		return ship.Outcome{Do: ship.Divert, Err: err}
	case errors.Is(err, delivery.ErrTooLarge):
		return ship.Outcome{Do: ship.Drop, Reason: delivery.ReasonTooLarge, Err: err}
	case errors.Is(err, errLate):
		return ship.Outcome{Do: ship.Requeue, Cause: delivery.CauseTimeout, Err: err}
	}
	return datagram.Outcome(err)
}

// httpOutcome says what becomes of the records of one request by how it ended. A server that could answer has judged the request as a
// whole; when the way failed, what counts is whether any of the request can have reached the server.
//
//	2xx                                   Delivered: Graylog answers 202 before it decodes, and tells no more
//	ErrTooLarge: fits no body             Drop, too_large
//	413                                   Halve; a record alone, which was made as small as can be: Drop, rejected
//	401, 403, 407                         Requeue after hold, unauthorized: waits for somebody to mend the credentials
//	404, 405, 410, 421; 3xx, 1xx          Requeue after hold, protocol: the URL is wrong, or something else listens there
//	429, 503; 408, 425                    Requeue, busy, after Retry-After: it did not take it
//	other 5xx                             Resend, other, after Retry-After: how far it came is unknown
//	other 4xx                             Halve: it judged a message; a record alone: Drop, rejected
//	closed by Close, ctx canceled         as the next two, without cause: no evidence against the address
//	not a byte written, TLS alert         Requeue, the error's cause: the alert stands in the place of an answer
//	anything after the first byte         Resend, the error's cause: timeout, reset, peer_closed, protocol
func httpOutcome(a attempt, records int, hold time.Duration) ship.Outcome {
	status := a.status()
	switch {
	case a.err == nil:
		return ship.Outcome{Do: ship.Delivered}
	case errors.Is(a.err, delivery.ErrTooLarge):
		return ship.Outcome{Do: ship.Drop, Reason: delivery.ReasonTooLarge, Err: a.err}
	case errors.Is(a.err, context.Canceled), errors.Is(a.err, net.ErrClosed):
		if a.begun {
			return ship.Outcome{Do: ship.Resend}
		}
		return ship.Outcome{Do: ship.Requeue}
	case status == 0:
		o := ship.Outcome{Do: ship.Resend, Cause: ship.CauseOf(a.err), Err: a.err}
		if !a.begun || o.Cause == delivery.CauseTLS {
			o.Do = ship.Requeue
		}
		return o
	}
	o := ship.Outcome{Do: ship.Requeue, Err: a.err, After: a.after}
	switch {
	case status == 401, status == 403, status == 407:
		o.Cause, o.After = delivery.CauseUnauthorized, max(a.after, jitter.Duration(hold, 0.2))
	case status == 404, status == 405, status == 410, status == 421, status < 400:
		o.Cause, o.After = delivery.CauseProtocol, max(a.after, jitter.Duration(hold, 0.2))
	case status == 429, status == 503, status == 408, status == 425:
		o.Cause = delivery.CauseBusy
	case status >= 500:
		o.Do, o.Cause = ship.Resend, delivery.CauseOther
	case records > 1:
		return ship.Outcome{Do: ship.Halve} // without an error: the server is well
	default:
		return ship.Outcome{Do: ship.Drop, Reason: delivery.ReasonRejected, Err: a.err}
	}
	return o
}

// endsLink says whether the way to the server failed, and not the server: then the address is dialled before it gets records again.
func (a attempt) endsLink() bool {
	return a.err != nil && a.status() == 0 && !errors.Is(a.err, delivery.ErrTooLarge)
}
