package flowlb

import (
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// dialTimeout is how long a target may take to accept.
const dialTimeout = 5 * time.Second

// tcpFlow is one connection of a client and the one to its target.
type tcpFlow struct {
	client, up *net.TCPConn
	last       atomic.Int64 // Unix nanoseconds of the latest byte in either direction
	forgotten  atomic.Bool
}

// reset ends both sides at once.
func (f *tcpFlow) reset() {
	for _, c := range []*net.TCPConn{f.client, f.up} {
		_ = c.SetLinger(0) // so that Close sends a reset; on a side that is closed already there is nothing to do
		_ = c.Close()
	}
}

// serveTCP accepts connections until the VIP is closed.
func (lb *LB) serveTCP(v vip) {
	for {
		client, err := v.tcp.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // a connection that ended before it was accepted
		}
		lb.wg.Go(func() { lb.carry(client, flowKey{addrOf(client.RemoteAddr()), v.addr}) })
	}
}

// carry connects a client with the target of its flow and copies both ways until both have ended.
func (lb *LB) carry(client *net.TCPConn, key flowKey) {
	f, ok := lb.openTCP(client, key)
	if !ok {
		_ = client.SetLinger(0)
		_ = client.Close()
		return
	}
	back := make(chan struct{})
	go func() {
		defer close(back)
		lb.copy(f, f.client, f.up)
	}()
	lb.copy(f, f.up, f.client)
	if f.forgotten.Load() {
		// The client is not told: its next bytes, which its kernel takes gladly, are answered by a reset.
		_ = client.SetReadDeadline(time.Time{})
		_, _ = client.Read(make([]byte, 1))
		f.reset()
	}
	<-back
	lb.mu.Lock()
	delete(lb.tcp, f)
	lb.mu.Unlock()
	_ = client.Close()
	_ = f.up.Close()
}

// openTCP connects to the target of a new flow.
func (lb *LB) openTCP(client *net.TCPConn, key flowKey) (*tcpFlow, bool) {
	lb.mu.Lock()
	target, ok := lb.pick(key)
	lb.mu.Unlock()
	var up net.Conn
	if ok {
		var err error
		up, err = net.DialTimeout("tcp", target.String(), dialTimeout)
		ok = err == nil
	}
	lb.mu.Lock()
	defer lb.mu.Unlock()
	if !ok {
		lb.stats.Dropped++
		return nil, false
	}
	f := &tcpFlow{client: client, up: up.(*net.TCPConn)}
	if lb.closed {
		f.reset()
		return nil, false
	}
	f.last.Store(time.Now().UnixNano())
	lb.tcp[f] = struct{}{}
	lb.stats.TCPFlows[target]++
	return f, true
}

// copy carries bytes one way. At the end of src it closes that half of dst; after an error it resets both sides; after too long
// a silence in both directions it ends the target's side and marks the flow forgotten.
func (lb *LB) copy(f *tcpFlow, dst, src *net.TCPConn) {
	buf := make([]byte, 32<<10)
	for {
		_ = src.SetReadDeadline(time.Unix(0, f.last.Load()).Add(lb.opts.TCPIdle)) // on a closed socket the read fails
		n, err := src.Read(buf)
		if n > 0 {
			f.last.Store(time.Now().UnixNano())
			if _, err := dst.Write(buf[:n]); err != nil {
				f.reset()
				return
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			_ = dst.CloseWrite()
			return
		case f.forgotten.Load():
			return
		case errors.Is(err, os.ErrDeadlineExceeded):
			if time.Since(time.Unix(0, f.last.Load())) < lb.opts.TCPIdle {
				continue
			}
			f.forgotten.Store(true)
			_ = f.up.SetLinger(0)
			_ = f.up.Close()
			return
		default:
			f.reset()
			return
		}
	}
}
