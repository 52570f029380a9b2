package syslog

import (
	"context"
	"time"

	"github.com/wholelog/wholelog/internal/datagram"
	"github.com/wholelog/wholelog/internal/ship"
)

// whyLocal is why records leave by a unix datagram socket, for the trace: there is no other way.
const whyLocal = "local socket"

// localLink is one connected unix datagram socket. Each record is one datagram, without any framing.
type localLink struct {
	flow        *datagram.Flow
	run         datagram.Run
	sendTimeout time.Duration
	meter       *ship.Meter
	backlog     backlog
}

func newLocalLink(f *datagram.Flow, k backlog, sendTimeout time.Duration, m *ship.Meter) *localLink {
	l := &localLink{flow: f, backlog: k, sendTimeout: sendTimeout, meter: m}
	l.run = datagram.Run{Message: l.message, Outcome: localOutcome}
	return l
}

// Send implements [ship.Link]. Records leave in order. A receiver that is gone took along what it had not read, without a word.
func (l *localLink) Send(ctx context.Context, b *ship.Batch) error {
	l.backlog.ask()
	err := l.run.Send(ctx, b)
	if n := l.backlog.lost(err); n > 0 {
		l.meter.Unconfirmed(n)
	}
	return err
}

// message sends one record. It may wait for a receiver that is slow, which stream and datagram sockets of this host can tell.
func (l *localLink) message(ctx context.Context, data []byte) error {
	l.meter.Chose(l.flow.Local(), 1, len(data), whyLocal)
	err := writeDatagram(ctx, l.flow, data, l.sendTimeout, l.meter)
	if err == nil {
		l.backlog.sent()
	}
	return err
}

// writeDatagram sends one message within timeout, or what ctx leaves of it.
func writeDatagram(ctx context.Context, f *datagram.Flow, data []byte, timeout time.Duration, m *ship.Meter) error {
	if err := f.Within(ctx, time.Now(), timeout); err != nil {
		return err
	}
	n, err := f.Write(data, len(data))
	m.Wire(n)
	return err
}

// Nudge implements [ship.Link]. Outcomes are known when Send returns.
func (l *localLink) Nudge() {}

// Drain implements [ship.Link]. There is nothing to wait for, and nobody to say goodbye to.
func (l *localLink) Drain(context.Context) error { return nil }

// Close implements [ship.Link].
func (l *localLink) Close() error {
	l.flow.Close()
	return nil
}

// Gone implements [ship.Link]. Datagrams have no connection that could end.
func (l *localLink) Gone() <-chan struct{} { return nil }
