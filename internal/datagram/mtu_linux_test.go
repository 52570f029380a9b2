package datagram

import (
	"net"
	"testing"
)

func TestPathMTU(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:9", "[::1]:9"} {
		conn, err := net.Dial("udp", addr)
		if err != nil {
			continue // a machine without that family
		}
		if mtu := pathMTU(conn, addr[0] == '['); mtu < 1280 {
			t.Errorf("the loopback interface has an MTU of %d towards %s", mtu, addr)
		}
		conn.Close()
		if mtu := pathMTU(conn, addr[0] == '['); mtu != 0 {
			t.Errorf("a closed socket has an MTU of %d", mtu)
		}
	}
	if mtu := pathMTU(&fake{}, false); mtu != 0 {
		t.Errorf("what is no socket has an MTU of %d", mtu)
	}
}
