package datagram

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"testing"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/ship"
)

func TestOutcome(t *testing.T) {
	requeue := func(c delivery.Cause) ship.Outcome { return ship.Outcome{Do: ship.Requeue, Cause: c} }
	for name, c := range map[string]struct {
		err  error
		want ship.Outcome // Err is checked apart
	}{
		"sent":             {nil, ship.Outcome{Do: ship.Delivered}},
		"nothing listens":  {socketError(errRefused), requeue(delivery.CauseRefused)},
		"too long":         {socketError(errTooLong), ship.Outcome{Do: ship.Drop, Reason: delivery.ReasonTooLarge, Cause: delivery.CauseMTU}},
		"no room":          {socketError(errBusy), requeue(delivery.CauseBusy)},
		"no way":           {socketError(errNoRoute), requeue(delivery.CauseOther)},
		"no files":         {fmt.Errorf("%w: %w", ErrNoFlow, errNoFiles), requeue(delivery.CauseOther)},
		"forbidden":        {socketError(fs.ErrPermission), requeue(delivery.CauseOther)},
		"unknown":          {errors.New("?"), requeue(delivery.CauseOther)},
		"write deadline":   {socketError(os.ErrDeadlineExceeded), requeue(delivery.CauseTimeout)},
		"context's end":    {context.DeadlineExceeded, requeue(delivery.CauseTimeout)},
		"context canceled": {context.Canceled, requeue("")},
		"closed":           {socketError(net.ErrClosed), requeue("")},
		"none, and closed": {fmt.Errorf("%w: %w", ErrNoFlow, net.ErrClosed), requeue("")},
	} {
		got := Outcome(c.err)
		if evidence := got.Cause != ""; evidence != (got.Err != nil) || evidence && !errors.Is(got.Err, c.err) {
			t.Errorf("%s: Err is %v", name, got.Err)
		}
		got.Err = nil
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
