package gelf

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/fake/gelfd"
	"github.com/wholelog/wholelog/internal/ship"
)

// An httpRig is a link of requests over fake connections to a server, and everything it says. Tests of time use it in a bubble.
type httpRig struct {
	*httpTransport
	link   *httpLink
	server *gelfd.HTTPServer // nil with serve
	serve  func(net.Conn)    // is given the server's end of every connection, in the place of a server

	failDial map[int]error // by number from 1
	clock    atomic.Int64  // how much the wall clock went on while the process was frozen, in nanoseconds

	mu        sync.Mutex
	dials     int
	conns     []*pipeEnd // the client's ends
	settled   []settlement
	wire      int
	truncated int
	troubles  []trouble
	chosen    []chosen
}

// httpTarget reads a URL for a test.
func httpTarget(t testing.TB, url string) target {
	t.Helper()
	to, err := parseTarget(url)
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// newHTTPRig dials a link to http://graylog.test:12202/gelf with o, to a server like Graylog's that s says more of, or to serve.
func newHTTPRig(t testing.TB, o Options, s gelfd.HTTPOptions, serve func(net.Conn)) *httpRig {
	t.Helper()
	r := rigFor(t, o, "http://graylog.test:12202", serve)
	if serve == nil {
		l := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
		r.server = gelfd.ServeHTTP(l, s)
		r.serve = func(c net.Conn) {
			select {
			case l.conns <- c:
			case <-l.closed:
				c.Close()
			}
		}
		t.Cleanup(func() { r.server.Close() })
	}
	r.dialLink(t)
	return r
}

// rigFor makes a rig without a link.
func rigFor(t testing.TB, o Options, url string, serve func(net.Conn)) *httpRig {
	t.Helper()
	to := httpTarget(t, url)
	c, err := newConfig(to, o)
	if err != nil {
		t.Fatal(err)
	}
	r := &httpRig{httpTransport: newHTTP(c.httpTo(to)), serve: serve}
	r.dial, r.proxy = r.open, noProxy
	r.now = func() time.Time { return time.Now().Add(time.Duration(r.clock.Load())) }
	return r
}

func noProxy(*http.Request) (*url.URL, error) { return nil, nil }

func (r *httpRig) dialLink(t testing.TB) {
	t.Helper()
	link, err := r.Dial(t.Context(), rigAddr, r.meter())
	if err != nil {
		t.Fatal(err)
	}
	r.link = link.(*httpLink)
	t.Cleanup(func() { link.Close() })
}

func (r *httpRig) meter() *ship.Meter {
	locked := func(f func()) {
		r.mu.Lock()
		defer r.mu.Unlock()
		f()
	}
	return ship.NewMeter(ship.Recorder{
		Wire:      func(n int) { locked(func() { r.wire += n }) },
		Truncated: func(n int) { locked(func() { r.truncated += n }) },
		Trouble: func(cause delivery.Cause, err error) {
			locked(func() { r.troubles = append(r.troubles, trouble{cause, err}) })
		},
		Chose: func(local netip.AddrPort, records, bytes int, why string) {
			locked(func() { r.chosen = append(r.chosen, chosen{local, records, bytes, why}) })
		},
	})
}

// send sends records as one batch.
func (r *httpRig) send(ctx context.Context, records ...[]byte) error {
	return r.link.Send(ctx, ship.NewBatch(records, func(from, to int, o ship.Outcome) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.settled = append(r.settled, settlement{from, to, o})
	}))
}

// outcomes tells what was settled since the last time, by place: requests end in any order.
func (r *httpRig) outcomes() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	settled := r.settled
	r.settled = nil
	slices.SortFunc(settled, func(a, b settlement) int { return cmp.Compare(a.from, b.from) })
	return outcomesOf(settled)
}

// open is the rig's way to connect.
func (r *httpRig) open(_ context.Context, network, addr string) (net.Conn, error) {
	r.mu.Lock()
	r.dials++
	err := r.failDial[r.dials]
	if network != "tcp" || addr != rigAddr.String() {
		err = errors.New("dial " + network + " " + addr)
	}
	r.mu.Unlock()
	if err != nil {
		return nil, err
	}
	client, server := net.Pipe()
	c := &pipeEnd{Conn: client, closed: make(chan struct{})}
	r.mu.Lock()
	r.conns = append(r.conns, c)
	r.mu.Unlock()
	go r.serve(server)
	return c, nil
}

// pipeEnd is the client's end of a fake connection.
type pipeEnd struct {
	net.Conn
	once   sync.Once
	closed chan struct{}
	at     time.Time // of Close
}

func (c *pipeEnd) Close() error {
	c.once.Do(func() {
		c.at = time.Now()
		close(c.closed)
	})
	return c.Conn.Close()
}

func (c *pipeEnd) LocalAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 9), Port: 40000} }

// pipeListener accepts the server's ends of fake connections.
type pipeListener struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }

// answers is a server that takes one request a connection after the other, and gives it the answers in turn, each a whole one in raw
// bytes. It tells got what it read.
func answers(got func(request string), raw ...string) func(net.Conn) {
	var n atomic.Int64
	return func(c net.Conn) {
		defer c.Close()
		for {
			request, err := readRequest(c)
			if err != nil {
				return
			}
			if got != nil {
				got(request)
			}
			i := min(int(n.Add(1)), len(raw))
			if _, err := c.Write([]byte(raw[i-1])); err != nil {
				return
			}
		}
	}
}
