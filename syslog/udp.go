package syslog

import (
	"context"
	"net"
	"net/netip"
	"time"

	"github.com/wholelog/wholelog/internal/ship"
)

// socketAge is how long a socket serves. A balancer never moves a busy flow, so a fresh port is the only way off a node that is
// leaving.
const socketAge = time.Minute

// udpTransport sends every record as one datagram.
type udpTransport struct {
	dial        dialFunc
	sendTimeout time.Duration
}

func newUDP(sendTimeout time.Duration) *udpTransport {
	return &udpTransport{dial: new(net.Dialer).DialContext, sendTimeout: sendTimeout}
}

// Limits implements [ship.Transport].
func (t *udpTransport) Limits() ship.Limits {
	return ship.Limits{LinksPerAddr: 1, BatchBytes: 64 << 10, Blind: true, MaxAge: socketAge}
}

// Dial implements [ship.Transport]. It sends nothing, and yet fails when the host has no route to the address.
func (t *udpTransport) Dial(ctx context.Context, addr netip.AddrPort, m *ship.Meter) (ship.Link, error) {
	conn, err := t.dial(ctx, "udp", addr.String())
	if err != nil {
		return nil, err
	}
	return newDatagramLink(conn, t.sendTimeout, m), nil
}
