package syslog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"github.com/wholelog/wholelog/internal/datagram"
	"github.com/wholelog/wholelog/internal/outq"
	"github.com/wholelog/wholelog/internal/ship"
	"github.com/wholelog/wholelog/internal/stream"
	"github.com/wholelog/wholelog/resolve"
)

// unixTransport sends to a socket of this host, by datagrams, or by a stream where the socket is one. Each dial finds out anew: what
// made the file may be replaced by a receiver of the other kind.
type unixTransport struct {
	path        string
	dial        datagram.DialFunc
	sendTimeout time.Duration
	stream      *stream.Transport
}

func newUnix(c *config) *unixTransport {
	return &unixTransport{
		path: c.target.path, dial: new(net.Dialer).DialContext, sendTimeout: c.sendTimeout, stream: c.newStream(c.target.path),
	}
}

// Limits implements [ship.Transport]. A local receiver has what the kernel took, so a delivery is evidence, and nothing ages.
func (t *unixTransport) Limits() ship.Limits {
	return ship.Limits{LinksPerAddr: 1, BatchBytes: 64 << 10, Window: 256 << 10}
}

// Dial implements [ship.Transport]. addr is the zero value: there is one socket, and its path is known.
func (t *unixTransport) Dial(ctx context.Context, addr netip.AddrPort, m *ship.Meter) (ship.Link, error) {
	conn, err := t.dial(ctx, "unixgram", t.path)
	if errors.Is(err, syscall.EPROTOTYPE) { // the socket is a stream
		return t.stream.Dial(ctx, addr, m)
	}
	if err != nil {
		if file, e := os.Stat(t.path); e == nil && file.Mode()&fs.ModeSocket == 0 {
			err = fmt.Errorf("no socket: %w", err) // of which the kernel says what it says of a socket that nobody has open
		}
		return nil, &ship.Fault{Cause: datagramOutcome(err).Cause, Err: err}
	}
	return newLocalLink(datagram.NewFlow(conn), newBacklog(outq.Of(conn)), t.sendTimeout, m), nil
}

// localSocket is the resolver of a unix socket: one fixed endpoint, for which the zero address stands.
type localSocket struct{}

// Resolve implements [resolve.Resolver].
func (localSocket) Resolve(context.Context) (resolve.Answer, error) {
	return resolve.Answer{Endpoints: []resolve.Endpoint{{}}}, nil
}

// String names it in errors.
func (localSocket) String() string { return "the local socket" }
