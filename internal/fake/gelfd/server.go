package gelfd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/wholelog/wholelog/chunk"
	"github.com/wholelog/wholelog/internal/fake/inbox"
)

// Options of a [Server]. The zero value is the default.
type Options struct {
	RcvBuf    int           // SO_RCVBUF to ask for, in bytes; 0 → 4 MiB. What the kernel gave is in Server.RcvBuf
	Discard   bool          // keep no messages: they are counted and given to OnMessage only
	OnMessage func(Message) // called for every message that is kept, from the receiving goroutine; must be fast
}

// Message is a message that came through, and the way it came.
type Message struct {
	Doc
	From    []netip.AddrPort // the distinct senders of its datagrams; more than one means its chunks took several flows
	Sizes   []int            // of its datagrams, in bytes, as they arrived, duplicates included; more than one: it was chunked
	Arrived time.Time        // the last of them
}

// Stats counts what a [Server] has seen.
type Stats struct {
	Datagrams uint64
	Bytes     uint64 // of the datagrams
	Whole     uint64 // payloads that were complete, refused ones included
	Messages  uint64 // those that were kept
	Rejected  map[Reason]uint64
	Dropped   map[Fault]uint64 // fields of messages that were kept
	Wrapped   uint64           // integers stored with another value
	NoHost    uint64           // messages without host: the server names the sender's address, behind a balancer the balancer's
	Assembler chunk.AssemblerStats
}

// Server receives GELF over UDP, like one Graylog input. Its methods may be called from any goroutine.
type Server struct {
	conn   *net.UDPConn
	addr   netip.AddrPort
	rcvBuf int
	opts   Options
	done   chan struct{} // closed when the receiving goroutine has ended

	inbox *inbox.Inbox[Message]

	mu    sync.Mutex
	stats Stats // but for Messages, which the inbox counts

	// These belong to the receiving goroutine.
	assembler chunk.Assembler
	parts     map[uint64]*parts
}

// parts is what is known of the datagrams of a message that is not complete yet.
type parts struct {
	first time.Time
	from  []netip.AddrPort
	sizes []int
}

func (p *parts) add(from netip.AddrPort, size int) {
	if !slices.Contains(p.from, from) {
		p.from = append(p.from, from)
	}
	p.sizes = append(p.sizes, size)
}

// Listen starts a Server on a UDP address; "" means 127.0.0.1 and any port.
func Listen(addr string, opts Options) (*Server, error) {
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	udp, err := net.ResolveUDPAddr("udp", addr)
	if err != nil {
		return nil, fmt.Errorf("gelfd: %w", err)
	}
	conn, err := net.ListenUDP("udp", udp)
	if err != nil {
		return nil, fmt.Errorf("gelfd: %w", err)
	}
	if opts.RcvBuf == 0 {
		opts.RcvBuf = 4 << 20
	}
	rcvBuf, err := setRcvBuf(conn, opts.RcvBuf)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("gelfd: receive buffer: %w", err), conn.Close())
	}
	s := newServer(opts)
	s.conn, s.rcvBuf = conn, rcvBuf
	s.addr = unmap(conn.LocalAddr().(*net.UDPAddr).AddrPort())
	go s.receive()
	return s, nil
}

// newServer makes a Server without a socket.
func newServer(opts Options) *Server {
	done := make(chan struct{})
	return &Server{
		opts: opts, done: done, inbox: inbox.New("gelfd", done, opts.Discard, opts.OnMessage), parts: make(map[uint64]*parts),
		stats: Stats{Rejected: make(map[Reason]uint64), Dropped: make(map[Fault]uint64)},
	}
}

// Addr is the address the server listens on.
func (s *Server) Addr() netip.AddrPort { return s.addr }

// RcvBuf is the size of the receive buffer as the kernel tells it. Linux cuts what was asked for at net.core.rmem_max and then
// tells twice that, of which a datagram takes more than its own length: 1420 bytes cost about 2304.
func (s *Server) RcvBuf() int { return s.rcvBuf }

// Close stops the server and waits for its goroutine. What it has seen can still be asked for. It may be called again.
func (s *Server) Close() error {
	err := s.conn.Close()
	<-s.done
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// Messages returns the messages so far, in the order they were complete.
func (s *Server) Messages() []Message { return s.inbox.Messages() }

// Stats returns the counters.
func (s *Server) Stats() Stats {
	messages := s.inbox.Count() // first, because what else is counted of a message was counted before
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.stats
	st.Messages = messages
	st.Rejected, st.Dropped = maps.Clone(st.Rejected), maps.Clone(st.Dropped)
	return st
}

// Wait returns when n messages were kept, counted from the start. When ctx ends before, or the server is closed, the error says
// what was seen instead.
func (s *Server) Wait(ctx context.Context, n int) error {
	return s.inbox.Wait(ctx, n, func() string { return fmt.Sprintf("%+v", s.Stats()) })
}

// receive reads datagrams until the socket is closed, and lets old chunks expire once a second.
func (s *Server) receive() {
	defer close(s.done)
	buf := make([]byte, 65536)
	tick := time.Now().Add(time.Second)
	for {
		// A deadline that cannot be set means a closed socket, which the read will tell.
		_ = s.conn.SetReadDeadline(tick)
		n, from, err := s.conn.ReadFromUDPAddrPort(buf)
		now := time.Now()
		var timeout net.Error
		switch {
		case err == nil:
			s.datagram(buf[:n], unmap(from), now)
		case errors.As(err, &timeout) && timeout.Timeout():
		case errors.Is(err, net.ErrClosed):
			return
		}
		if !now.Before(tick) {
			s.expire(now)
			tick = now.Add(time.Second)
		}
	}
}

func (s *Server) datagram(d []byte, from netip.AddrPort, now time.Time) {
	p := &parts{first: now}
	h, _, err := chunk.Parse(d)
	chunked := !errors.Is(err, chunk.ErrNotChunk)
	if chunked && len(d) >= chunk.HeaderSize {
		if old := s.parts[h.ID]; old != nil {
			p = old
		}
		s.parts[h.ID] = p
	}
	p.add(from, len(d))
	payload, done, err := s.assembler.Add(d, now)
	if done && chunked {
		delete(s.parts, h.ID)
	}

	s.mu.Lock()
	s.stats.Datagrams++
	s.stats.Bytes += uint64(len(d))
	s.stats.Assembler = s.assembler.Stats()
	if err != nil {
		reason := BadType
		if chunked {
			reason = BadChunk
		}
		s.stats.Rejected[reason]++
	}
	s.mu.Unlock()
	if done {
		s.payload(payload, p, now)
	}
}

// payload judges one whole payload and keeps what is left of it.
func (s *Server) payload(payload []byte, p *parts, now time.Time) {
	doc, err := Decode(payload)
	_, hasHost := doc.Fields["source"]
	if !s.count(doc, err, hasHost) {
		return
	}
	if !hasHost {
		doc.Fields["source"] = p.from[0].Addr().String()
	}
	if _, ok := doc.Fields["timestamp"]; !ok {
		doc.Fields["timestamp"] = now.UTC().Truncate(time.Millisecond)
	}
	s.inbox.Put(Message{Doc: doc, From: p.from, Sizes: p.sizes, Arrived: now})
}

// count counts what came of a payload and says whether it is a message.
func (s *Server) count(doc Doc, err error, hasHost bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Whole++
	var r *Reject
	if errors.As(err, &r) {
		s.stats.Rejected[r.Reason]++
		return false
	}
	s.stats.Wrapped += uint64(len(doc.Wrapped))
	for _, d := range doc.Dropped {
		s.stats.Dropped[d.Fault]++
	}
	if !hasHost {
		s.stats.NoHost++
	}
	return true
}

func (s *Server) expire(now time.Time) {
	s.assembler.Expire(now)
	for id, p := range s.parts {
		if now.Sub(p.first) > chunk.Validity {
			delete(s.parts, id)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Assembler = s.assembler.Stats()
}

// unmap writes an IPv4 sender on a socket of both families as IPv4.
func unmap(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}
