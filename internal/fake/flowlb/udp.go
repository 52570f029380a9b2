package flowlb

import (
	"errors"
	"net"
	"net/netip"
	"time"
)

// udpFlow is one entry of the table: a socket connected to the target, which sees one source port for each flow.
type udpFlow struct {
	key    flowKey
	target netip.AddrPort
	up     *net.UDPConn
	last   time.Time // of a datagram in either direction; guarded by LB.mu
}

// serveUDP forwards what arrives at a VIP until it is closed.
func (lb *LB) serveUDP(v vip) {
	buf := make([]byte, 65536)
	for {
		n, src, err := v.udp.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // trouble with one datagram
		}
		lb.forward(v, flowKey{src, v.addr}, buf[:n])
	}
}

// forward sends one datagram to the target of its flow. The table is locked all the while, so that no flow is forgotten between
// being found and being used.
func (lb *LB) forward(v vip, key flowKey, d []byte) {
	lb.mu.Lock()
	defer lb.mu.Unlock()
	f := lb.udp[key]
	if f == nil {
		if f = lb.openUDP(v, key); f == nil {
			lb.stats.Dropped++
			return
		}
	}
	f.last = time.Now()
	_, err := f.up.Write(d)
	if err != nil {
		// A refusal of the datagram before shows here, and this one was not sent. A balancer does not care for either.
		_, err = f.up.Write(d)
	}
	if err != nil {
		lb.stats.Dropped++
		return
	}
	lb.stats.Datagrams[f.target]++
}

// openUDP begins a flow, or returns nil when there is no target. lb.mu is held.
func (lb *LB) openUDP(v vip, key flowKey) *udpFlow {
	target, ok := lb.pick(key)
	if !ok || lb.closed {
		return nil
	}
	up, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(target))
	if err != nil {
		return nil
	}
	f := &udpFlow{key: key, target: target, up: up, last: time.Now()}
	lb.udp[key] = f
	lb.stats.UDPFlows[target]++
	lb.wg.Go(func() { lb.answers(v, f) })
	return f
}

// answers carries what the target sends back, and ends the flow when it has been idle for too long.
func (lb *LB) answers(v vip, f *udpFlow) {
	buf := make([]byte, 65536)
	for wait := lb.opts.UDPIdle; wait > 0; wait = lb.idleUDP(f) {
		_ = f.up.SetReadDeadline(time.Now().Add(wait)) // on a closed socket the read fails
		n, err := f.up.Read(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			lb.mu.Lock()
			f.last = time.Now()
			lb.mu.Unlock()
			_, _ = v.udp.WriteToUDPAddrPort(buf[:n], f.key.src) // a client that is gone loses its answers
		}
	}
}

// idleUDP returns for how long f may still be idle. When that is over it forgets the flow.
func (lb *LB) idleUDP(f *udpFlow) time.Duration {
	lb.mu.Lock()
	defer lb.mu.Unlock()
	left := lb.opts.UDPIdle - time.Since(f.last)
	if left <= 0 {
		delete(lb.udp, f.key)
		_ = f.up.Close()
	}
	return left
}
