//go:build linux

package interop

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wholelog/wholelog/gelf"
	"github.com/wholelog/wholelog/internal/fake/gelfd"
)

// newHandler makes a handler whose troubles end up in the test's log, unless o has another place for them.
func newHandler(t *testing.T, target string, o gelf.Options) *gelf.Handler {
	t.Helper()
	if o.Delivery.OnError == nil {
		o.Delivery.OnError = func(err error) { t.Logf("handler: %v", err) }
	}
	h, err := gelf.NewHandler(target, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return h
}

// flush fails the test when the handler cannot hand over all it has.
func flush(t *testing.T, h *gelf.Handler) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := h.Flush(ctx); err != nil {
		t.Fatalf("%v; %+v", err, h.Stats())
	}
}

// logAt logs a message of a fixed time, so that its size does not depend on when the test runs.
func logAt(t *testing.T, h slog.Handler, level slog.Level, text string, attrs ...slog.Attr) {
	t.Helper()
	r := slog.NewRecord(time.Date(2026, 3, 1, 12, 30, 45, 123e6, time.UTC), level, text, 0)
	r.AddAttrs(attrs...)
	if err := h.Handle(t.Context(), r); err != nil {
		t.Fatal(err)
	}
}

// listen starts a receiver on loopback.
func listen(t *testing.T) *gelfd.Server {
	t.Helper()
	s, err := gelfd.Listen("", gelfd.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// await waits for n messages, counted from the receiver's start, and returns them.
func await(t *testing.T, s *gelfd.Server, n int) []gelfd.Message {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.Wait(ctx, n); err != nil {
		t.Fatal(err)
	}
	return s.Messages()
}

// listenTogether starts n receivers on 127.0.0.1, 127.0.0.2 and so on, all on one port, as the nodes behind one name are.
func listenTogether(t *testing.T, n int) (nodes []*gelfd.Server, port uint16) {
	t.Helper()
	for range 20 { // a port that is free on the first address may be taken on another
		var err error
		if nodes, err = tryTogether(n); err == nil {
			for _, node := range nodes {
				t.Cleanup(func() { node.Close() })
			}
			return nodes, nodes[0].Addr().Port()
		}
	}
	t.Fatalf("no port is free on %d loopback addresses", n)
	return nil, 0
}

func tryTogether(n int) (nodes []*gelfd.Server, err error) {
	port := uint16(0)
	for i := range n {
		node, err := gelfd.Listen(fmt.Sprintf("127.0.0.%d:%d", 1+i, port), gelfd.Options{})
		if err != nil {
			for _, n := range nodes {
				n.Close()
			}
			return nil, err
		}
		nodes = append(nodes, node)
		port = nodes[0].Addr().Port()
	}
	return nodes, nil
}

// total is what the nodes have together.
type total struct {
	datagrams, messages uint64
	waiting             uint64 // incomplete messages, forgotten ones included
	refused             uint64
}

func sum(nodes []*gelfd.Server) (s total) {
	for _, n := range nodes {
		st := n.Stats()
		s.datagrams += st.Datagrams
		s.messages += st.Messages
		s.waiting += st.Assembler.WaitingMessages + st.Assembler.ExpiredMessages
		for _, count := range st.Rejected {
			s.refused += count
		}
	}
	return s
}

// shares is the number of messages on each node.
func shares(nodes []*gelfd.Server) (out []uint64) {
	for _, n := range nodes {
		out = append(out, n.Stats().Messages)
	}
	return out
}

// textOf is what was logged: the first line stands alone in short_message when there are more.
func textOf(m gelfd.Message) string {
	if full, ok := m.Fields["full_message"].(string); ok {
		return full
	}
	text, _ := m.Fields["message"].(string)
	return text
}

// datagram is one that a tap received.
type datagram struct {
	data []byte
	from netip.AddrPort
	at   time.Time
}

// tap is a UDP socket that keeps what it gets, for tests that look at every byte.
type tap struct {
	conn *net.UDPConn
	mu   sync.Mutex
	got  []datagram
}

func newTap(t *testing.T) *tap {
	t.Helper()
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadBuffer(4 << 20); err != nil {
		t.Fatal(err)
	}
	p := &tap{conn: conn}
	var wg sync.WaitGroup
	wg.Go(p.receive)
	t.Cleanup(func() { conn.Close(); wg.Wait() })
	return p
}

func (p *tap) receive() {
	buf := make([]byte, 65536)
	for {
		n, from, err := p.conn.ReadFromUDPAddrPort(buf)
		if err != nil {
			return
		}
		p.mu.Lock()
		p.got = append(p.got, datagram{slices.Clone(buf[:n]), from, time.Now()})
		p.mu.Unlock()
	}
}

func (p *tap) addr() string { return p.conn.LocalAddr().String() }

func (p *tap) port() uint16 { return p.conn.LocalAddr().(*net.UDPAddr).AddrPort().Port() }

func (p *tap) datagrams() []datagram {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.got)
}

// take waits for n datagrams, returns them and forgets them. A marker datagram, sent last by the test itself, shows that no more
// than n came: loopback keeps the order of what was sent one after the other.
func (p *tap) take(t *testing.T, n int) []datagram {
	t.Helper()
	const marker = "that was all"
	c, err := net.Dial("udp", p.addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte(marker)); err != nil {
		t.Fatal(err)
	}
	var got []datagram
	ended := within(t, patience, func() bool {
		got = p.datagrams()
		return len(got) > 0 && string(got[len(got)-1].data) == marker
	})
	if got = got[:max(0, len(got)-1)]; !ended || len(got) != n {
		t.Fatalf("%d datagrams, want %d", len(got), n)
	}
	p.mu.Lock()
	p.got = nil
	p.mu.Unlock()
	return got
}

// filler is n characters that need no escaping in JSON and hardly compress.
func filler(n int) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
	var b strings.Builder
	state := uint64(n)*2862933555777941757 + 3037000493
	for range n {
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
		b.WriteByte(letters[state>>58])
	}
	return b.String()
}
