package syslog

import (
	"context"
	"net"
	"net/netip"
	"time"

	"github.com/wholelog/wholelog/internal/ship"
)

// dialFunc opens a connected socket; [net.Dialer.DialContext] is one.
type dialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// Why records leave by this socket, for the trace.
const (
	whyNew  = "new socket"
	whyOpen = "open socket"
)

// datagramLink is one connected datagram socket. Each record is one datagram, without any framing (RFC 5426, section 3.1). Send's
// state belongs to the link's goroutine; Close may come from anywhere.
type datagramLink struct {
	conn        net.Conn
	local       netip.AddrPort
	meter       *ship.Meter
	sendTimeout time.Duration
	deadline    time.Time // the write deadline in force
	used        bool
}

func newDatagramLink(conn net.Conn, sendTimeout time.Duration, m *ship.Meter) *datagramLink {
	l := &datagramLink{conn: conn, meter: m, sendTimeout: sendTimeout}
	if a, ok := conn.LocalAddr().(*net.UDPAddr); ok {
		p := a.AddrPort()
		l.local = netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
	}
	return l
}

// Send implements [ship.Link]. Records leave in order. What the kernel took is settled as Delivered in runs.
func (l *datagramLink) Send(ctx context.Context, b *ship.Batch) error {
	sent, done, bytes := 0, 0, 0
	delivered, _ := datagramOutcome(nil)
	settle := func() {
		if done < sent {
			l.meter.Wire(bytes)
			b.Settle(done, sent, delivered)
			done, bytes = sent, 0
		}
	}
	l.trace(b)
	for sent < b.Len() {
		data := b.At(sent).Bytes()
		err := l.write(ctx, data)
		if err == nil {
			sent++
			bytes += len(data)
			continue
		}
		settle()
		o, over := datagramOutcome(err)
		if o.Do != ship.Requeue { // a verdict on this record alone
			b.Settle(sent, sent+1, o)
			sent++
			done = sent
			continue
		}
		if !over {
			b.Settle(sent, b.Len(), o)
			return nil
		}
		// The end of the link is the evidence against the address; told twice it would count twice.
		b.Settle(sent, b.Len(), ship.Outcome{Do: ship.Requeue})
		if o.Cause != "" {
			err = &ship.Fault{Cause: o.Cause, Err: err}
		}
		return err
	}
	settle()
	return nil
}

// write sends one datagram within SendTimeout, or what ctx leaves of it. To set a deadline costs as much as a small write: one in
// force serves as long as it leaves at least half of the time.
func (l *datagramLink) write(ctx context.Context, data []byte) error {
	if err := ctx.Err(); err != nil {
		return outOfTime(ctx, err)
	}
	now := time.Now()
	limit := now.Add(l.sendTimeout)
	if end, ok := ctx.Deadline(); ok && end.Before(limit) {
		limit = end
	}
	if l.deadline.After(limit) || l.deadline.Sub(now) < limit.Sub(now)/2 {
		if err := l.conn.SetWriteDeadline(limit); err != nil {
			return err
		}
		l.deadline = limit
	}
	_, err := l.conn.Write(data)
	return outOfTime(ctx, err)
}

// outOfTime turns an error that came with the end of the caller's time into one that says nothing about the address.
func outOfTime(ctx context.Context, err error) error {
	if end, ok := ctx.Deadline(); ok && err != nil && !time.Now().Before(end) {
		if o, _ := datagramOutcome(err); o.Do == ship.Requeue {
			return errOutOfTime
		}
	}
	return err
}

// trace tells the trace about a batch.
func (l *datagramLink) trace(b *ship.Batch) {
	if !l.meter.Traced() {
		return
	}
	for i := range b.Len() {
		why := whyOpen
		if !l.used {
			why, l.used = whyNew, true
		}
		l.meter.Chose(l.local, 1, len(b.At(i).Bytes()), why)
	}
}

// Nudge implements [ship.Link]. Outcomes are known when Send returns.
func (l *datagramLink) Nudge() {}

// Drain implements [ship.Link]. There is nothing to wait for, and nobody to say goodbye to.
func (l *datagramLink) Drain(context.Context) error { return nil }

// Close implements [ship.Link].
func (l *datagramLink) Close() error {
	_ = l.conn.Close() // it may be closed already
	return nil
}

// Gone implements [ship.Link]. Datagrams have no connection that could end.
func (l *datagramLink) Gone() <-chan struct{} { return nil }
