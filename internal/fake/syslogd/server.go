package syslogd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"sync"

	"github.com/wholelog/wholelog/internal/fake/inbox"
)

// Options of a [Server]. The zero value is the default.
type Options struct {
	Framing   Framing       // of streams
	Limit     int           // bytes of the longest message; 0 → 8192
	TLS       *tls.Config   // streams are encrypted
	Discard   bool          // keep no messages: they are counted and given to OnMessage only
	OnMessage func(Message) // called for every message that is kept, from a receiving goroutine; must be fast
}

// Stats counts what a [Server] has seen.
type Stats struct {
	Messages uint64 // that were kept
	Bytes    uint64 // of all messages, without their frames
	Rejected map[Reason]uint64
	Conns    []Conn // streams, in the order they came
}

// Conn is what one stream brought.
type Conn struct {
	Messages uint64
	Open     bool
	Err      error // why the receiver gave it up; nil: the peer closed it, or it is open
}

// Server receives syslog like one input of a real receiver. Its methods may be called from any goroutine.
type Server struct {
	opts   Options
	addr   string
	packet net.PacketConn
	listen net.Listener
	wg     sync.WaitGroup
	done   chan struct{} // closed by Close

	inbox *inbox.Inbox[Message]

	mu      sync.Mutex
	rejects []error
	stats   Stats // but for Messages, which the inbox counts
	open    map[net.Conn]bool
}

// Listen starts a Server. network is "udp", "tcp", "unixgram" or "unix"; for the first two "" means 127.0.0.1 and any port.
func Listen(network, addr string, opts Options) (*Server, error) {
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	if opts.Limit == 0 {
		opts.Limit = 8192
	}
	done := make(chan struct{})
	s := &Server{
		opts: opts, done: done, inbox: inbox.New("syslogd", done, opts.Discard, opts.OnMessage), open: make(map[net.Conn]bool),
		stats: Stats{Rejected: make(map[Reason]uint64)},
	}
	var err error
	switch network {
	case "udp", "unixgram":
		if s.packet, err = net.ListenPacket(network, addr); err != nil {
			return nil, fmt.Errorf("syslogd: %w", err)
		}
		if b, ok := s.packet.(interface{ SetReadBuffer(int) error }); ok {
			_ = b.SetReadBuffer(4 << 20) // as much as the kernel gives
		}
		s.addr = s.packet.LocalAddr().String()
		s.wg.Go(s.datagrams)
	default:
		if s.listen, err = net.Listen(network, addr); err != nil {
			return nil, fmt.Errorf("syslogd: %w", err)
		}
		s.addr = s.listen.Addr().String()
		s.wg.Go(s.accept)
	}
	return s, nil
}

// Addr is the address or path the server listens on.
func (s *Server) Addr() string { return s.addr }

// Close stops the server, as if its process ended, and waits for its goroutines. What it has seen can still be asked for. It may be
// called again.
func (s *Server) Close() error {
	s.mu.Lock()
	select {
	case <-s.done:
	default:
		close(s.done)
	}
	for c := range s.open {
		c.Close()
	}
	s.mu.Unlock()
	var err error
	if s.packet != nil {
		err = s.packet.Close()
	} else {
		err = s.listen.Close()
	}
	s.wg.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// Hangup closes every open stream, as a receiver does that finds them idle for too long, and goes on listening.
func (s *Server) Hangup() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.open {
		c.Close()
	}
}

// Messages returns the messages so far, in the order they came.
func (s *Server) Messages() []Message { return s.inbox.Messages() }

// Rejects returns why messages and streams were refused.
func (s *Server) Rejects() []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.rejects)
}

// Stats returns the counters.
func (s *Server) Stats() Stats {
	messages := s.inbox.Count() // first, because what else is counted of a message was counted before
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.stats
	st.Messages = messages
	st.Rejected, st.Conns = maps.Clone(st.Rejected), slices.Clone(st.Conns)
	return st
}

// Wait returns when n messages were kept, counted from the start. When ctx ends before, or the server is closed, the error says
// what was seen instead.
func (s *Server) Wait(ctx context.Context, n int) error {
	return s.inbox.Wait(ctx, n, func() string { return fmt.Sprintf("%+v, %v", s.Stats(), errors.Join(s.Rejects()...)) })
}

// datagrams reads datagrams until the socket is closed.
func (s *Server) datagrams() {
	buf := make([]byte, 65536)
	for {
		n, _, err := s.packet.ReadFrom(buf)
		if err != nil {
			return
		}
		if n > s.opts.Limit {
			s.refuse(reject(BadSize, "%d bytes", n))
			continue
		}
		s.take(string(buf[:n]), -1)
	}
}

func (s *Server) accept() {
	for {
		c, err := s.listen.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		i := len(s.stats.Conns)
		s.stats.Conns = append(s.stats.Conns, Conn{Open: true})
		s.open[c] = true
		s.mu.Unlock()
		s.wg.Go(func() { s.stream(c, i) })
	}
}

// stream reads the stream i until it ends, or until its framing is broken: then all that follows is lost, as with real receivers.
func (s *Server) stream(c net.Conn, i int) {
	var r io.Reader = c
	if s.opts.TLS != nil {
		r = tls.Server(c, s.opts.TLS)
	}
	err := frames(r, s.opts.Framing, s.opts.Limit, func(frame string) { s.take(frame, i) })
	c.Close()
	s.mu.Lock()
	delete(s.open, c)
	s.stats.Conns[i].Open, s.stats.Conns[i].Err = false, err
	s.mu.Unlock()
	s.refuse(err)
}

// refuse counts a refusal.
func (s *Server) refuse(err error) {
	var r *Reject
	if errors.As(err, &r) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stats.Rejected[r.Reason]++
		s.rejects = append(s.rejects, err)
	}
}

// take judges a message that came by the stream conn, or in a datagram when that is negative.
func (s *Server) take(raw string, conn int) {
	m, err := Parse(raw)
	if err != nil {
		s.refuse(err)
		return
	}
	s.mu.Lock()
	s.stats.Bytes += uint64(len(raw))
	if conn >= 0 {
		s.stats.Conns[conn].Messages++
	}
	s.mu.Unlock()
	s.inbox.Put(m)
}
