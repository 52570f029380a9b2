package loopback

import (
	"net"
	"net/netip"
	"testing"
)

// An address can be bound, left and bound again, by both protocols, and is another one each time.
func TestAddr(t *testing.T) {
	seen := make(map[string]bool)
	for range 20 {
		addr, err := Addr()
		if err != nil {
			t.Fatal(err)
		}
		seen[addr] = true
		if a := netip.MustParseAddrPort(addr); a.Port() < lowest || a.Port() > highest || a.Addr() != netip.MustParseAddr("127.0.0.1") {
			t.Error(addr)
		}
		for range 2 {
			if err := free(addr); err != nil {
				t.Error(err)
			}
		}
	}
	if len(seen) < 15 {
		t.Errorf("only %d different addresses: tests beside each other would meet", len(seen))
	}
}

// What somebody has is not free, whichever the protocol.
func TestTaken(t *testing.T) {
	for _, network := range []string{"tcp", "udp"} {
		addr, err := Addr()
		if err != nil {
			t.Fatal(err)
		}
		var owner interface{ Close() error }
		if network == "tcp" {
			owner, err = net.Listen(network, addr)
		} else {
			owner, err = net.ListenPacket(network, addr)
		}
		if err != nil {
			t.Fatal(err)
		}
		if free(addr) == nil {
			t.Errorf("%s: %s is taken and called free", network, addr)
		}
		owner.Close()
		if err := free(addr); err != nil {
			t.Errorf("%s: %v after its owner left", network, err)
		}
	}
}
