package syslog

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/datagram"
	"github.com/wholelog/wholelog/internal/errno"
	"github.com/wholelog/wholelog/internal/ship"
)

// udpTransport sends every record as one datagram (RFC 5426, section 3.1), from one of several source ports in turn: a load balancer
// keeps a busy port at one of the nodes behind an address for ever, and a fresh one is the only way off a node that is leaving. Order
// is nothing that a datagram promises (section 4.3).
type udpTransport struct {
	dial        datagram.DialFunc
	sendTimeout time.Duration
	flows       int // source ports per address
	flowAge     time.Duration
}

func newUDP(c *config) *udpTransport {
	return &udpTransport{dial: new(net.Dialer).DialContext, sendTimeout: c.sendTimeout, flows: c.flows, flowAge: c.flowAge}
}

// Limits implements [ship.Transport].
func (t *udpTransport) Limits() ship.Limits {
	return ship.Limits{LinksPerAddr: 1, BatchBytes: 64 << 10, Blind: true}
}

// Dial implements [ship.Transport]. It sends nothing, and yet fails when the host has no route to the address.
func (t *udpTransport) Dial(ctx context.Context, addr netip.AddrPort, m *ship.Meter) (ship.Link, error) {
	flows, err := datagram.Open(ctx, datagram.Config{Dial: t.dial, Addr: addr, Flows: t.flows, Age: t.flowAge, Now: time.Now, Meter: m})
	if err != nil {
		return nil, err
	}
	l := &udpLink{flows: flows, sendTimeout: t.sendTimeout, meter: m}
	l.run = datagram.Run{Message: l.message, Outcome: udpOutcome}
	return l, nil
}

// udpLink is all flows to one address. Send's state belongs to the link's goroutine; Close may come from anywhere.
type udpLink struct {
	flows       *datagram.Set
	run         datagram.Run
	sendTimeout time.Duration
	meter       *ship.Meter
}

// Send implements [ship.Link].
func (l *udpLink) Send(ctx context.Context, b *ship.Batch) error { return l.run.Send(ctx, b) }

// message sends one record.
func (l *udpLink) message(ctx context.Context, data []byte) error {
	f, why, err := l.flows.Pick(ctx)
	if err != nil {
		return err
	}
	l.meter.Chose(f.Local(), 1, len(data), why)
	err = l.write(ctx, f, data)
	l.flows.Done(f, err)
	return err
}

// write writes one datagram. EMSGSIZE is most often a router's answer to an earlier one, which is lost; the kernel tells it with
// whatever is written next, and from then on cuts what is too long for that path into fragments. So this one has a second try.
func (l *udpLink) write(ctx context.Context, f *datagram.Flow, data []byte) error {
	first := writeDatagram(ctx, f, data, l.sendTimeout, l.meter)
	if !errno.TooLong(first) {
		return first
	}
	if err := writeDatagram(ctx, f, data, l.sendTimeout, l.meter); err != nil {
		return err
	}
	text := "a datagram was too long for its path; longer ones leave in fragments"
	if room := f.Room(); room > 0 {
		text = fmt.Sprintf("the path takes datagrams of %d bytes; longer ones leave in fragments", room)
	}
	l.meter.Trouble(delivery.CauseMTU, fmt.Errorf("%s (option MaxSize shortens them): %w", text, first))
	return nil
}

// Nudge implements [ship.Link]. Outcomes are known when Send returns.
func (l *udpLink) Nudge() {}

// Drain implements [ship.Link]. There is nothing to wait for and nobody to say goodbye to; but a refusal of the last messages can
// still be told.
func (l *udpLink) Drain(context.Context) error {
	if err := l.flows.Listen(); err != nil {
		l.meter.Trouble(delivery.CauseRefused, err)
	}
	return nil
}

// Close implements [ship.Link].
func (l *udpLink) Close() error {
	l.flows.Close()
	return nil
}

// Gone implements [ship.Link]. A UDP peer never leaves.
func (l *udpLink) Gone() <-chan struct{} { return nil }
