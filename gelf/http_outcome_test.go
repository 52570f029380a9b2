package gelf

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/ship"
)

// What becomes of a record whose request got no answer; TestHTTPAnswersAndOutcomes has the answers.
func TestHTTPOutcome(t *testing.T) {
	closed := &ship.Fault{Cause: delivery.CausePeerClosed, Err: io.EOF}
	alert := &net.OpError{Op: "remote error", Err: errors.New("tls: certificate required")}
	for name, c := range map[string]struct {
		a    attempt
		want ship.Outcome // Err is checked apart
		ends bool
	}{
		"accepted":                   {attempt{begun: true}, ship.Outcome{Do: ship.Delivered}, false},
		"too large":                  {attempt{err: fmt.Errorf("9 bytes: %w", delivery.ErrTooLarge)}, ship.Outcome{Do: ship.Drop, Reason: delivery.ReasonTooLarge}, false},
		"refused":                    {attempt{err: syscall.ECONNREFUSED}, ship.Outcome{Do: ship.Requeue, Cause: delivery.CauseRefused}, true},
		"closed before":              {attempt{err: closed}, ship.Outcome{Do: ship.Requeue, Cause: delivery.CausePeerClosed}, true},
		"closed after":               {attempt{err: closed, begun: true}, ship.Outcome{Do: ship.Resend, Cause: delivery.CausePeerClosed}, true},
		"reset after":                {attempt{err: syscall.ECONNRESET, begun: true}, ship.Outcome{Do: ship.Resend, Cause: delivery.CauseReset}, true},
		"timeout before":             {attempt{err: context.DeadlineExceeded}, ship.Outcome{Do: ship.Requeue, Cause: delivery.CauseTimeout}, true},
		"timeout after":              {attempt{err: context.DeadlineExceeded, begun: true}, ship.Outcome{Do: ship.Resend, Cause: delivery.CauseTimeout}, true},
		"wrong certificate":          {attempt{err: &tls.CertificateVerificationError{Err: io.EOF}}, ship.Outcome{Do: ship.Requeue, Cause: delivery.CauseTLS}, true},
		"alert after the first byte": {attempt{err: alert, begun: true}, ship.Outcome{Do: ship.Requeue, Cause: delivery.CauseTLS}, true},
		"canceled before":            {attempt{err: context.Canceled}, ship.Outcome{Do: ship.Requeue}, true},
		"canceled after":             {attempt{err: context.Canceled, begun: true}, ship.Outcome{Do: ship.Resend}, true},
		"link closed before":         {attempt{err: net.ErrClosed}, ship.Outcome{Do: ship.Requeue}, true},
		"link closed after":          {attempt{err: net.ErrClosed, begun: true}, ship.Outcome{Do: ship.Resend}, true},
		"switching protocols":        {attempt{err: &StatusError{Status: 101}, begun: true}, ship.Outcome{Do: ship.Requeue, Cause: delivery.CauseProtocol, After: time.Second}, false},
		"an unknown class":           {attempt{err: &StatusError{Status: 700}, begun: true}, ship.Outcome{Do: ship.Resend, Cause: delivery.CauseOther}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := httpOutcome(c.a, 1, time.Second)
			if got.Cause != "" && !errors.Is(got.Err, c.a.err) {
				t.Errorf("Err is %v", got.Err)
			}
			if got.Cause == "" && got.Err != nil && got.Do != ship.Drop {
				t.Errorf("evidence against the address: %v", got.Err)
			}
			if c.want.After > 0 && got.After >= c.want.After*8/10 && got.After <= c.want.After*12/10 {
				got.After = c.want.After // jittered
			}
			got.Err = nil
			if got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			if c.a.endsLink() != c.ends {
				t.Errorf("endsLink is %v", c.a.endsLink())
			}
		})
	}
}
