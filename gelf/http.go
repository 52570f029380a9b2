package gelf

import (
	"context"
	"encoding/base64"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/datagram"
	"github.com/wholelog/wholelog/internal/ship"
)

const (
	// maxBody is what a GELF HTTP input takes in one request, after inflating by Content-Encoding.
	maxBody = 64 << 10
	// minBody ends the search for the size of body that a server takes: one that refuses a kilobyte refuses everything.
	minBody = 1 << 10
	// bulkBytes is what is dealt to a link for each request with Bulk. The rest of maxBody is for the line ends, of which a batch of the
	// shortest messages has fewer than a thousand.
	bulkBytes = maxBody - 1<<10
	// idleTime closes an unused connection before the server does, after 60 s: what is sent just then would be lost with it.
	idleTime = 45 * time.Second
	// maxHold is how long an address rests whose answer says that it or its client is set up wrongly, unless Backoff.Max is less.
	maxHold = 5 * time.Second
)

// httpConfig is what the HTTP transport needs to know, defaults filled in.
type httpConfig struct {
	connConfig
	target target
	bulk   bool
	zips   bool // a message too long for a plain body leaves as gzip
	header http.Header
	hold   time.Duration
}

// httpTo returns what a transport of requests to t, which may be the fallback, needs to know.
func (c *config) httpTo(t target) httpConfig {
	return httpConfig{
		connConfig: c.connTo(t),
		target:     t,
		bulk:       c.bulk,
		// Of several messages in one gzip stream, an input with bulk receiving on keeps none. A fallback exists for what is too
		// long, whatever the datagrams do.
		zips:   !c.bulk && (c.compression != CompressNone || t == c.fallback),
		header: c.header,
		hold:   c.hold,
	}
}

// httpTransport sends every record, or with Bulk every batch, as one POST request. A rotating dialer below one http.Transport would
// not balance, since it reuses connections as it likes. So each address has one of its own, and the engine chooses the address.
type httpTransport struct {
	config  httpConfig
	url     *url.URL
	plain   http.Header // of every request, not changed any more
	zipped  http.Header // of those with a gzip body
	scrub   scrubber
	dial    func(ctx context.Context, network, addr string) (net.Conn, error)
	now     func() time.Time // tests let the wall clock jump
	proxy   func(*http.Request) (*url.URL, error)
	noProxy sync.Once // the first link tells that the environment's proxy is not used
}

func newHTTP(c httpConfig) *httpTransport {
	t := &httpTransport{
		config: c,
		url:    &url.URL{Scheme: c.target.scheme, Host: c.target.hostPort(), RawPath: c.target.path},
		plain:  http.Header{"Content-Type": {"application/json"}, "User-Agent": {"wholelog"}},
		scrub:  newScrubber(c.target, c.header),
		dial:   new(net.Dialer).DialContext,
		now:    time.Now,
		proxy:  http.ProxyFromEnvironment,
	}
	// The path was found valid when the target was read; RawPath has it sent as it stands.
	t.url.Path, _ = url.PathUnescape(c.target.path)
	for name, values := range c.header {
		t.plain[http.CanonicalHeaderKey(name)] = values
	}
	if user, password := c.target.user, c.target.password; user+password != "" {
		t.plain["Authorization"] = []string{"Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))}
	}
	t.zipped = t.plain.Clone()
	t.zipped.Set("Content-Type", "application/gzip")
	return t
}

// Limits implements [ship.Transport]. As much is dealt at once as may be in flight: a record that waits in a link could have gone to
// another address.
func (t *httpTransport) Limits() ship.Limits {
	l := ship.Limits{LinksPerAddr: 1, BatchBytes: bulkBytes, MaxAge: t.config.age}
	if t.config.bulk {
		l.BatchBytes *= t.config.perAddr
	} else {
		l.BatchRecords = t.config.perAddr
	}
	return l
}

// Dial implements [ship.Transport]. It opens the first connection, so that an address which nobody answers at, or whose certificate is
// wrong, is known before a record goes there.
func (t *httpTransport) Dial(ctx context.Context, addr netip.AddrPort, m *ship.Meter) (ship.Link, error) {
	t.noProxy.Do(func() {
		if p, err := t.proxy(&http.Request{URL: t.url}); p != nil || err != nil {
			m.Trouble(delivery.CauseOther, errors.New("the HTTP proxy of the environment is not used, each address is connected to directly; NO_PROXY says where that is meant"))
		}
	})
	l := &httpLink{httpTransport: t, addr: addr.String(), meter: m, slots: make(chan struct{}, t.config.perAddr)}
	l.limit.Store(maxBody)
	l.alive, l.end = context.WithCancel(context.Background())
	l.http = &http.Transport{
		DialContext:            l.connect,
		DialTLSContext:         l.connect,
		Protocols:              new(http.Protocols),
		MaxConnsPerHost:        t.config.perAddr,
		MaxIdleConnsPerHost:    t.config.perAddr,
		IdleConnTimeout:        idleTime,
		MaxResponseHeaderBytes: 64 << 10,
		WriteBufferSize:        16 << 10,
		DisableCompression:     true, // an answer is a few words
	}
	l.http.Protocols.SetHTTP1(true)
	var err error
	if l.first, err = l.open(ctx); err != nil {
		l.end()
		return nil, err
	}
	l.used = t.now()
	return l, nil
}

// httpLink is all connections to one address. They are opened as requests need them.
type httpLink struct {
	*httpTransport
	addr  string
	meter *ship.Meter
	http  *http.Transport
	alive context.Context // ends with Close
	end   context.CancelFunc
	slots chan struct{} // as many as requests may be in flight
	limit bodyLimit     // bytes of a body that the server takes, as far as is known
	used  time.Time     // by Send

	mu    sync.Mutex
	first net.Conn // opened by Dial, not used yet
}

// Send implements [ship.Link]. It puts the records into requests, has as many of them in flight as there may be connections, and
// waits for all answers.
func (l *httpLink) Send(ctx context.Context, b *ship.Batch) error {
	if err := l.alive.Err(); err != nil {
		return net.ErrClosed
	}
	if now := l.now(); datagram.Apart(l.used, now, idleTime) {
		l.dropIdle() // the timer of a process that was frozen has not run
	}
	x := exchange{link: l, ctx: ctx, batch: b}
	for from := 0; from < b.Len(); {
		to := x.next(from)
		l.slots <- struct{}{}
		if x.requests.Add(1); to == b.Len() {
			x.request(from, to) // the last one, or the only one, needs no goroutine
		} else {
			go x.request(from, to)
		}
		from = to
	}
	x.requests.Wait()
	l.used = l.now()
	return x.fault
}

// Nudge implements [ship.Link]. Outcomes are known when Send returns.
func (l *httpLink) Nudge() {}

// Drain implements [ship.Link]. No request is under way outside Send, and HTTP knows no goodbye.
func (l *httpLink) Drain(context.Context) error { return nil }

// Gone implements [ship.Link]. A server that closes an idle connection has not gone: the next request opens another one.
func (l *httpLink) Gone() <-chan struct{} { return nil }

// Close implements [ship.Link]. It ends every request and every connection.
func (l *httpLink) Close() error {
	l.end()
	l.dropIdle()
	return nil
}

// dropIdle closes the connections that no request uses. One whose request is ending is closed then: http.Transport keeps that in mind
// until the next request.
func (l *httpLink) dropIdle() {
	l.http.CloseIdleConnections()
	if c := l.takeFirst(); c != nil {
		c.Close()
	}
}

func (l *httpLink) takeFirst() net.Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.first
	l.first = nil
	return c
}
