package main

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
)

// The control must be a good client but for its look-ups: when every look-up gives the same node, it loses nothing that fits UDP.
func TestControlIsFair(t *testing.T) {
	b, err := startBed()
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	one := b.Nodes[0].Addr()
	b.lookup = func(context.Context) ([]netip.AddrPort, error) { return []netip.AddrPort{one}, nil }
	rows, err := runPerChunk(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		want := r.sent
		if r.tooLong() {
			want = 0
		}
		if r.whole != [nodes]int{want} {
			t.Errorf("%d characters: %v whole, want %d on the first node", r.size, r.whole, want)
		}
	}
	for reason, n := range b.Nodes[0].Stats().Rejected {
		t.Errorf("%d messages refused for %s", n, reason)
	}
}

// A refusal is the loss of that message, in whatever place it comes.
func TestControlErrors(t *testing.T) {
	conn, err := net.ListenUDP("udp4", nil)
	if err != nil {
		t.Fatal(err)
	}
	to := []netip.AddrPort{conn.LocalAddr().(*net.UDPAddr).AddrPort()}
	down := errors.New("no such host")
	c := &perChunk{conn: conn, lookup: func(context.Context) ([]netip.AddrPort, error) { return to, down }}
	if err := c.send(t.Context(), message{50, 0}); !errors.Is(err, down) || c.bytes != 0 {
		t.Errorf("a failed look-up gives %v after %d bytes", err, c.bytes)
	}
	conn.Close()
	down = nil
	if err := c.send(t.Context(), message{50, 0}); !errors.Is(err, net.ErrClosed) || c.bytes != 0 {
		t.Errorf("a closed socket gives %v after %d bytes", err, c.bytes)
	}
}
