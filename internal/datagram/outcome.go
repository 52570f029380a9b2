package datagram

import (
	"context"
	"errors"
	"net"
	"os"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/errno"
	"github.com/wholelog/wholelog/internal/ship"
)

// Outcome says what becomes of a record by what stopped it on its way into datagrams. Nothing is ever "perhaps taken": an error means that
// the kernel did not take a datagram.
//
//	nil                                     Delivered: the kernel took every datagram; UDP tells no more
//	ECONNREFUSED; Windows: WSAECONNRESET    Requeue, refused: the answer to an earlier datagram, nothing listens on that port
//	EMSGSIZE                                Drop, too_large
//	ENOBUFS, EAGAIN, ENOMEM                 Requeue, busy: our own queues are full
//	write deadline                          Requeue, timeout
//	ctx canceled, socket closed by Close    Requeue, without cause and error: no evidence against the address
//	EPERM, EACCES (a firewall of our own),
//	ENETUNREACH, EHOSTUNREACH, ENETDOWN,
//	EMFILE when opening, and all others     Requeue, other
func Outcome(err error) ship.Outcome {
	o := ship.Outcome{Do: ship.Requeue, Cause: delivery.CauseOther, Err: err}
	switch {
	case err == nil:
		return ship.Outcome{Do: ship.Delivered}
	case errors.Is(err, context.Canceled), errors.Is(err, net.ErrClosed):
		return ship.Outcome{Do: ship.Requeue}
	case errno.TooLong(err):
		o.Do, o.Reason, o.Cause = ship.Drop, delivery.ReasonTooLarge, delivery.CauseMTU
	case errno.Refused(err):
		o.Cause = delivery.CauseRefused
	case errno.Busy(err):
		o.Cause = delivery.CauseBusy
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		o.Cause = delivery.CauseTimeout
	}
	return o
}
