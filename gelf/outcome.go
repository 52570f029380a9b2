package gelf

import (
	"context"
	"errors"
	"net"
	"os"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/errno"
	"github.com/wholelog/wholelog/internal/ship"
	"github.com/wholelog/wholelog/jitter"
)

// errDivert says that datagrams cannot carry a record and that there is another way, which can.
var errDivert = errors.New("too large for UDP")

// errLate says that a message's chunks left so far apart that a receiver may have forgotten the first ones.
var errLate = errors.New("chunks too far apart")

// udpOutcome says what becomes of a record by what stopped it on its way into datagrams. Nothing is ever "perhaps taken": a
// receiver drops a message of which it did not get every chunk, and an error means that at least one was not sent.
//
//	nil                                     Delivered: the kernel took every datagram; UDP tells no more
//	errDivert                               Divert
//	ErrTooLarge                             Drop, too_large
//	ECONNREFUSED; Windows: WSAECONNRESET    Requeue, refused: the answer to an earlier datagram, nothing listens on that port;
//	                                        all flows are replaced, by one at first
//	EMSGSIZE, with no smaller size left     Drop, too_large: a path that does not take 508 bytes takes no message
//	ENOBUFS, EAGAIN, ENOMEM, restarts used  Requeue, busy: our own queues are full
//	write deadline                          Requeue, timeout
//	chunks too far apart, restarts used     Requeue, timeout: our own writes are slow
//	ctx canceled, socket closed by Close    Requeue, without cause and error: no evidence against the address
//	EPERM, EACCES (a firewall of our own),
//	ENETUNREACH, EHOSTUNREACH, ENETDOWN,
//	EMFILE when opening, and all others     Requeue, other
func udpOutcome(err error) ship.Outcome {
	switch {
	case err == nil:
		return ship.Outcome{Do: ship.Delivered}
	case errors.Is(err, errDivert):
		return ship.Outcome{Do: ship.Divert, Err: err}
	case errors.Is(err, delivery.ErrTooLarge):
		return ship.Outcome{Do: ship.Drop, Reason: delivery.ReasonTooLarge, Err: err}
	case errno.TooLong(err):
		return ship.Outcome{Do: ship.Drop, Reason: delivery.ReasonTooLarge, Cause: delivery.CauseMTU, Err: err}
	case errors.Is(err, context.Canceled), errors.Is(err, net.ErrClosed):
		return ship.Outcome{Do: ship.Requeue}
	}
	o := ship.Outcome{Do: ship.Requeue, Cause: delivery.CauseOther, Err: err}
	switch {
	case errno.Refused(err):
		o.Cause = delivery.CauseRefused
	case errno.Busy(err):
		o.Cause = delivery.CauseBusy
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded), errors.Is(err, errLate):
		o.Cause = delivery.CauseTimeout
	}
	return o
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
