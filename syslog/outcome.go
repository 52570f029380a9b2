package syslog

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"syscall"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/datagram"
	"github.com/wholelog/wholelog/internal/errno"
	"github.com/wholelog/wholelog/internal/ship"
)

// datagramOutcome says what becomes of a record by what stopped it on its way into a datagram. Nothing is ever "perhaps taken": an
// error means that the kernel did not take this datagram.
//
//	nil                                        Delivered: the kernel took the datagram; UDP tells no more, and a local socket's
//	                                           receiver has it in its queue
//	EMSGSIZE                                   Drop, too_large
//	ECONNREFUSED; Windows: WSAECONNRESET       Requeue, refused: udp: the answer to an earlier datagram, nothing listens on that
//	                                           port; unix: the receiver is gone
//	ENOTCONN, ECONNRESET, EPIPE                Requeue, peer_closed: unix only
//	ENOENT when connecting                     Requeue, refused: there is no such socket now
//	ENOBUFS, ENOMEM, EAGAIN                    Requeue, busy: our own queues are full
//	write deadline                             Requeue, timeout: a local receiver does not read
//	ctx canceled, socket closed by Close       Requeue, without cause and error: no evidence against the address
//	EPERM, EACCES (a firewall of our own),
//	ENETUNREACH, EHOSTUNREACH and all others   Requeue, other
func datagramOutcome(err error) ship.Outcome {
	switch {
	case err == nil:
		return ship.Outcome{Do: ship.Delivered}
	case errno.TooLong(err):
		return ship.Outcome{Do: ship.Drop, Reason: delivery.ReasonTooLarge, Cause: delivery.CauseMTU, Err: err}
	case errors.Is(err, context.Canceled), errors.Is(err, net.ErrClosed):
		return ship.Outcome{Do: ship.Requeue}
	}
	o := ship.Outcome{Do: ship.Requeue, Cause: delivery.CauseOther, Err: err}
	switch {
	case errno.Refused(err), errors.Is(err, fs.ErrNotExist):
		o.Cause = delivery.CauseRefused
	case errors.Is(err, syscall.ENOTCONN), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		o.Cause = delivery.CausePeerClosed
	case errno.Busy(err):
		o.Cause = delivery.CauseBusy
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		o.Cause = delivery.CauseTimeout
	}
	return o
}

// udpOutcome is datagramOutcome for a link of several flows: most failures cost a flow, and few the link.
func udpOutcome(err error) (o ship.Outcome, over bool) {
	return datagramOutcome(err), datagram.EndsLink(err)
}

// localOutcome is datagramOutcome for the one socket of a link: what failed is not used again, unless there was no room just now.
func localOutcome(err error) (o ship.Outcome, over bool) {
	o = datagramOutcome(err)
	return o, o.Do == ship.Requeue && o.Cause != delivery.CauseBusy
}
