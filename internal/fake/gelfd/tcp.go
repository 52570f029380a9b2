package gelfd

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"
)

// maxFrame is the longest frame by default, without its NUL.
const maxFrame = 2 << 20

// TCPOptions of a [TCPServer]. The zero value is a new GELF TCP input of Graylog's with NUL as delimiter.
type TCPOptions struct {
	Options              // RcvBuf: 0 → as the system has it
	TLS      *tls.Config // for GELF over TLS
	MaxFrame int         // 0 → 2 097 152
	Deaf     bool        // accept connections, and read nothing
	KeepHalf bool        // keep a connection open that the client has half-closed, as some proxies do
}

// Conn is what a [TCPServer] knows of one connection.
type Conn struct {
	From       netip.AddrPort
	ServerName string // by SNI; "" without
	ClientCert bool   // the client has shown a certificate
	Bytes      uint64 // inside TLS, if there is any
	Frames     uint64 // refused ones included
	End        string // "" while it is open, else one of the constants
}

// The ends of connections.
const (
	EndFIN       = "fin"       // the client has closed or half-closed
	EndReset     = "reset"     // the client's RST, or its network
	EndFrame     = "frame"     // the server has closed it for a frame that is too long, empty or of one byte
	EndHandshake = "handshake" // TLS has not come about
	EndServer    = "server"    // Hangup or Close
)

// TCPServer receives GELF over TCP or TLS, like one Graylog input. It never writes. Its methods may be called from any goroutine.
type TCPServer struct {
	*Server
	opts     TCPOptions
	listener net.Listener
	wg       sync.WaitGroup

	mu     sync.Mutex
	conns  []*tcpConn
	closed bool
}

// tcpConn is a connection and what is known of it.
type tcpConn struct {
	Conn // guarded by the server's mu
	raw  net.Conn
	hung chan struct{} // closed by Hangup
}

// ListenTCP starts a TCPServer on a TCP address; "" means 127.0.0.1 and any port.
func ListenTCP(addr string, opts TCPOptions) (*TCPServer, error) {
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("gelfd: %w", err)
	}
	if opts.MaxFrame == 0 {
		opts.MaxFrame = maxFrame
	}
	s := &TCPServer{Server: newServer(opts.Options), opts: opts, listener: l}
	s.addr = unmap(l.Addr().(*net.TCPAddr).AddrPort())
	s.wg.Go(s.accept)
	return s, nil
}

// Close ends the server and all its connections at once, and waits for its goroutines. It may be called again.
func (s *TCPServer) Close() error {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	s.mu.Unlock()
	err := s.listener.Close()
	s.Hangup()
	s.wg.Wait()
	if first {
		close(s.done)
		return err
	}
	return nil
}

// Hangup closes all connections, as a server does with idle ones. New ones are accepted.
func (s *TCPServer) Hangup() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		if c.End == "" {
			c.End = EndServer
			close(c.hung)
			_ = c.raw.Close() // its goroutine hears of it
		}
	}
}

// Conns returns the connections so far, in the order in which they were accepted.
func (s *TCPServer) Conns() []Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Conn, len(s.conns))
	for i, c := range s.conns {
		all[i] = c.Conn
	}
	return all
}

// accept serves until the listener is closed.
func (s *TCPServer) accept() {
	for {
		conn, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // of one connection that has gone again
		}
		if tcp, ok := conn.(*net.TCPConn); ok && s.opts.RcvBuf > 0 {
			_ = tcp.SetReadBuffer(s.opts.RcvBuf) // it fails on a connection that has gone again
		}
		c := &tcpConn{raw: conn, hung: make(chan struct{})}
		c.From = unmap(conn.RemoteAddr().(*net.TCPAddr).AddrPort())
		s.mu.Lock()
		if s.closed {
			c.End = EndServer
			_ = conn.Close()
		} else {
			s.wg.Go(func() { s.serve(c) })
		}
		s.conns = append(s.conns, c)
		s.mu.Unlock()
	}
}

// serve reads one connection to its end.
func (s *TCPServer) serve(c *tcpConn) {
	end := s.read(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.End == "" {
		c.End = end
		_ = c.raw.Close() // what that says is nobody's business any more
	}
}

// read returns how the connection ended.
func (s *TCPServer) read(c *tcpConn) (end string) {
	if s.opts.Deaf {
		<-c.hung
		return EndServer
	}
	conn := c.raw
	if s.opts.TLS != nil {
		t := tls.Server(conn, s.opts.TLS)
		if err := t.Handshake(); err != nil {
			return EndHandshake
		}
		state := t.ConnectionState()
		s.mu.Lock()
		c.ServerName, c.ClientCert = state.ServerName, len(state.PeerCertificates) > 0
		s.mu.Unlock()
		conn = t
	}
	f := framer{max: s.opts.MaxFrame}
	buf := make([]byte, 64<<10)
	take := func(frame []byte) { s.frame(c, frame) }
	for {
		n, err := conn.Read(buf)
		s.mu.Lock()
		c.Bytes += uint64(n)
		s.mu.Unlock()
		bad := f.add(buf[:n], take)
		if bad == nil && errors.Is(err, io.EOF) {
			bad = f.end(take)
		}
		switch {
		case bad != nil:
			s.refuse()
			return EndFrame
		case err == nil:
			continue
		case !errors.Is(err, io.EOF):
			return EndReset
		}
		if s.opts.KeepHalf {
			<-c.hung
		}
		return EndFIN
	}
}

// frame judges one frame, as a datagram would be.
func (s *TCPServer) frame(c *tcpConn, frame []byte) {
	s.mu.Lock()
	c.Frames++
	s.mu.Unlock()
	p := &parts{}
	p.add(c.From, len(frame))
	s.payload(frame, p, time.Now())
}

// refuse counts a frame for which a connection is closed.
func (s *TCPServer) refuse() {
	s.Server.mu.Lock()
	defer s.Server.mu.Unlock()
	s.stats.Rejected[BadFrame]++
}
