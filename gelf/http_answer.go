package gelf

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/mask"
	"github.com/wholelog/wholelog/internal/ship"
)

// maxRetryAfter is more than the engine grants. It keeps what a server may say apart from the ends of the number range.
const maxRetryAfter = 24 * time.Hour

// retryAfter reads when a server wants to be asked again, from now on (RFC 9110 §10.2.3): seconds, or a date, which is taken by the
// server's own clock where the answer tells it. 0: nothing that can be read, or no longer in the future.
func retryAfter(h http.Header, now time.Time) time.Duration {
	v := strings.TrimSpace(h.Get("Retry-After"))
	if v != "" && strings.Trim(v, "0123456789") == "" {
		n, err := strconv.ParseUint(v, 10, 32)
		if err != nil { // out of range
			return maxRetryAfter
		}
		return min(time.Duration(n)*time.Second, maxRetryAfter)
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}

// scrubber makes what a server says fit for errors.
type scrubber struct{ *mask.Scrubber }

func newScrubber(t target, h http.Header) scrubber {
	return scrubber{mask.NewScrubber(t.user, t.password, h)}
}

// redirect says where an answer leads that is not followed. What stands behind the path of a URL is often a key to something.
func (s scrubber) redirect(location string) string {
	if i := strings.IndexAny(location, "?#"); i >= 0 {
		location = location[:i]
	}
	if location == "" {
		return "a redirect is not followed"
	}
	return "a redirect is not followed; it leads to " + s.Text(location)
}

// error makes an error of http.Transport fit to be shown. Those of the network stay what they are; the others quote the server.
func (s scrubber) error(err error) error {
	if cause := ship.CauseOf(err); cause != delivery.CauseOther {
		return err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || strings.Contains(err.Error(), "server closed idle connection") {
		return &ship.Fault{Cause: delivery.CausePeerClosed, Err: errors.New("the server closed the connection before it answered")}
	}
	return &ship.Fault{Cause: delivery.CauseProtocol, Err: errors.New("no HTTP answer: " + s.Text(err.Error()))}
}
