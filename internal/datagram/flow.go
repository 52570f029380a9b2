// Package datagram is what links over datagram sockets have in common: connected sockets with a time for every write, several of them
// towards one address in turn, and the batch that goes out one message after the other. It knows no protocol.
package datagram

import (
	"context"
	"net"
	"net/netip"
	"time"
)

// DialFunc opens a connected socket; [net.Dialer.DialContext] is one.
type DialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// Flow is one connected socket: with UDP one source port towards one address. It belongs to the link's goroutine.
type Flow struct {
	conn     net.Conn
	local    netip.AddrPort
	born     time.Time
	maxAge   time.Duration
	deadline time.Time // the write deadline in force
	single   bool      // datagrams are written one by one
	control  control
}

// NewFlow returns a flow over a socket that has no other user.
func NewFlow(conn net.Conn) *Flow {
	f := &Flow{conn: conn, single: !canTrain(conn)}
	if a, ok := conn.LocalAddr().(*net.UDPAddr); ok {
		p := a.AddrPort()
		f.local = netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
	}
	return f
}

// Local is the address that the flow sends from; the zero value when that is none of UDP.
func (f *Flow) Local() netip.AddrPort { return f.local }

// Within gives the writes that follow the time timeout from now on, or what ctx leaves of it. To set a deadline costs as much as a
// small write: one in force serves as long as it leaves at least half of the time.
func (f *Flow) Within(ctx context.Context, now time.Time, timeout time.Duration) error {
	limit := now.Add(timeout)
	if end, ok := ctx.Deadline(); ok && end.Before(limit) {
		limit = end
	}
	if !f.deadline.After(limit) && f.deadline.Sub(now) >= limit.Sub(now)/2 {
		return nil
	}
	f.deadline = limit
	return f.conn.SetWriteDeadline(limit)
}

// Write writes the datagrams that lie back to back in burst, all but the last size bytes long: many with one call where the kernel
// cuts them apart (see [Flow.train]), else one by one. It returns how many bytes the kernel took.
func (f *Flow) Write(burst []byte, size int) (written int, err error) {
	for len(burst) > 0 {
		n, err := f.train(burst, size)
		if n == 0 && err == nil {
			n, err = f.conn.Write(burst[:min(size, len(burst))])
		}
		if err != nil {
			return written, err
		}
		burst = burst[n:]
		written += n
	}
	return written, nil
}

// What stands before a datagram's payload in the MTU: the IP header without options, and UDP's 8 bytes.
const (
	overheadV4 = 20 + 8
	overheadV6 = 40 + 8
)

// Room is the longest datagram that the way to the peer takes in one piece, as far as the kernel knows; 0 when it does not.
func (f *Flow) Room() int {
	overhead := overheadV6
	remote, ok := f.conn.RemoteAddr().(*net.UDPAddr)
	if !ok {
		return 0
	}
	v4 := remote.IP.To4() != nil
	if v4 {
		overhead = overheadV4
	}
	return max(pathMTU(f.conn, !v4)-overhead, 0)
}

// Close closes the socket. It may be called from any goroutine, and again; a write under way ends.
func (f *Flow) Close() { _ = f.conn.Close() }

// old says whether the flow has served its time.
func (f *Flow) old(now time.Time) bool { return Apart(f.born, now, f.maxAge) }

// Apart says whether more than limit may have passed between two instants, by the clock that went further: a frozen process
// advances the wall clock alone, and one set back says nothing.
func Apart(from, to time.Time, limit time.Duration) bool {
	wall := to.Round(0).Sub(from.Round(0))
	return to.Sub(from) > limit || wall > limit || wall < -limit
}
