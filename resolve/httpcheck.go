package resolve

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"

	"github.com/wholelog/wholelog/internal/mask"
)

// maxCheckText is how much of an answer is read for its first line.
const maxCheckText = 1 << 10

// HTTPCheck asks the address by HTTP GET: 200 is up, 429 degraded, 503 down, and anything else, a redirection too, a failure. The
// first line of an answer that is not 200 shows in the statistics of the address, at most 256 bytes of it and without the URL's
// user-info, which some servers repeat.
//
// The connection goes to the address, whatever the host in url; a port in url is kept, without one it is the address's own. The host
// is still the name for the Host header and, with https, for TLS, which trusts the system's roots. User-info in url is sent as Basic
// authorization. Every check has a connection of its own.
//
// For Graylog: "http://graylog.example.com:9000/api/system/lbstatus"; for Splunk:
// "https://hec.example.com:8088/services/collector/health". For roots or headers of your own, write a [Check].
func HTTPCheck(url string) Check { return newHTTPCheck(url) }

type httpCheck struct {
	url   *url.URL
	port  int // 0: the address's own
	scrub *mask.Scrubber
	err   error
}

func newHTTPCheck(raw string) *httpCheck {
	c := &httpCheck{}
	// What it says of a URL would quote it, and there may be a password in it.
	if c.url, c.err = url.Parse(raw); c.err != nil {
		c.err = errors.New("resolve: HTTPCheck: the URL cannot be parsed")
		return c
	}
	switch {
	case c.url.Scheme != "http" && c.url.Scheme != "https":
		c.err = errors.New("resolve: HTTPCheck: the URL must begin with http:// or https://")
	case c.url.Hostname() == "":
		c.err = errors.New("resolve: HTTPCheck: the URL has no host")
	case c.url.Port() != "":
		port, err := parsePort(c.url.Port())
		if err != nil {
			c.err = fmt.Errorf("resolve: HTTPCheck: %w", err)
		}
		c.port = int(port)
	}
	password, _ := c.url.User.Password()
	c.scrub = mask.NewScrubber(c.url.User.Username(), password, nil)
	return c
}

// Validate says what is wrong with the URL.
func (c *httpCheck) Validate() error { return c.err }

// String shows where the URL leads, without user-info and query, which often holds a key.
func (c *httpCheck) String() string {
	if c.err != nil {
		return "HTTPCheck"
	}
	return c.url.Scheme + "://" + c.url.Host + c.url.EscapedPath()
}

// Check implements [Check].
func (c *httpCheck) Check(ctx context.Context, addr netip.AddrPort) (Report, error) {
	if c.err != nil {
		return Report{}, c.err
	}
	client := http.Client{
		// One for each check: the connections of different addresses must never be mistaken for each other.
		Transport: &http.Transport{
			DisableKeepAlives: true,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return dialCheck(ctx, addr, c.port)
			},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	request := http.Request{Method: http.MethodGet, URL: c.url, Header: http.Header{"User-Agent": {"wholelog-check"}}}
	response, err := client.Do(request.WithContext(ctx))
	if err != nil {
		var shown *url.Error
		if errors.As(err, &shown) {
			err = shown.Err // the rest of it is the URL
		}
		if text := c.scrub.Text(err.Error()); text != err.Error() { // it quotes an answer that is none of HTTP
			err = errors.New(text)
		}
		return Report{}, err
	}
	defer response.Body.Close()
	note := c.scrub.Text(response.Status + ": " + firstLine(response.Body))
	switch response.StatusCode {
	case http.StatusOK:
		return Report{State: Up}, nil
	case http.StatusTooManyRequests:
		return Report{State: Degraded, Note: note}, nil
	case http.StatusServiceUnavailable:
		return Report{State: Down, Note: note}, nil
	}
	return Report{}, fmt.Errorf("status %s", note)
}

// firstLine is the first line of a short text. What could not be read of it is missing: the status has said what matters.
func firstLine(r io.Reader) string {
	lines := bufio.NewScanner(io.LimitReader(r, maxCheckText))
	lines.Scan()
	return lines.Text()
}
