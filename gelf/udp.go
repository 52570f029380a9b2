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
	dial   dialFunc
	now    func() time.Time // flows' ages; tests let the wall clock jump
}

func newUDP(c udpConfig) *udpTransport {
	return &udpTransport{config: c, dial: new(net.Dialer).DialContext, now: time.Now}
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
		v6:     addr.Addr().Is6() && !addr.Addr().Is4In6(),
		size:   t.config.chunkSize,
		flows: flowSet{
			dial: t.dial, addr: addr.String(), age: t.config.flowAge, now: t.now, meter: m,
			slots: make([]*flow, t.config.flows),
		},
		pacer:  newPacer(t.config.packetRate),
		comp:   compressor{mode: t.config.compression},
		meter:  m,
		closed: make(chan struct{}),
	}
	if _, err := l.flows.open(ctx, 0, t.now()); err != nil {
		return nil, err
	}
	return l, nil
}

// udpLink is all flows to one address. Send's state belongs to the link's goroutine; Close may come from anywhere.
type udpLink struct {
	config udpConfig
	v6     bool
	size   int // of datagrams; what EMSGSIZE taught stays for the life of the link
	flows  flowSet
	pacer  *pacer
	comp   compressor
	wire   []byte // the datagrams of the message on its way, back to back
	meter  *ship.Meter

	batch      *ship.Batch
	sent, done int // records [done, sent) of batch are sent and not settled

	once   sync.Once
	closed chan struct{}
}

// Send implements [ship.Link]. Records leave in order, each as a whole. What the kernel took is settled as Delivered in runs: at
// the end, before every wait, and before every other outcome.
func (l *udpLink) Send(ctx context.Context, b *ship.Batch) error {
	l.batch, l.sent, l.done = b, 0, 0
	defer func() { l.batch = nil }()
	for l.sent < b.Len() {
		err := l.message(ctx, b.At(l.sent).Bytes())
		if err == nil {
			l.sent++
			continue
		}
		l.settleSent()
		if end, ok := ctx.Deadline(); ok && !time.Now().Before(end) && udpOutcome(err).Do == ship.Requeue {
			err = errOutOfTime
		}
		o := udpOutcome(err)
		if o.Do != ship.Requeue { // a verdict on this record alone
			b.Settle(l.sent, l.sent+1, o)
			l.sent++
			l.done = l.sent
			continue
		}
		if !endsLink(err) {
			b.Settle(l.sent, b.Len(), o)
			return nil
		}
		// The end of the link is the evidence against the address; told twice it would count twice.
		b.Settle(l.sent, b.Len(), ship.Outcome{Do: ship.Requeue})
		if o.Cause != "" {
			err = &ship.Fault{Cause: o.Cause, Err: err}
		}
		return err
	}
	l.settleSent()
	return nil
}

// settleSent settles what was sent since the last time.
func (l *udpLink) settleSent() {
	if l.done < l.sent {
		l.batch.Settle(l.done, l.sent, udpOutcome(nil))
		l.done = l.sent
	}
}

// maxRestarts is how often a message starts over because the kernel had no room, with a pause of 2, 4, 8 and 16 ms in between:
// about what a full interface queue takes to drain. After that the record goes back to the queue, where other addresses serve.
const maxRestarts = 4

// maxLate is how often a message starts over because its chunks left too far apart: a process that was frozen in between is not
// frozen again at once, and where writes are slow every attempt costs seconds.
const maxLate = 2

// message sends one record. Nothing is ever mended in the middle: when a datagram fails, the message starts over with all its
// chunks under a new id, or goes back to the queue whole. The receiver forgets the chunks it has, since the id never comes again.
func (l *udpLink) message(ctx context.Context, data []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := l.flows.news(); err != nil {
		l.flows.discardAll()
		return err
	}
	f, why, err := l.flows.pick(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", errNoFlow, err)
	}
	defer l.release()
	for restarts, late := 0, 0; ; {
		payload, cut, err := l.fit(data)
		if err != nil {
			return err
		}
		if why != "" && l.meter.Traced() {
			l.meter.Chose(f.local, 1, wireSize(len(payload), l.size), why)
		}
		why = "" // one call per message, however often it starts over
		if err = l.transmit(ctx, f, payload); err == nil {
			if cut {
				l.meter.Truncated(1) // not before: what is sent again is counted once
			}
			l.flows.used(f)
			l.flows.silent()
			return nil
		}
		switch {
		case errno.TooLong(err) && l.shrink(f, err):
		case errno.Busy(err) && restarts < maxRestarts:
			restarts++
			l.settleSent()
			if err := l.pacer.sleep(ctx, l.closed, time.Millisecond<<restarts); err != nil {
				return err
			}
		case errors.Is(err, errLate) && late < maxLate:
			late++
			l.settleSent()
			l.meter.Trouble(delivery.CauseTimeout, fmt.Errorf("message sent anew: %w", err))
		case errno.Refused(err):
			l.flows.discardAll()
			return err
		default:
			l.flows.discard(f)
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
func (l *udpLink) shrink(f *flow, err error) bool {
	size := smaller(l.size, pathMTU(f.conn, l.v6), l.v6)
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
	if err := l.flows.listen(); err != nil {
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
		l.flows.close()
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
