package gelf

import (
	"context"
	"errors"
	"net"
	"os"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/ship"
)

// errNoFlow says that no socket is open towards the address and none can be opened.
var errNoFlow = errors.New("no flow")

// errDivert says that datagrams cannot carry a record and that there is another way, which can.
var errDivert = errors.New("too large for UDP")

// errLate says that a message's chunks left so far apart that a receiver may have forgotten the first ones.
var errLate = errors.New("chunks too far apart")

// errOutOfTime says that the caller's time was used up, by the pacer for the most part, before a message had left.
var errOutOfTime = errors.New("out of time")

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
//	ctx canceled, socket closed by Close,
//	deadline of Send's ctx                  Requeue, without cause and error: no evidence against the address
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
	case isTooLong(err):
		return ship.Outcome{Do: ship.Drop, Reason: delivery.ReasonTooLarge, Cause: delivery.CauseMTU, Err: err}
	case errors.Is(err, context.Canceled), errors.Is(err, net.ErrClosed), errors.Is(err, errOutOfTime):
		return ship.Outcome{Do: ship.Requeue}
	}
	o := ship.Outcome{Do: ship.Requeue, Cause: delivery.CauseOther, Err: err}
	switch {
	case isRefused(err):
		o.Cause = delivery.CauseRefused
	case isBusy(err):
		o.Cause = delivery.CauseBusy
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded), errors.Is(err, errLate):
		o.Cause = delivery.CauseTimeout
	}
	return o
}

// endsLink says whether a link is given up after err. After any other Requeue the flow alone is replaced.
func endsLink(err error) bool {
	return errors.Is(err, errNoFlow) || errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
