package gelf

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/wholelog/wholelog/chunk"
	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/datagram"
	"github.com/wholelog/wholelog/internal/errno"
	"github.com/wholelog/wholelog/internal/ship"
)

// udpConfig is what the UDP transport needs to know, defaults filled in.
type udpConfig struct {
	chunkSize   int // bytes of a datagram, chunk header included
	compression Compression
	flows       int // source ports per address
	flowAge     time.Duration
	packetRate  int // datagrams/s per address; negative: unlimited
	oversize    Oversize
	fallback    bool // another route takes what does not fit 128 chunks
	sendTimeout time.Duration
}

// udpTransport sends every record as one datagram or as at most 128 chunks, all from one source port to one address.
type udpTransport struct {
	config udpConfig
	dial   datagram.DialFunc
}

func newUDP(c udpConfig) *udpTransport {
	return &udpTransport{config: c, dial: new(net.Dialer).DialContext}
}

// Limits implements [ship.Transport]. One link per address keeps order towards it and lets one pacer see all of its datagrams. A
// slow pacer gets small batches, about a quarter of a second of its time: what waits in a link cannot go to another address.
func (t *udpTransport) Limits() ship.Limits {
	l := ship.Limits{LinksPerAddr: 1, BatchBytes: 64 << 10, Blind: true}
	if rate := t.config.packetRate; rate > 0 {
		l.BatchRecords = max(1, rate/4)
		l.BatchBytes = min(l.BatchBytes, l.BatchRecords*t.config.chunkSize)
	}
	return l
}

// Dial implements [ship.Transport]. It opens the first flow, which sends nothing and yet fails when the host has no route to the
// address, or none for its family.
func (t *udpTransport) Dial(ctx context.Context, addr netip.AddrPort, m *ship.Meter) (ship.Link, error) {
	l := &udpLink{
		config: t.config,
		size:   t.config.chunkSize,
		pacer:  newPacer(t.config.packetRate),
		comp:   compressor{mode: t.config.compression},
		meter:  m,
		now:    time.Now,
		closed: make(chan struct{}),
	}
	l.run = datagram.Run{Message: l.message, Outcome: func(err error) (ship.Outcome, bool) { return udpOutcome(err), datagram.EndsLink(err) }}
	var err error
	l.flows, err = datagram.Open(ctx, datagram.Config{
		Dial: t.dial, Addr: addr, Flows: t.config.flows, Age: t.config.flowAge, Now: time.Now, Meter: m,
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

// udpLink is all flows to one address. Send's state belongs to the link's goroutine; Close may come from anywhere.
type udpLink struct {
	config udpConfig
	size   int // of datagrams; what EMSGSIZE taught stays for the life of the link
	flows  *datagram.Set
	run    datagram.Run
	pacer  *pacer
	comp   compressor
	wire   []byte // the datagrams of the message on its way, back to back
	meter  *ship.Meter
	now    func() time.Time // tests let the wall clock jump within a message

	once   sync.Once
	closed chan struct{}
}

// Send implements [ship.Link]. Records leave in order, each as a whole.
func (l *udpLink) Send(ctx context.Context, b *ship.Batch) error { return l.run.Send(ctx, b) }

// maxRestarts is how often a message starts over because the kernel had no room, with a pause of 2, 4, 8 and 16 ms in between:
// about what a full interface queue takes to drain. After that the record goes back to the queue, where other addresses serve.
const maxRestarts = 4

// maxLate is how often a message starts over because its chunks left too far apart: a process that was frozen in between is not
// frozen again at once, and where writes are slow every attempt costs seconds.
const maxLate = 2

// message sends one record. Nothing is ever mended in the middle: when a datagram fails, the message starts over with all its
// chunks under a new id, or goes back to the queue whole. The receiver forgets the chunks it has, since the id never comes again.
func (l *udpLink) message(ctx context.Context, data []byte) error {
	f, why, err := l.flows.Pick(ctx)
	if err != nil {
		return err
	}
	defer l.release()
	for restarts, late := 0, 0; ; {
		payload, cut, err := l.fit(data)
		if err != nil {
			return err
		}
		if why != "" && l.meter.Traced() {
			l.meter.Chose(f.Local(), 1, wireSize(len(payload), l.size), why)
		}
		why = "" // one call per message, however often it starts over
		if err = l.transmit(ctx, f, payload); err == nil {
			if cut {
				l.meter.Truncated(1) // not before: what is sent again is counted once
			}
			l.flows.Done(f, nil)
			return nil
		}
		switch {
		case errno.TooLong(err) && l.shrink(f, err):
		case errno.Busy(err) && restarts < maxRestarts:
			restarts++
			l.run.Settle()
			if err := l.pacer.sleep(ctx, l.closed, time.Millisecond<<restarts); err != nil {
				return err
			}
		case errors.Is(err, errLate) && late < maxLate:
			late++
			l.run.Settle()
			l.meter.Trouble(delivery.CauseTimeout, fmt.Errorf("message sent anew: %w", err))
		default:
			l.flows.Done(f, err)
			return err
		}
	}
}

// fit climbs the ladder until data fits 128 datagrams of the present size: compression, then the fallback if there is one, then
// truncation or the end. The payload is valid until the next call; cut says that text was cut that was whole before.
func (l *udpLink) fit(data []byte) (payload []byte, cut bool, err error) {
	payload = l.comp.pack(data, l.size)
	if chunk.Count(len(payload), l.size) <= chunk.MaxChunks {
		return payload, false, nil
	}
	if l.config.fallback {
		return nil, false, errDivert
	}
	if l.config.oversize == OversizeTruncate {
		if payload, ok := l.comp.truncate(data, l.size); ok {
			return payload, !cutBefore(data), nil
		}
	}
	return nil, false, fmt.Errorf("%d bytes do not fit %d datagrams of %d: %w", len(data), chunk.MaxChunks, l.size, delivery.ErrTooLarge)
}

// shrink learns a smaller datagram size after err, and reports it; false when there is none.
func (l *udpLink) shrink(f *datagram.Flow, err error) bool {
	size := smaller(l.size, f.Room())
	if size == 0 {
		return false
	}
	l.meter.Trouble(delivery.CauseMTU, fmt.Errorf("datagrams shortened from %d to %d bytes: %w", l.size, size, err))
	l.size = size
	return true
}

// release gives back what one large message needed.
func (l *udpLink) release() {
	l.comp.release()
	if cap(l.wire) > maxRetained {
		l.wire = nil
	}
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

// Gone implements [ship.Link]. A UDP peer never leaves.
func (l *udpLink) Gone() <-chan struct{} { return nil }

// Close implements [ship.Link]. It ends a wait for the pacer and a blocked write at once.
func (l *udpLink) Close() error {
	l.once.Do(func() {
		close(l.closed)
		l.flows.Close()
	})
	return nil
}

// wireSize is what a payload of n bytes comes to in datagrams of size bytes.
func wireSize(n, size int) int {
	if c := chunk.Count(n, size); c > 1 {
		return n + c*chunk.HeaderSize
	}
	return n
}
