package gelf

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/ship"
)

// wireConn is a connection below TLS. It meters what the kernel took, and remembers that anything was: only then can a request that
// failed have reached the server.
type wireConn struct {
	net.Conn
	meter   *ship.Meter
	written atomic.Int64
}

func (c *wireConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if n > 0 {
		c.written.Add(int64(n))
		c.meter.Wire(n)
	}
	return n, err
}

// local is the source address, for the trace.
func (c *wireConn) local() netip.AddrPort {
	a, ok := c.LocalAddr().(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	addr := a.AddrPort()
	return netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port())
}

// wireOf finds the wireConn that open made below c.
func wireOf(c net.Conn) *wireConn {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	w, _ := c.(*wireConn)
	return w
}

// connect is what the http.Transport opens connections with. It is given the target's name, and goes to the address.
func (l *httpLink) connect(ctx context.Context, _, _ string) (net.Conn, error) {
	if c := l.takeFirst(); c != nil {
		return c, nil
	}
	return l.open(ctx)
}

// open connects, and with TLS shakes hands, within the time for that. Callbacks of the user's TLSConfig run here, on a goroutine of
// net/http where nobody else would catch their panics.
func (l *httpLink) open(ctx context.Context) (conn net.Conn, err error) {
	ctx, cancel := context.WithTimeout(ctx, l.config.dialTimeout)
	defer cancel()
	defer context.AfterFunc(l.alive, cancel)()
	raw, err := l.dial(ctx, "tcp", l.addr)
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) {
			err = op.Err // the rest is the address, which the engine names
		}
		return nil, err
	}
	wire := &wireConn{Conn: raw, meter: l.meter}
	if l.config.tls == nil {
		return wire, nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = &ship.Fault{Cause: delivery.CauseTLS, Err: fmt.Errorf("TLS handshake: panic: %v", p)}
		}
		if err != nil {
			raw.Close()
		}
	}()
	secure := l.config.tls.Clone()
	secure.NextProtos = []string{"http/1.1"} // a server that may choose would choose HTTP/2
	c := tls.Client(wire, secure)
	if err := c.HandshakeContext(ctx); err != nil {
		return nil, handshakeError(err)
	}
	return c, nil
}

// handshakeError says what failed, where the error does not, and finds the cause.
func handshakeError(err error) error {
	cause := ship.CauseOf(err)
	if cause == delivery.CauseOther {
		cause = delivery.CauseTLS // a peer that goes away, or asks for what we do not have
	}
	return &ship.Fault{Cause: cause, Err: fmt.Errorf("TLS handshake: %w", err)}
}
