// Package dnsd is a small DNS server on loopback for tests and demonstrations. What it answers is set per name and may be
// changed while it runs: rotating and fixed sets, aliases, services, every kind of failure, delay and silence. It counts what it is asked.
//
//	s, err := dnsd.Start()
//	defer s.Close()
//	s.Set("logs.test", dnsd.Answer{Addrs: addrs, TTL: time.Minute})
//	resolver := resolve.DNS("logs.test.:12201", s.Resolver())
//
// Its sockets are real ones, so it cannot be used inside a testing/synctest bubble.
package dnsd

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// Answer says how one name is answered. The zero value is an empty NOERROR answer.
type Answer struct {
	Addrs     []netip.Addr  // A and AAAA records, by the family of each
	SRV       []SRV         // SRV records
	Fixed     bool          // keep the order; otherwise it turns by one address with every query, as AWS and dnsmasq do
	TTL       time.Duration // of every record, in whole seconds
	CNAME     string        // the name is an alias: this record first, then what the target answers
	RCode     RCode         // anything but NoError goes out without records
	Delay     time.Duration // before the answer
	Silent    bool          // no answer at all
	Truncated bool          // over UDP only the TC bit, so that the client comes again over TCP
}

// SRV is a record that names a host and port of a service (RFC 2782).
type SRV struct {
	Priority, Weight, Port uint16
	Target                 string // "." for a service that is not offered
}

// key is a name and a type; type 0 stands for all types that have no entry of their own.
type key struct {
	name string
	typ  Type
}

// Server is a running server. All methods are safe for concurrent use.
type Server struct {
	udp  *net.UDPConn
	tcp  net.Listener
	stop chan struct{}
	once sync.Once
	wg   sync.WaitGroup

	mu      sync.Mutex
	answers map[key]Answer
	queries map[key]int
	conns   map[net.Conn]struct{}
}

// attempts is how often Start looks for a port that is free for UDP and TCP at once.
const attempts = 20

// Start starts a server on a free port of 127.0.0.1, UDP and TCP. It knows no names yet: all are answered NXDOMAIN.
func Start() (*Server, error) {
	var last error
	for range attempts {
		udp, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			return nil, fmt.Errorf("dnsd: %w", err)
		}
		tcp, err := net.Listen("tcp4", udp.LocalAddr().String())
		if err != nil {
			udp.Close()
			last = err
			continue
		}
		// Questions of hundreds of clients at once fit, as far as the kernel allows: a lost one costs its client a second.
		udp.SetReadBuffer(1 << 20)
		s := &Server{
			udp: udp, tcp: tcp,
			stop:    make(chan struct{}),
			answers: make(map[key]Answer),
			queries: make(map[key]int),
			conns:   make(map[net.Conn]struct{}),
		}
		s.wg.Go(s.serveUDP)
		s.wg.Go(s.serveTCP)
		return s, nil
	}
	return nil, fmt.Errorf("dnsd: no port is free for both UDP and TCP: %w", last)
}

// Addr is the server's address, the same port for UDP and TCP.
func (s *Server) Addr() netip.AddrPort {
	return s.udp.LocalAddr().(*net.UDPAddr).AddrPort()
}

// Set says how name is answered from now on, for every type without an entry of its own.
func (s *Server) Set(name string, a Answer) { s.SetType(name, 0, a) }

// SetType is Set for one type of question only: a server that swallows AAAA questions, for example.
func (s *Server) SetType(name string, t Type, a Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[key{canonical(name), t}] = a
}

// Remove makes name unknown: NXDOMAIN.
func (s *Server) Remove(name string) {
	name = canonical(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	for k := range s.answers {
		if k.name == name {
			delete(s.answers, k)
		}
	}
}

// Queries is how often name was asked for with type t, unanswered and failed questions included.
func (s *Server) Queries(name string, t Type) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queries[key{canonical(name), t}]
}

// Resolver returns a resolver that asks this server whatever resolv.conf says.
func (s *Server) Resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: s.Dial}
}

// Dial connects to the server; it has the form of net.Resolver's Dial, whose address it ignores.
func (s *Server) Dial(ctx context.Context, network, _ string) (net.Conn, error) {
	if s.udp == nil {
		return s.dialMemory(ctx, network)
	}
	var d net.Dialer
	return d.DialContext(ctx, network, s.Addr().String())
}

// Close stops the server and waits for its goroutines. Answers that are still delayed are not sent.
func (s *Server) Close() error {
	s.once.Do(func() {
		close(s.stop)
		if s.udp != nil {
			s.udp.Close()
			s.tcp.Close()
		}
		s.mu.Lock()
		for c := range s.conns {
			c.Close()
		}
		s.mu.Unlock()
	})
	s.wg.Wait()
	return nil
}

func (s *Server) serveUDP() {
	buf := make([]byte, 64<<10)
	for {
		n, from, err := s.udp.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // an ICMP error of an earlier answer, on systems that report it here
		}
		query := append([]byte(nil), buf[:n]...)
		// A goroutine each: one delayed answer must not hold up the others.
		s.wg.Go(func() {
			if answer := s.handle(query, true); answer != nil {
				s.udp.WriteToUDPAddrPort(answer, from)
			}
		})
	}
}

func (s *Server) serveTCP() {
	for {
		c, err := s.tcp.Accept()
		if err != nil {
			return
		}
		s.keep(c, s.serveStream)
	}
}

// keep serves a connection until it ends or the server is closed.
func (s *Server) keep(c net.Conn, serve func(net.Conn)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.stop: // Close may have been through the list of connections before this one is on it
		c.Close()
		return
	default:
	}
	s.conns[c] = struct{}{}
	s.wg.Go(func() {
		defer func() {
			c.Close()
			s.mu.Lock()
			delete(s.conns, c)
			s.mu.Unlock()
		}()
		serve(c)
	})
}

// serveStream answers queries that have their length in front (RFC 1035 §4.2.2) until the client goes. A question
// without an answer is passed over, as on UDP.
func (s *Server) serveStream(c net.Conn) {
	for {
		var size [2]byte
		if _, err := io.ReadFull(c, size[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(c, query); err != nil {
			return
		}
		answer := s.handle(query, false)
		if answer == nil {
			continue
		}
		framed := binary.BigEndian.AppendUint16(nil, uint16(len(answer)))
		if _, err := c.Write(append(framed, answer...)); err != nil {
			return
		}
	}
}

// handle returns the answer to a query after its delay, or nil when there is none to give.
func (s *Server) handle(query []byte, udp bool) []byte {
	q, ok := parseQuery(query)
	if !ok {
		return nil
	}
	answer, delay := s.answer(q, udp)
	if delay > 0 {
		t := time.NewTimer(delay)
		defer t.Stop()
		select {
		case <-t.C:
		case <-s.stop:
			return nil
		}
	}
	return answer
}

// maxAliases ends a circle of aliases.
const maxAliases = 8

func (s *Server) answer(q question, udp bool) (packet []byte, delay time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := key{q.name, q.typ}
	turn := s.queries[asked]
	s.queries[asked]++

	a, known := s.find(q.name, q.typ)
	if a.Silent {
		return nil, 0
	}
	if !known {
		a.RCode = NXDomain
	}
	r := newResponse(q, a.RCode)
	if a.RCode == NoError {
		s.fill(r, q, a, turn)
	}
	if udp && (a.Truncated || len(r.buf) > maxUDP) {
		r.truncate(q)
	}
	return r.buf, a.Delay
}

// fill writes the records of a: the aliases on the way, then what was asked for, of addresses those of the family.
func (s *Server) fill(r *response, q question, a Answer, turn int) {
	owner := q.name
	for range maxAliases {
		if a.CNAME == "" {
			break
		}
		r.cname(owner, a.CNAME, a.TTL)
		owner = canonical(a.CNAME)
		a, _ = s.find(owner, q.typ)
	}
	if q.typ == TypeSRV {
		for _, srv := range a.SRV {
			r.srv(owner, srv, a.TTL)
		}
		return
	}
	var addrs []netip.Addr
	for _, addr := range a.Addrs {
		if typeOf(addr) == q.typ {
			addrs = append(addrs, addr)
		}
	}
	if a.Fixed {
		turn = 0
	}
	for i := range addrs {
		r.address(owner, addrs[(turn+i)%len(addrs)], a.TTL)
	}
}

func (s *Server) find(name string, t Type) (Answer, bool) {
	if a, ok := s.answers[key{name, t}]; ok {
		return a, true
	}
	a, ok := s.answers[key{name, 0}]
	return a, ok
}

func canonical(name string) string {
	return strings.ToLower(strings.TrimSuffix(name, "."))
}
