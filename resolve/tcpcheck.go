package resolve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
)

var errCheckPort = errors.New("the port must be from 1 to 65535")

// TCPCheck takes an address for up when it accepts a TCP connection on port, which is closed at once; a port of 0 is the service's
// own. It is also what tells a dead receiver of datagrams, if something there listens on TCP.
//
// Some relays keep a session for every connection that its peer closed, however long ago. HAProxy 2.6, and some versions after it, do
// in their log-forward sections: maxconn, 10 unless set, is used up by as many checks, and then nothing is read there any more although
// connections are still accepted. So with port 0 an address to which a connection is open is not checked; but a datagram service has
// none, and neither has an address that waits for its first record. Check such a relay on another port, or by another kind of check.
func TCPCheck(port int) Check { return tcpCheck(port) }

type tcpCheck int

// Validate says whether the port can be one.
func (c tcpCheck) Validate() error {
	if c == 0 {
		return nil
	}
	return validPort("TCPCheck", int(c))
}

func validPort(what string, port int) error {
	if port < 1 || port > 65535 {
		return fmt.Errorf("resolve: %s: %w", what, errCheckPort)
	}
	return nil
}

// SkipConnected says that an open connection tells as much, if it is one to the same port.
func (c tcpCheck) SkipConnected() bool { return c == 0 }

// Check implements [Check].
func (c tcpCheck) Check(ctx context.Context, addr netip.AddrPort) (Report, error) {
	conn, err := dialCheck(ctx, addr, int(c))
	if err != nil {
		return Report{}, err
	}
	// Its error would tell how the goodbye went, and the answer is known already.
	_ = conn.Close()
	return Report{State: Up}, nil
}

// dialCheck connects to port of addr's host; 0 is addr's own port.
func dialCheck(ctx context.Context, addr netip.AddrPort, port int) (net.Conn, error) {
	if port != 0 {
		addr = netip.AddrPortFrom(addr.Addr(), uint16(port))
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", addr.String())
}
