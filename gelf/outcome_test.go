package gelf

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"testing"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/datagram"
	"github.com/wholelog/wholelog/internal/ship"
)

// errTimedOut is what a socket answers after its write deadline.
var errTimedOut error = &net.OpError{Op: "write", Net: "udp", Err: os.ErrDeadlineExceeded}

// socketError is an error as a socket returns it.
func socketError(err error) error {
	return &net.OpError{Op: "write", Net: "udp", Err: os.NewSyscallError("write", err)}
}

func TestUDPOutcome(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want ship.Outcome // Err is checked apart
		ends bool
	}{
		"sent":              {nil, ship.Outcome{Do: ship.Delivered}, false},
		"for the fallback":  {errDivert, ship.Outcome{Do: ship.Divert}, false},
		"too large":         {fmt.Errorf("9 bytes: %w", delivery.ErrTooLarge), ship.Outcome{Do: ship.Drop, Reason: delivery.ReasonTooLarge}, false},
		"nothing listens":   {socketError(errRefused), ship.Outcome{Do: ship.Requeue, Cause: delivery.CauseRefused}, false},
		"too long":          {socketError(errTooLong), ship.Outcome{Do: ship.Drop, Reason: delivery.ReasonTooLarge, Cause: delivery.CauseMTU}, false},
		"no room":           {socketError(errBusy), ship.Outcome{Do: ship.Requeue, Cause: delivery.CauseBusy}, false},
		"forbidden":         {socketError(fs.ErrPermission), ship.Outcome{Do: ship.Requeue, Cause: delivery.CauseOther}, false},
		"unknown":           {errors.New("?"), ship.Outcome{Do: ship.Requeue, Cause: delivery.CauseOther}, false},
		"write deadline":    {errTimedOut, ship.Outcome{Do: ship.Requeue, Cause: delivery.CauseTimeout}, true},
		"context's end":     {context.DeadlineExceeded, ship.Outcome{Do: ship.Requeue, Cause: delivery.CauseTimeout}, true},
		"too slow":          {errLate, ship.Outcome{Do: ship.Requeue, Cause: delivery.CauseTimeout}, false},
		"context canceled":  {context.Canceled, ship.Outcome{Do: ship.Requeue}, true},
		"link closed":       {&net.OpError{Op: "write", Err: net.ErrClosed}, ship.Outcome{Do: ship.Requeue}, true},
		"no socket at all":  {fmt.Errorf("%w: %w", datagram.ErrNoFlow, fs.ErrPermission), ship.Outcome{Do: ship.Requeue, Cause: delivery.CauseOther}, true},
		"no socket, closed": {fmt.Errorf("%w: %w", datagram.ErrNoFlow, net.ErrClosed), ship.Outcome{Do: ship.Requeue}, true},
	} {
		t.Run(name, func(t *testing.T) {
			got := udpOutcome(c.err)
			if got.Cause != "" && !errors.Is(got.Err, c.err) {
				t.Errorf("Err is %v", got.Err)
			}
			if got.Cause == "" && got.Do == ship.Requeue && got.Err != nil {
				t.Errorf("evidence against the address: %v", got.Err)
			}
			got.Err = nil
			if got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			if ends := datagram.EndsLink(c.err); ends != c.ends {
				t.Errorf("endsLink is %v", ends)
			}
		})
	}
}
