package flowlb

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wholelog/wholelog/chunk"
	"github.com/wholelog/wholelog/internal/fake/gelfd"
	"github.com/wholelog/wholelog/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// until polls cond, which becomes true soon on any machine that works.
func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("never: %s", what)
		}
	}
}

func start(t *testing.T, vips int, targets []netip.AddrPort, opts Options) *LB {
	t.Helper()
	lb, err := Listen(slices.Repeat([]string{"127.0.0.1:0"}, vips), targets, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := lb.Close(); err != nil {
			t.Error(err)
		}
	})
	return lb
}

// nodes starts n GELF receivers.
func nodes(t *testing.T, n int) (servers []*gelfd.Server, addrs []netip.AddrPort) {
	t.Helper()
	for range n {
		s, err := gelfd.Listen("", gelfd.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		servers, addrs = append(servers, s), append(addrs, s.Addr())
	}
	return servers, addrs
}

func socket(t *testing.T) *net.UDPConn {
	t.Helper()
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func send(t *testing.T, c *net.UDPConn, to netip.AddrPort, d []byte) {
	t.Helper()
	if _, err := c.WriteToUDPAddrPort(d, to); err != nil {
		t.Fatal(err)
	}
}

func message(i int) []byte {
	return fmt.Appendf(nil, `{"host":"h","short_message":"m","_i":%d,"_pad":"%s"}`, i, strings.Repeat("x", 200))
}

func datagrams(servers []*gelfd.Server) (n uint64) {
	for _, s := range servers {
		n += s.Stats().Datagrams
	}
	return n
}

func TestOneFlowSticksToOneTarget(t *testing.T) {
	servers, addrs := nodes(t, 3)
	lb := start(t, 1, addrs, Options{})
	c := socket(t)
	for i := range 100 {
		send(t, c, lb.VIPs()[0], message(i))
	}
	until(t, "all datagrams arrive", func() bool { return datagrams(servers) == 100 })
	st := lb.Stats()
	if len(st.UDPFlows) != 1 || len(st.Datagrams) != 1 || st.Live != 1 || st.Dropped != 0 {
		t.Errorf("%+v", st)
	}
	for i, s := range servers {
		for _, m := range s.Messages() {
			if len(m.From) != 1 {
				t.Fatalf("node %d sees the flow from %v", i, m.From)
			}
		}
		if n := st.Datagrams[addrs[i]]; n != s.Stats().Datagrams {
			t.Errorf("node %d has %d datagrams, the balancer counts %d", i, s.Stats().Datagrams, n)
		}
	}
}

// 64 flows miss one of three targets with a probability of 3·(2/3)^64, about 1e-11.
func TestManyFlowsReachAllTargets(t *testing.T) {
	servers, addrs := nodes(t, 3)
	lb := start(t, 1, addrs, Options{})
	for i := range 64 {
		send(t, socket(t), lb.VIPs()[0], message(i))
	}
	until(t, "all datagrams arrive", func() bool { return datagrams(servers) == 64 })
	st := lb.Stats()
	var flows uint64
	for _, a := range addrs {
		if st.UDPFlows[a] == 0 {
			t.Errorf("nothing reached %v", a)
		}
		flows += st.UDPFlows[a]
	}
	if flows != 64 || st.Live != 64 {
		t.Errorf("%+v", st)
	}
}

// Chunks of one message over several VIPs are several flows, so that few messages are whole; over one VIP all are.
func TestChunksOverSeveralVIPs(t *testing.T) {
	for _, tt := range []struct {
		name   string
		spread int // VIPs in use
	}{{"per message", 1}, {"per chunk", 3}} {
		t.Run(tt.name, func(t *testing.T) {
			servers, addrs := nodes(t, 3)
			lb := start(t, 3, addrs, Options{})
			sent := uint64(0)
			const messages = 60
			for i := range messages {
				c := socket(t)
				seq, err := chunk.Split(message(i), 100, uint64(i))
				if err != nil {
					t.Fatal(err)
				}
				for d := range seq {
					send(t, c, lb.VIPs()[int(sent)%tt.spread], d)
					sent++
				}
			}
			until(t, "all datagrams arrive", func() bool { return datagrams(servers) == sent })
			whole := uint64(0)
			for _, s := range servers {
				whole += s.Stats().Messages
			}
			if tt.spread == 1 && whole != messages {
				t.Errorf("%d of %d messages are whole", whole, messages)
			}
			// Three flows meet at one target by chance in one case of nine; half of 60 never do.
			if tt.spread > 1 && whole > messages/2 {
				t.Errorf("%d of %d messages are whole although their chunks took three ways", whole, messages)
			}
		})
	}
}

func TestAnswersComeBack(t *testing.T) {
	target := socket(t)
	lb := start(t, 1, []netip.AddrPort{target.LocalAddr().(*net.UDPAddr).AddrPort()}, Options{})
	c := socket(t)
	send(t, c, lb.VIPs()[0], []byte("ping"))
	buf := make([]byte, 16)
	n, from, err := target.ReadFromUDPAddrPort(buf)
	if err != nil || string(buf[:n]) != "ping" {
		t.Fatal(string(buf[:n]), err)
	}
	send(t, target, from, []byte("pong"))
	n, from, err = c.ReadFromUDPAddrPort(buf)
	if err != nil || string(buf[:n]) != "pong" || from != lb.VIPs()[0] {
		t.Errorf("%q from %v, %v", buf[:n], from, err)
	}
}

// A busy flow never moves; one that was idle long enough is a new one.
func TestTargetsChange(t *testing.T) {
	servers, addrs := nodes(t, 2)
	lb := start(t, 1, addrs[:1], Options{})
	busy := socket(t)
	send(t, busy, lb.VIPs()[0], message(0))
	until(t, "the first datagram arrives", func() bool { return servers[0].Stats().Datagrams == 1 })

	lb.SetTargets(addrs[1])
	send(t, busy, lb.VIPs()[0], message(1))
	until(t, "the live flow stays", func() bool { return servers[0].Stats().Datagrams == 2 })
	send(t, socket(t), lb.VIPs()[0], message(2))
	until(t, "a new flow goes to the new target", func() bool { return servers[1].Stats().Datagrams == 1 })

	until(t, "idle flows are forgotten", func() bool { age(t, lb, time.Hour); return lb.Stats().Live == 0 })
	send(t, busy, lb.VIPs()[0], message(3))
	until(t, "the forgotten flow goes to the new target", func() bool { return servers[1].Stats().Datagrams == 2 })
	if st := lb.Stats(); st.UDPFlows[addrs[0]] != 1 || st.UDPFlows[addrs[1]] != 2 {
		t.Errorf("%+v", st)
	}
}

// age makes all flows older than they are, and has them look at their age.
func age(t *testing.T, lb *LB, by time.Duration) {
	t.Helper()
	lb.mu.Lock()
	defer lb.mu.Unlock()
	for _, f := range lb.udp {
		f.last = f.last.Add(-by)
		if err := f.up.SetReadDeadline(time.Now()); err != nil {
			t.Error(err)
		}
	}
}

// Without any help a flow ends by its own clock, and not before.
func TestUDPIdle(t *testing.T) {
	_, addrs := nodes(t, 1)
	lb := start(t, 1, addrs, Options{UDPIdle: 50 * time.Millisecond})
	begin := time.Now()
	send(t, socket(t), lb.VIPs()[0], message(0))
	until(t, "the flow begins", func() bool { return lb.Stats().UDPFlows[addrs[0]] == 1 })
	until(t, "the flow is forgotten", func() bool { return lb.Stats().Live == 0 })
	if took := time.Since(begin); took < 50*time.Millisecond {
		t.Errorf("forgotten after %v", took)
	}
}

func TestNoTarget(t *testing.T) {
	lb := start(t, 1, nil, Options{})
	send(t, socket(t), lb.VIPs()[0], message(0))
	until(t, "the datagram is dropped", func() bool { return lb.Stats().Dropped == 1 })
	refused(t, lb)
	until(t, "the connection is dropped", func() bool { return lb.Stats().Dropped == 2 })
}

// A target that refuses is no news to a balancer: the flow goes on, and so does what comes when it listens again.
func TestRefusingTarget(t *testing.T) {
	target := socket(t)
	addr := target.LocalAddr().(*net.UDPAddr)
	lb := start(t, 1, []netip.AddrPort{addr.AddrPort()}, Options{})
	if err := target.Close(); err != nil {
		t.Fatal(err)
	}
	c := socket(t)
	for i := range 20 {
		send(t, c, lb.VIPs()[0], message(i))
	}
	until(t, "all are forwarded", func() bool { s := lb.Stats(); return s.Datagrams[addr.AddrPort()]+s.Dropped == 20 })
	if st := lb.Stats(); st.Live != 1 {
		t.Errorf("%+v", st)
	}
}

// echo starts a TCP server that sends back what it gets, and says who it is first.
func echo(t *testing.T, name byte) netip.AddrPort {
	t.Helper()
	l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.AcceptTCP()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				if _, err := c.Write([]byte{name}); err == nil {
					_, _ = io.Copy(c, c) // ends with the connection
				}
			}()
		}
	}()
	return l.Addr().(*net.TCPAddr).AddrPort()
}

func dial(t *testing.T, lb *LB) (c *net.TCPConn, name byte) {
	t.Helper()
	conn, err := net.Dial("tcp", lb.VIPs()[0].String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	buf := make([]byte, 1)
	if _, err := io.ReadFull(conn, buf); err != nil {
		t.Fatal(err)
	}
	return conn.(*net.TCPConn), buf[0]
}

// refused connects and is reset: so soon, sometimes, that the dial sees it.
func refused(t *testing.T, lb *LB) {
	t.Helper()
	c, err := net.Dial("tcp", lb.VIPs()[0].String())
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }()
	if _, err := c.Read(make([]byte, 1)); err == nil || isTimeout(err) {
		t.Errorf("got %v", err)
	}
}

func TestTCP(t *testing.T) {
	targets := []netip.AddrPort{echo(t, 0), echo(t, 1), echo(t, 2)}
	lb := start(t, 1, targets, Options{})
	var per [3]uint64
	for i := range 64 {
		c, name := dial(t, lb)
		per[name]++
		sent := binary.BigEndian.AppendUint64(nil, uint64(i))
		if _, err := c.Write(sent); err != nil {
			t.Fatal(err)
		}
		if err := c.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		// All of it comes back, and then the end: each half is closed by itself.
		if got, err := io.ReadAll(c); err != nil || !bytes.Equal(got, sent) {
			t.Fatalf("%x, %v", got, err)
		}
	}
	until(t, "all flows end", func() bool { return lb.Stats().Live == 0 })
	for i, target := range targets {
		if per[i] == 0 || lb.Stats().TCPFlows[target] != per[i] {
			t.Errorf("target %d: %d connections, %+v", i, per[i], lb.Stats().TCPFlows)
		}
	}
}

// The first write after too long a silence is taken by the client's own kernel and lost; then comes the reset.
func TestTCPIdle(t *testing.T) {
	lb := start(t, 1, []netip.AddrPort{echo(t, 7)}, Options{TCPIdle: 200 * time.Millisecond})
	c, _ := dial(t, lb)
	until(t, "the flow is forgotten", func() bool {
		lb.mu.Lock()
		defer lb.mu.Unlock()
		for f := range lb.tcp {
			return f.forgotten.Load()
		}
		return false
	})
	if err := c.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 1)); n != 0 || !isTimeout(err) {
		t.Fatalf("the silent client was told: %d, %v", n, err)
	}
	if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte("lost")); err != nil {
		t.Fatalf("first write: %v", err)
	}
	if n, err := c.Read(make([]byte, 4)); n != 0 || err == nil || isTimeout(err) {
		t.Errorf("after the first write: %d, %v", n, err)
	}
	until(t, "the flow is gone", func() bool { return lb.Stats().Live == 0 })
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

func TestTCPTargetGone(t *testing.T) {
	gone := echo(t, 0)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refusing := l.Addr().(*net.TCPAddr).AddrPort()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	lb := start(t, 1, []netip.AddrPort{gone}, Options{})
	dial(t, lb)
	lb.SetTargets(refusing)
	refused(t, lb)
	until(t, "it is counted", func() bool { return lb.Stats().Dropped == 1 })
}

func TestCloseEndsConnections(t *testing.T) {
	lb := start(t, 1, []netip.AddrPort{echo(t, 0)}, Options{})
	c, _ := dial(t, lb)
	for range 2 {
		if err := lb.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("still open")
	}
}

func TestListen(t *testing.T) {
	lb := start(t, 2, nil, Options{})
	if v := lb.VIPs(); v[0].Port() == v[1].Port() {
		t.Errorf("one IP address twice: %v", v)
	}
	for _, vips := range [][]string{{"127.0.0.1"}, {"127.0.0.1:0", "x:1"}, {lb.VIPs()[0].String()}, {"192.0.2.1:0"}} {
		if _, err := Listen(vips, nil, Options{}); err == nil || !strings.HasPrefix(err.Error(), "flowlb: ") {
			t.Errorf("%v: error %v", vips, err)
		}
	}
}
