package resolve

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"sync/atomic"
	"time"
)

// wire listens to what a net.Resolver reads during one look-up, because package net keeps the TTL to itself. It belongs to one look-up
// and is safe for concurrent use: A and AAAA are asked for in parallel.
//
// It also divides the look-up's time. Left alone, net waits 5 s for one query, so that one lost datagram, a dead first name server or
// a server that swallows AAAA questions would fail the whole look-up. A query gets 45 % of the time if another can follow, and the
// last one ends before the look-up does: net then returns what the other questions found.
type wire struct {
	ctx      context.Context // of the look-up; net gives queries another one, which does not end with it
	patience time.Duration   // with one query
	end      time.Time       // of the last query
	ttl      atomic.Uint64   // smallest TTL of any answer in seconds, plus 1; 0: none seen
}

// newWire makes the wire of a look-up that ends with ctx, which has a deadline. A slow one waits for its first query to the end.
func newWire(ctx context.Context, slow bool) *wire {
	deadline, _ := ctx.Deadline()
	left := time.Until(deadline)
	w := &wire{ctx: ctx, patience: left * 9 / 20, end: deadline.Add(-left / 20)}
	if slow {
		w.patience = left
	}
	return w
}

// until is when a query that begins now is given up.
func (w *wire) until(now time.Time) time.Time {
	// What would be left for the next query must be worth asking again.
	if at := now.Add(w.patience); !at.Add(w.patience / 2).After(w.end) {
		return at
	}
	return w.end
}

type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// dial wraps the Dial of a resolver.
func (w *wire) dial(base dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (conn net.Conn, err error) {
		if err := w.ctx.Err(); err != nil {
			return nil, err // nobody waits for this query any more
		}
		defer func() {
			if v := recover(); v != nil { // base may be the user's, and this goroutine is net's
				conn, err = nil, fmt.Errorf("the resolver's Dial panicked: %v", v)
			}
		}()
		c, err := base(ctx, network, address)
		if err != nil {
			return nil, err
		}
		if c == nil {
			return nil, errors.New("the resolver's Dial returned no connection")
		}
		return w.listen(c), nil
	}
}

// listen keeps the kind of the connection: net sends plain datagrams over a PacketConn and length-prefixed messages otherwise.
func (w *wire) listen(c net.Conn) net.Conn {
	q := query{Conn: c, wire: w, stop: context.AfterFunc(w.ctx, func() { c.Close() })}
	if p, ok := c.(net.PacketConn); ok {
		return &datagrams{q, p}
	}
	return &stream{query: q}
}

// smallest is the smallest TTL seen, or 0 when there was none. A TTL of 0 is given as 1 s, which cannot be mistaken for unknown.
func (w *wire) smallest() time.Duration {
	ttl := w.ttl.Load()
	if ttl == 0 {
		return 0
	}
	return max(time.Duration(ttl-1)*time.Second, time.Second)
}

func (w *wire) message(m []byte) {
	ttl, ok := smallestTTL(m)
	if !ok {
		return
	}
	for {
		old := w.ttl.Load()
		if old != 0 && old <= uint64(ttl)+1 || w.ttl.CompareAndSwap(old, uint64(ttl)+1) {
			return
		}
	}
}

// query is the connection of one query. It is closed when the look-up ends, so that a query nobody waits for does not linger.
type query struct {
	net.Conn
	wire *wire
	stop func() bool
}

func (q *query) Close() error {
	q.stop()
	return q.Conn.Close()
}

// SetDeadline brings net's own deadline forward.
func (q *query) SetDeadline(t time.Time) error {
	if until := q.wire.until(time.Now()); until.Before(t) {
		t = until
	}
	return q.Conn.SetDeadline(t)
}

// packetIO is what makes a net.Conn a net.PacketConn besides the methods that both have.
type packetIO interface {
	ReadFrom(b []byte) (int, net.Addr, error)
	WriteTo(b []byte, addr net.Addr) (int, error)
}

type datagrams struct {
	query
	packetIO
}

func (d *datagrams) Read(b []byte) (int, error) {
	n, err := d.query.Conn.Read(b)
	if n > 0 {
		d.wire.message(b[:n])
	}
	return n, err
}

// stream takes messages with their length in front (RFC 1035 §4.2.2) apart, however they come in pieces.
type stream struct {
	query
	pending []byte
}

func (s *stream) Read(b []byte) (int, error) {
	n, err := s.query.Conn.Read(b)
	s.pending = append(s.pending, b[:n]...)
	for len(s.pending) >= 2 {
		end := 2 + int(binary.BigEndian.Uint16(s.pending))
		if len(s.pending) < end {
			break
		}
		s.wire.message(s.pending[2:end])
		s.pending = s.pending[end:]
	}
	return n, err
}

// smallestTTL is the smallest TTL in the answer section of a DNS message (RFC 1035 §4.1), aliases included: the answer as a whole is
// valid no longer than its shortest part. Authority and additional sections, which hold the TTLs of other things, are not read.
func smallestTTL(m []byte) (ttl uint32, ok bool) {
	const header, question, record = 12, 4, 10
	if len(m) < header || m[2]&0x80 == 0 {
		return 0, false
	}
	questions, answers := binary.BigEndian.Uint16(m[4:]), binary.BigEndian.Uint16(m[6:])
	rest := m[header:]
	for range questions {
		if rest, ok = skipName(rest); !ok || len(rest) < question {
			return 0, false
		}
		rest = rest[question:]
	}
	ttl, ok = math.MaxUint32, false
	for range answers {
		var whole bool
		if rest, whole = skipName(rest); !whole || len(rest) < record {
			break
		}
		t := binary.BigEndian.Uint32(rest[4:])
		if t > math.MaxInt32 {
			t = 0 // RFC 2181 §8: the top bit set means zero
		}
		size := record + int(binary.BigEndian.Uint16(rest[8:]))
		if len(rest) < size {
			break
		}
		ttl, ok = min(ttl, t), true
		rest = rest[size:]
	}
	return ttl, ok
}

// skipName passes over a name: labels up to an empty one or a pointer (RFC 1035 §4.1.4).
func skipName(b []byte) (rest []byte, ok bool) {
	for len(b) > 0 {
		n := int(b[0])
		switch {
		case n == 0:
			return b[1:], true
		case n >= 0xc0:
			if len(b) < 2 {
				return nil, false
			}
			return b[2:], true
		case n > 63 || len(b) < 1+n:
			return nil, false
		}
		b = b[1+n:]
	}
	return nil, false
}
