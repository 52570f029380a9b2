package syslog

import (
	"errors"
	"io/fs"
	"syscall"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/datagram"
	"github.com/wholelog/wholelog/internal/ship"
)

// datagramOutcome says what becomes of a record by what stopped it on its way into a datagram. A local socket's receiver has what the
// kernel took in its queue, and takes it along, Unconfirmed, when it ends.
//
//	ENOENT when connecting, unix only        Requeue, refused: there is no such socket now
//	ENOTCONN, ECONNRESET, EPIPE, unix only   Requeue, peer_closed
//	anything else                            as [datagram.Outcome] says; on unix ECONNREFUSED is a receiver that has gone, and a passed
//	                                         write deadline one that does not read
func datagramOutcome(err error) ship.Outcome {
	o := datagram.Outcome(err)
	if o.Cause != delivery.CauseOther {
		return o
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		o.Cause = delivery.CauseRefused
	case errors.Is(err, syscall.ENOTCONN), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		o.Cause = delivery.CausePeerClosed
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
