package dnsd

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
)

// Bubble runs f in a bubble of testing/synctest, with a server without sockets: what look-ups wait for is over at once, and a loaded
// machine changes nothing about it.
//
// The look-up before it is for package net: it makes locks out of channels with its first look-up, and were that in the bubble, the first
// one outside would end the program.
func Bubble(t *testing.T, f func(t *testing.T, s *Server)) {
	t.Helper()
	first := InMemory()
	if _, err := first.Resolver().LookupHost(t.Context(), "unknown.test."); err == nil {
		t.Fatal("dnsd: an unknown name has an address")
	}
	first.Close()
	synctest.Test(t, func(t *testing.T) {
		s := InMemory()
		defer s.Close()
		f(t, s)
	})
}

// InMemory returns a server without sockets, of which Bubble gives one: its Dial makes connections in memory. It has no Addr.
func InMemory() *Server {
	return &Server{
		stop:    make(chan struct{}),
		answers: make(map[key]Answer),
		queries: make(map[key]int),
		conns:   make(map[net.Conn]struct{}),
	}
}

// packets is one end of a pipe as a connected datagram socket: what is written at once is read at once, and net sends no lengths over a
// PacketConn.
type packets struct{ net.Conn }

func (p packets) ReadFrom(b []byte) (int, net.Addr, error) {
	n, err := p.Read(b)
	return n, p.RemoteAddr(), err
}

func (p packets) WriteTo(b []byte, _ net.Addr) (int, error) { return p.Write(b) }

// dialMemory connects as Dial does, to the server without sockets.
func (s *Server) dialMemory(ctx context.Context, network string) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	client, server := net.Pipe()
	if network == "tcp" {
		s.keep(server, s.serveStream)
		return client, nil
	}
	s.keep(server, s.servePackets)
	return packets{client}, nil
}

// servePackets answers queries as they come until the client goes.
func (s *Server) servePackets(c net.Conn) {
	buf := make([]byte, 64<<10)
	for {
		n, err := c.Read(buf)
		if err != nil {
			return
		}
		query := append([]byte(nil), buf[:n]...)
		// A goroutine each, as with a socket.
		s.wg.Go(func() {
			if answer := s.handle(query, true); answer != nil {
				c.Write(answer)
			}
		})
	}
}
