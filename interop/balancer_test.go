//go:build linux

package interop

import (
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/wholelog/wholelog/chunk"
	"github.com/wholelog/wholelog/gelf"
	"github.com/wholelog/wholelog/internal/fake/gelfd"
	"github.com/wholelog/wholelog/resolve"
)

// The arrangement of the field: a rotating name in front of a balancer in front of three nodes, and the system's own resolver.

const (
	fourChunks = 4*(1420-chunk.HeaderSize) - 300 // characters that make a message of four chunks of 1420, uncompressed
	dnsPort    = 53
)

func vipAddrs() (out []netip.Addr) {
	for _, v := range vips() {
		out = append(out, v.Addr())
	}
	return out
}

// Per-chunk look-ups lose every chunked message, whatever the balancer does with them; messages of ours, across the same name and
// balancer, all arrive, and their source ports reach all targets.
func TestR16_BehindBalancer(t *testing.T) {
	if !behindBalancer(t, "cross") {
		return
	}
	nodes := balancedNodes(t)
	d := startDNSMasq(t, dnsPort, vipAddrs()...)

	const messages = 90
	c := scatteringSocket(t, nodes)
	before := sum(nodes)
	sent := perChunk(t, c, nodes, messages)
	if got := sum(nodes); got.datagrams != before.datagrams+sent || got.messages != before.messages || got.waiting < 2*messages {
		t.Errorf("control: before %+v, now %+v; want %d datagrams more, no message, and pieces on two nodes at least", before, got, sent)
	}
	t.Logf("control: all %d datagrams of %d messages arrived, and of the messages 0", sent, messages)

	s, h := behindName(t, nodes, gelf.Options{ChunkSize: 1420, Compression: gelf.CompressNone})
	pieces := sum(nodes).waiting
	for range 300 {
		s.send(filler(fourChunks))
	}
	flush(t, h)
	if got, st := sum(nodes), h.Stats(); got.waiting != pieces || st.Delivered != 300 || st.Dropped+st.Resent != 0 {
		t.Errorf("the nodes have %+v, %d pieces before; %+v", got, pieces, st)
	}
	ports := judgeFlows(t, nodes, len(vips())*16)
	if slices.Min(ports) == 0 {
		t.Errorf("flows on the nodes: %v", ports)
	}
	t.Logf("wholelog: 300 of 300 messages of four chunks arrived; flows on the nodes: %v; dnsmasq was asked %d times for A", ports, d.queries("A"))
}

// behindName is newSender for the name, found as a service finds it: by the resolv.conf of the system.
func behindName(t *testing.T, nodes []*gelfd.Server, o gelf.Options) (*sender, *gelf.Handler) {
	t.Helper()
	h := newHandler(t, "udp://"+service+":"+gelfPort, o)
	return &sender{t: t, nodes: nodes, log: slog.New(h), sent: sum(nodes).messages}, h
}

// scatteringSocket returns a socket whose flows to the three VIPs reach at least two targets. One socket in nine has the luck that
// all three meet, and would hide what the control shows.
func scatteringSocket(t *testing.T, nodes []*gelfd.Server) *net.UDPConn {
	t.Helper()
	for range 50 {
		c, err := net.ListenUDP("udp4", nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		before, sent := shares(nodes), sum(nodes).messages
		for _, vip := range vips() {
			if _, err := c.WriteToUDPAddrPort([]byte(`{"host":"control","short_message":"which way?"}`), vip); err != nil {
				t.Fatal(err)
			}
		}
		until(t, "the probes arrive", func() bool { return sum(nodes).messages == sent+3 })
		reached := 0
		for i, n := range shares(nodes) {
			if n > before[i] {
				reached++
			}
		}
		if reached > 1 {
			return c
		}
	}
	t.Fatal("no socket reaches two targets")
	return nil
}

// perChunk sends messages of four chunks from one socket, each chunk to what the name stands for at that moment. It returns the
// number of datagrams, all of which have arrived.
func perChunk(t *testing.T, c *net.UDPConn, nodes []*gelfd.Server, messages int) (sent uint64) {
	t.Helper()
	r := &net.Resolver{PreferGo: true}
	base := sum(nodes).datagrams
	for i := range messages {
		payload := fmt.Sprintf(`{"host":"control","short_message":"%s"}`, filler(fourChunks))
		parts, err := chunk.Split([]byte(payload), 1420, uint64(i))
		if err != nil {
			t.Fatal(err)
		}
		for part := range parts {
			addr := netip.AddrPortFrom(lookup(t, r)[0], vips()[0].Port())
			if _, err := c.WriteToUDPAddrPort(part, addr); err != nil {
				t.Fatal(err)
			}
			sent++
		}
		until(t, "the chunks arrive", func() bool { return sum(nodes).datagrams == base+sent })
	}
	return sent
}

// judgeFlows checks that each message of a wholelog handler came from one source port, in all from as many as expected, and returns
// how many of them each node has seen. A port towards one VIP may serve another VIP too: it is a socket each, and may be one number.
func judgeFlows(t *testing.T, nodes []*gelfd.Server, sockets int) (perNode []int) {
	t.Helper()
	all := map[netip.AddrPort]bool{}
	for _, n := range nodes {
		here := map[netip.AddrPort]bool{}
		for _, m := range n.Messages() {
			if m.Fields["source"] == "control" {
				continue
			}
			if len(m.From) != 1 || m.From[0].Addr() != netip.MustParseAddr("10.77.0.2") {
				t.Errorf("a message came from %v", m.From)
			}
			here[m.From[0]], all[m.From[0]] = true, true
		}
		perNode = append(perNode, len(here))
	}
	if len(all) > sockets || len(all) < sockets*9/10 {
		t.Errorf("%d source ports, want about %d", len(all), sockets)
	}
	return perNode
}

// One socket to one address is one flow and so one target for ever. Several source ports reach all targets behind that one address.
func TestSourcePortsReachAllTargets(t *testing.T) {
	if !behindBalancer(t, "cross") {
		return
	}
	nodes := balancedNodes(t)
	one := resolve.Options{Resolver: resolve.Static(vips()[0].String())}
	for _, tt := range []struct{ flows, reached int }{{1, 1}, {48, 3}} {
		before := shares(nodes)
		s, h := behindName(t, nodes, gelf.Options{Flows: tt.flows, Resolve: one})
		for range 144 {
			s.send(filler(3000))
		}
		flush(t, h)
		reached := 0
		for i, n := range shares(nodes) {
			if n > before[i] {
				reached++
			}
		}
		if reached != tt.reached {
			t.Errorf("%d flows reach %d targets, want %d", tt.flows, reached, tt.reached)
		}
		t.Logf("%d flows: 144 of 144 messages arrived, shares before %v, after %v", tt.flows, before, shares(nodes))
	}
	if got := sum(nodes); got.waiting+got.refused != 0 {
		t.Errorf("%+v", got)
	}
}

// A balancer never moves a busy flow, so a target that is leaving keeps what it has until the sender takes another source port.
func TestFlowsLeaveATargetThatLeaves(t *testing.T) {
	if !behindBalancer(t, "cross") {
		return
	}
	nodes := balancedNodes(t)
	d := startDNSMasq(t, dnsPort, vipAddrs()...)
	const age = 2 * time.Second
	leaving := func() uint64 { return nodes[0].Stats().Messages }

	s, h := behindName(t, nodes, gelf.Options{FlowAge: age})
	for range 60 {
		s.send("before")
	}
	had := leaving()
	sim(t, "targets", "2 3")
	begin := time.Now()
	s.sendUntil(patience, "the leaving target gets some more", func() bool { return leaving() > had })
	// Each flow has its turn every 48 messages. One renewal clears them all, but for a new flow that draws a port whose old flow
	// the balancer still knows; that one has to wait for the next.
	last, lastAt := s.sent, begin
	s.sendUntil(3*age, "the leaving target gets no more", func() bool {
		if now := leaving(); now > had {
			had, last, lastAt = now, s.sent, time.Now()
		}
		return s.sent-last >= 200
	})
	flush(t, h)
	if got := sum(nodes); got.messages != s.sent || got.waiting+got.refused != 0 {
		t.Errorf("sent %d, the nodes have %+v", s.sent, got)
	}
	t.Logf("%d messages, shares %v; the target that left had its last one %v after it left, source ports live %v; dnsmasq was asked %d times for A",
		s.sent, shares(nodes), lastAt.Sub(begin).Round(time.Millisecond), age, d.queries("A"))
}
