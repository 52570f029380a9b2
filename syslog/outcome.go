package syslog

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"syscall"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/errno"
	"github.com/wholelog/wholelog/internal/ship"
)

// errOutOfTime says that the caller's time was used up before a record had left.
var errOutOfTime = errors.New("out of time")

// datagramOutcome says what becomes of a record by what stopped it on its way into a datagram, and whether the link is over then.
// Nothing is ever "perhaps taken": an error means that the kernel did not take this datagram.
//
//	nil                                        Delivered: the kernel took the datagram; UDP tells no more, and a local socket's
//	                                           receiver has it in its queue
//	EMSGSIZE                                   Drop, too_large
//	ECONNREFUSED; Windows: WSAECONNRESET       Requeue, refused: udp: the answer to an earlier datagram, nothing listens on that
//	                                           port; unix: the receiver is gone. The link is over
//	ENOTCONN, ECONNRESET, EPIPE                Requeue, peer_closed: unix only. The link is over
//	ENOENT when connecting                     Requeue, refused: there is no such socket now
//	ENOBUFS, ENOMEM, EAGAIN                    Requeue, busy: our own queues are full
//	write deadline                             Requeue, timeout: a local receiver does not read. The link is over
//	ctx canceled, socket closed by Close,
//	deadline of Send's ctx                     Requeue, without cause and error: no evidence against the address. The link is over
//	EPERM, EACCES (a firewall of our own),
//	ENETUNREACH, EHOSTUNREACH and all others   Requeue, other. The link is over
func datagramOutcome(err error) (o ship.Outcome, over bool) {
	switch {
	case err == nil:
		return ship.Outcome{Do: ship.Delivered}, false
	case errno.TooLong(err):
		return ship.Outcome{Do: ship.Drop, Reason: delivery.ReasonTooLarge, Cause: delivery.CauseMTU, Err: err}, false
	case errors.Is(err, context.Canceled), errors.Is(err, net.ErrClosed), errors.Is(err, errOutOfTime):
		return ship.Outcome{Do: ship.Requeue}, true
	}
	o = ship.Outcome{Do: ship.Requeue, Cause: delivery.CauseOther, Err: err}
	switch {
	case errno.Refused(err), errors.Is(err, fs.ErrNotExist):
		o.Cause = delivery.CauseRefused
	case errors.Is(err, syscall.ENOTCONN), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		o.Cause = delivery.CausePeerClosed
	case errno.Busy(err):
		o.Cause = delivery.CauseBusy
		return o, false
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		o.Cause = delivery.CauseTimeout
	}
	return o, true
}
