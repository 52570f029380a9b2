package gelf

import (
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/mask"
	"github.com/wholelog/wholelog/internal/ship"
)

const (
	// maxText is how many bytes of a server's words an error repeats.
	maxText = 256
	// maxRetryAfter is more than the engine grants. It keeps what a server may say apart from the ends of the number range.
	maxRetryAfter = 24 * time.Hour
	// minSecret is the length from which the value of a header field counts as a secret. A shorter one guards nothing, and to hide
	// every "1" would make answers unreadable.
	minSecret = 4
)

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

// scrubber takes the handler's own secrets out of what a server says: some repeat the request in their answer.
type scrubber struct{ secrets *strings.Replacer }

func newScrubber(t target, h http.Header) *scrubber {
	var secrets []string
	if t.user+t.password != "" {
		pair := t.user + ":" + t.password
		secrets = append(secrets, pair, base64.StdEncoding.EncodeToString([]byte(pair)), t.password)
		if t.password == "" {
			secrets = append(secrets, t.user) // a token without a name
		}
	}
	for _, values := range h {
		for _, v := range values {
			_, token, _ := strings.Cut(v, " ") // "Bearer …"
			for _, s := range []string{v, token} {
				if len(s) >= minSecret {
					secrets = append(secrets, s)
				}
			}
		}
	}
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) }) // the longest first, which may hold others
	var pairs []string
	for _, s := range secrets {
		if s != "" {
			pairs = append(pairs, s, mask.Hidden)
		}
	}
	return &scrubber{strings.NewReplacer(pairs...)}
}

// text makes a server's words fit for an error: without secrets, in one line, not longer than maxText.
func (s *scrubber) text(words string) string {
	words = mask.Text(s.secrets.Replace(words))
	words = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(words, "�"), func(r rune) bool { return r <= ' ' || r == 0x7f }), " ")
	if len(words) > maxText {
		words = strings.ToValidUTF8(words[:maxText], "") + "…"
	}
	return words
}

// redirect says where an answer leads that is not followed. What stands behind the path of a URL is often a key to something.
func (s *scrubber) redirect(location string) string {
	if i := strings.IndexAny(location, "?#"); i >= 0 {
		location = location[:i]
	}
	if location == "" {
		return "a redirect is not followed"
	}
	return "a redirect is not followed; it leads to " + s.text(location)
}

// error makes an error of http.Transport fit to be shown. Those of the network stay what they are; the others quote the server.
func (s *scrubber) error(err error) error {
	if cause := ship.CauseOf(err); cause != delivery.CauseOther {
		return err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || strings.Contains(err.Error(), "server closed idle connection") {
		return &ship.Fault{Cause: delivery.CausePeerClosed, Err: errors.New("the server closed the connection before it answered")}
	}
	return &ship.Fault{Cause: delivery.CauseProtocol, Err: errors.New("no HTTP answer: " + s.text(err.Error()))}
}
