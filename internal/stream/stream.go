// Package stream is a [ship.Link] over one dialled stream, TCP or TLS. It knows no protocol: how a record becomes a frame is a function
// of its user.
//
// A write that succeeds means that our own kernel has the bytes, and no more: a peer that is dying takes hundreds of kilobytes that way
// and reads none of them. So a record counts as delivered when the peer's kernel acknowledged its last byte, where ours can tell
// (Linux), and what it had not acknowledged when the stream broke goes to another address. Elsewhere a record counts at the write, and
// a break adds the last second's records to Unconfirmed.
//
// The first write after the peer closed succeeds as well. So every link has a reader, which notices the end of the stream when it comes.
package stream

import (
	"context"
	"crypto/tls"
	"math"
	"net"
	"net/netip"
	"time"

	"github.com/wholelog/wholelog/internal/ship"
)

const (
	// batchBytes is the knee: larger writes gain little, and what one link holds cannot go to another address.
	batchBytes = 64 << 10
	// tlsPiece is what fits one TLS record (RFC 8446, section 5.1). TLS writes records one by one anyway, and one write for each tells
	// which frames the bytes below stand for.
	tlsPiece = 16 << 10
	// sendBuffer is the default of SO_SNDBUF. It bounds what a dying connection can swallow.
	sendBuffer = 256 << 10
	// maxRetained is the largest write buffer that a link keeps.
	maxRetained = 256 << 10
)

// Config says how a [Transport] speaks.
type Config struct {
	// Frame appends the frame of a record to dst; cut says that it holds less than the record. An error says that this way cannot
	// carry the record, and that what was appended is to be forgotten. It is called from the link's goroutine, for one record again
	// when that is sent again.
	Frame func(dst, record []byte) (frame []byte, cut bool, err error)
	// Refused says what becomes of a record for which Frame had an error.
	Refused func(err error) ship.Outcome
	// TLS, if not nil, encrypts: it is cloned, and its ServerName is what the certificate must be for whatever the address. Of an IP
	// literal no SNI is sent (RFC 6066, section 3). There is no way back to plain text.
	TLS *tls.Config

	// Path, if not "", is that of a unix socket, to which streams go whatever the address. A record counts at the write then.
	Path string

	SendTimeout time.Duration // longest time in which nothing moves: in a write, or from our kernel to the peer's
	SendBuffer  int           // SO_SNDBUF in bytes; 0 → 256 KiB
	PerAddr     int           // streams to one address
	MaxAge      time.Duration // of a stream, jittered by the engine; 0: it is never replaced
}

// Transport opens streams. It implements [ship.Transport].
type Transport struct {
	config Config
	dial   func(ctx context.Context, network, addr string) (net.Conn, error)

	// Tests replace what asks the kernel, and have more time than a server needs.
	tune    func(conn net.Conn, c *Config) (queue, error)
	verdict time.Duration
}

// New returns a Transport. Config must have Frame, Refused and SendTimeout.
func New(c Config) *Transport {
	if c.SendBuffer == 0 {
		c.SendBuffer = sendBuffer
	}
	if c.TLS != nil {
		c.TLS = c.TLS.Clone()
		// Small records at first serve a reader who waits for the first byte. Ours waits for the last, and each costs a write.
		c.TLS.DynamicRecordSizingDisabled = true
	}
	// A peer that vanished while nothing is sent is noticed by two probes, and the probes keep the entry in whatever stands between
	// alive: balancers forget an idle flow after minutes and then lose its next bytes.
	d := &net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 15 * time.Second, Count: 3}}
	return &Transport{config: c, dial: d.DialContext, tune: tune, verdict: verdictTime}
}

// Limits implements [ship.Transport]. The window is more than the kernel takes, which on Linux is up to twice what it was asked for: a
// write then waits until there is room, which the kernel tells at once, and not for what is acknowledged, which has to be asked.
func (t *Transport) Limits() ship.Limits {
	return ship.Limits{
		LinksPerAddr: t.config.PerAddr, BatchBytes: batchBytes, Window: 2*t.config.SendBuffer + batchBytes, Faint: true, MaxAge: t.config.MaxAge,
	}
}

// Dial implements [ship.Transport]: it connects, and shakes hands if there is TLS.
func (t *Transport) Dial(ctx context.Context, addr netip.AddrPort, m *ship.Meter) (ship.Link, error) {
	conn, unacked, err := t.connect(ctx, addr)
	if err != nil {
		return nil, fault(err)
	}
	l := &link{
		wire:   &wire{Conn: conn, timeout: t.config.SendTimeout, meter: m},
		config: &t.config, meter: m, local: localAddr(conn), ledger: ledger{unacked: unacked},
		gone: make(chan struct{}), heard: make(chan struct{}),
	}
	if t.config.TLS == nil {
		l.conn, l.most = l.wire, math.MaxInt // the engine bounds a batch
		go l.listen()
		return l, nil
	}
	began := time.Now()
	encrypted, asked, err := encrypt(ctx, l.wire, t.config.TLS)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	l.conn, l.most = encrypted, tlsPiece
	if asked {
		l.wire.answer = &answer{good: make(chan struct{})}
	}
	go l.listen()
	if asked {
		err = l.judged(ctx, t.verdict+2*time.Since(began))
	}
	if err != nil {
		_ = l.Close()
		return nil, err
	}
	return l, nil
}

// connect opens a connection, and returns with it what asks its kernel.
func (t *Transport) connect(ctx context.Context, addr netip.AddrPort) (net.Conn, queue, error) {
	if t.config.Path != "" {
		conn, err := t.dial(ctx, "unix", t.config.Path)
		return conn, nil, err
	}
	conn, err := t.dial(ctx, "tcp", addr.String())
	if err != nil {
		return nil, nil, err
	}
	unacked, err := t.tune(conn, &t.config)
	if err != nil {
		_ = conn.Close()
	}
	return conn, unacked, err
}

// localAddr is what the trace tells; the zero value for a connection that is not TCP.
func localAddr(conn net.Conn) netip.AddrPort {
	a, ok := conn.LocalAddr().(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	p := a.AddrPort()
	return netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
}
