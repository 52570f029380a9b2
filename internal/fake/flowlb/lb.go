// Package flowlb is a layer 4 load balancer on loopback for tests and demonstrations. It treats flows as an AWS Network Load
// Balancer does: a hash of protocol, source and destination chooses the target when a flow begins, and the flow stays there as
// long as it is busy, whatever becomes of the targets. Several addresses (VIPs) stand in front of the same targets, one for
// each zone.
//
// What follows from this is what senders get wrong: datagrams of one message over two VIPs, or from two ports, reach two
// targets; one busy socket reaches one target for ever; a connection that was idle for too long is dead and does not know it.
package flowlb

import (
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Options of an [LB]. The zero value is the default.
type Options struct {
	UDPIdle time.Duration // a UDP flow without a datagram for so long is forgotten; 0 → 120 s
	TCPIdle time.Duration // a TCP flow without a byte for so long is forgotten, and reset at the next byte; 0 → 350 s
}

// Stats counts what an [LB] has seen. Targets that had nothing are absent.
type Stats struct {
	UDPFlows  map[netip.AddrPort]uint64 // flows opened, by target
	TCPFlows  map[netip.AddrPort]uint64
	Datagrams map[netip.AddrPort]uint64 // forwarded, by target
	Live      int                       // flows in the table now
	Dropped   uint64                    // datagrams and connections that had no target, or whose target did not take them
}

// LB is a running load balancer. Its methods may be called from any goroutine.
type LB struct {
	vips []vip
	opts Options
	seed maphash.Seed
	wg   sync.WaitGroup

	mu      sync.Mutex
	targets []netip.AddrPort
	udp     map[flowKey]*udpFlow
	tcp     map[*tcpFlow]struct{}
	stats   Stats
	closed  bool
}

// vip is one address, for UDP and TCP.
type vip struct {
	addr netip.AddrPort
	udp  *net.UDPConn
	tcp  *net.TCPListener
}

func (v vip) close() error { return errors.Join(v.udp.Close(), v.tcp.Close()) }

// flowKey is the 5-tuple, but for the protocol, of which each has its own table.
type flowKey struct{ src, dst netip.AddrPort }

// Listen starts a load balancer on the VIPs, such as "127.0.0.2:0". Those with port 0 get the same free port, as the addresses
// behind one name have, except that an IP address that is listed again gets another.
func Listen(vips []string, targets []netip.AddrPort, opts Options) (*LB, error) {
	if opts.UDPIdle == 0 {
		opts.UDPIdle = 120 * time.Second
	}
	if opts.TCPIdle == 0 {
		opts.TCPIdle = 350 * time.Second
	}
	lb := &LB{
		opts: opts, seed: maphash.MakeSeed(), targets: slices.Clone(targets),
		udp: make(map[flowKey]*udpFlow), tcp: make(map[*tcpFlow]struct{}),
		stats: Stats{UDPFlows: make(map[netip.AddrPort]uint64), TCPFlows: make(map[netip.AddrPort]uint64), Datagrams: make(map[netip.AddrPort]uint64)},
	}
	// A port that is free for TCP on one address may be taken for UDP, or on the next one.
	var err error
	for range 20 {
		if lb.vips, err = open(vips); err == nil {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("flowlb: %w", err)
	}
	for _, v := range lb.vips {
		lb.wg.Go(func() { lb.serveUDP(v) })
		lb.wg.Go(func() { lb.serveTCP(v) })
	}
	return lb, nil
}

// open opens all VIPs or none.
func open(addrs []string) (vips []vip, err error) {
	defer func() {
		if err != nil {
			for _, v := range vips {
				_ = v.close() // the first error is the one to tell
			}
			vips = nil
		}
	}()
	var port uint16
	for _, s := range addrs {
		addr, err := netip.ParseAddrPort(s)
		if err != nil {
			return vips, err
		}
		again := slices.ContainsFunc(vips, func(v vip) bool { return v.addr.Addr() == addr.Addr() })
		if addr.Port() == 0 && !again {
			addr = netip.AddrPortFrom(addr.Addr(), port)
		}
		v, err := openVIP(addr)
		if err != nil {
			return vips, err
		}
		vips = append(vips, v)
		port = vips[0].addr.Port()
	}
	return vips, nil
}

func openVIP(addr netip.AddrPort) (vip, error) {
	tcp, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(addr))
	if err != nil {
		return vip{}, err
	}
	addr = addrOf(tcp.Addr())
	udp, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(addr))
	if err != nil {
		return vip{}, errors.Join(err, tcp.Close())
	}
	_ = udp.SetReadBuffer(4 << 20) // as much as the kernel likes to give
	return vip{addr, udp, tcp}, nil
}

// VIPs returns the addresses of the load balancer.
func (lb *LB) VIPs() []netip.AddrPort {
	addrs := make([]netip.AddrPort, len(lb.vips))
	for i, v := range lb.vips {
		addrs[i] = v.addr
	}
	return addrs
}

// SetTargets replaces the targets for new flows. Flows that live stay where they are.
func (lb *LB) SetTargets(targets ...netip.AddrPort) {
	lb.mu.Lock()
	defer lb.mu.Unlock()
	lb.targets = slices.Clone(targets)
}

// Stats returns the counters.
func (lb *LB) Stats() Stats {
	lb.mu.Lock()
	defer lb.mu.Unlock()
	s := lb.stats
	s.UDPFlows, s.TCPFlows, s.Datagrams = maps.Clone(s.UDPFlows), maps.Clone(s.TCPFlows), maps.Clone(s.Datagrams)
	s.Live = len(lb.udp) + len(lb.tcp)
	return s
}

// Close ends all flows, and returns when all goroutines have ended. It may be called again.
func (lb *LB) Close() error {
	lb.mu.Lock()
	if lb.closed {
		lb.mu.Unlock()
		return nil
	}
	lb.closed = true
	var errs []error
	for _, v := range lb.vips {
		errs = append(errs, v.close())
	}
	for _, f := range lb.udp {
		errs = append(errs, f.up.Close())
	}
	for f := range lb.tcp {
		f.reset()
	}
	lb.mu.Unlock()
	lb.wg.Wait()
	return errors.Join(errs...)
}

// pick chooses the target of a new flow; ok is false when there is none. lb.mu is held.
func (lb *LB) pick(key flowKey) (target netip.AddrPort, ok bool) {
	if len(lb.targets) == 0 {
		return netip.AddrPort{}, false
	}
	return lb.targets[maphash.Comparable(lb.seed, key)%uint64(len(lb.targets))], true
}

// addrOf returns a TCP address; an IPv4 one that came by an IPv6 socket as IPv4.
func addrOf(a net.Addr) netip.AddrPort {
	ap := a.(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}
