package stream

import (
	"context"
	"math"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/ship"
)

// How often the kernel is asked while something waits for its word and nothing is written: soon at first, then ever more rarely while
// nothing moves, but within the time after which the engine calls a link stuck.
const (
	askFirst = 2 * time.Millisecond
	askLast  = 50 * time.Millisecond
)

// patience is how long the peer may take to answer our FIN with its own, once everything is acknowledged. Some never do.
const patience = time.Second

// Why records leave by this stream, for the trace.
const (
	whyNew  = "new connection"
	whyOpen = "open connection"
)

// link is one stream.
type link struct {
	conn   net.Conn // what is spoken through: wire, or TLS over it
	wire   *wire
	config *Config
	meter  *ship.Meter
	local  netip.AddrPort
	most   int           // bytes in one write, unless a record alone is larger
	gone   chan struct{} // closed with the first err
	heard  chan struct{} // closed when the reader has ended

	sending sync.Mutex // held by Send and Drain; Close waits for it, when it has cut them short
	buf     []byte
	used    bool

	mu     sync.Mutex
	ledger ledger
	err    error // why the stream is over
	closed bool
	parted bool // we said goodbye, and the peer did not contradict
	timer  *time.Timer
	armed  bool
	every  time.Duration // until the next question
}

// Send implements [ship.Link]. A batch leaves with one write, under TLS with one for each 16 KiB.
func (l *link) Send(ctx context.Context, b *ship.Batch) error {
	l.sending.Lock()
	defer l.sending.Unlock()
	if err := l.Err(); err != nil {
		b.Settle(0, b.Len(), outcome(false))
		return err
	}
	if ctx.Err() != nil { // says nothing about the peer
		b.Settle(0, b.Len(), outcome(false))
		return nil
	}
	until, _ := ctx.Deadline()
	l.wire.limit(until)
	for from := 0; from < b.Len(); {
		to, err := l.piece(b, from)
		if err != nil {
			if to < b.Len() {
				b.Settle(to, b.Len(), outcome(false))
			}
			l.fail(fault(err))
			return l.Err()
		}
		from = to
	}
	return nil
}

// piece frames the records of b from the given one on, as many as leave with one write, and writes them. It returns the first record
// of which nothing left.
func (l *link) piece(b *ship.Batch, from int) (to int, err error) {
	l.mu.Lock()
	ends := l.ledger.room()
	l.mu.Unlock()
	l.buf = l.buf[:0]
	cuts := 0
	for to = from; to < b.Len(); to++ {
		record := b.At(to).Bytes()
		if to > from && len(l.buf)+len(record) > l.most {
			break
		}
		framed, cut, err := l.config.Frame(l.buf, record)
		if err != nil && to > from {
			break // what is framed leaves first
		}
		if err != nil {
			b.Settle(to, to+1, l.config.Refused(err))
			return to + 1, nil
		}
		l.buf = framed
		ends = append(ends, uint64(len(framed)))
		if cut {
			cuts++
		}
	}
	if l.meter.Traced() {
		l.meter.Chose(l.local, to-from, len(l.buf), l.why())
	}
	before := l.wire.written.Load()
	n, err := l.conn.Write(l.buf)
	ends = l.counted(ends, before, n, err)
	if err == nil && cuts > 0 {
		l.meter.Truncated(cuts)
	}
	if cap(l.buf) > maxRetained {
		l.buf = nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if len(ends) > 0 {
		l.ledger.add(flight{batch: b, from: from, ends: ends}, err == nil, now)
	}
	l.ledger.ask(l.wire.written.Load(), now)
	l.watch()
	return from + len(ends), err
}

// counted turns the ends of frames in a write into counts of the wire, and leaves out those of which no byte was handed to the kernel.
// Under TLS only the whole write has an end; when that failed, nobody knows what is in the records that left, and no acknowledgement
// means any frame.
func (l *link) counted(ends []uint64, before uint64, n int, err error) []uint64 {
	if l.conn != l.wire {
		end := l.wire.written.Load()
		if err != nil && end == before {
			return ends[:0]
		}
		if err != nil {
			end = math.MaxUint64
		}
		for i := range ends {
			ends[i] = end
		}
		return ends
	}
	handed, start := 0, uint64(0)
	for i, end := range ends {
		if start >= uint64(n) {
			break
		}
		start, handed = end, i+1
		ends[i] = before + end
	}
	return ends[:handed]
}

// why is asked once a write.
func (l *link) why() string {
	if l.used {
		return whyOpen
	}
	l.used = true
	return whyNew
}

// watch has the kernel asked again while something waits, and only then. The caller holds mu.
func (l *link) watch() {
	if len(l.ledger.flights) == 0 || l.armed || l.closed || l.ledger.unacked == nil {
		return
	}
	l.armed, l.every = true, askFirst
	if l.timer == nil {
		l.timer = time.AfterFunc(l.every, l.poll)
		return
	}
	l.timer.Reset(l.every)
}

// poll asks the kernel, and gives the stream up when nothing was acknowledged for SendTimeout. A peer that does not read has its kernel
// acknowledge everything as long as there is room, and then nothing.
func (l *link) poll() {
	l.mu.Lock()
	l.armed = false
	if l.closed {
		l.mu.Unlock()
		return
	}
	before := l.ledger.acked
	l.ledger.ask(l.wire.written.Load(), time.Now())
	waiting := len(l.ledger.flights) > 0
	stalled := waiting && time.Since(l.ledger.moved) >= l.config.SendTimeout
	if waiting && !stalled {
		l.every = min(2*l.every, askLast)
		if l.ledger.acked > before {
			l.every = askFirst
		}
		l.armed = true
		l.timer.Reset(l.every)
	}
	l.mu.Unlock()
	if stalled {
		l.fail(&ship.Fault{Cause: delivery.CauseTimeout, Err: errStalled})
	}
}

// Nudge implements [ship.Link].
func (l *link) Nudge() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || len(l.ledger.flights) == 0 {
		return
	}
	l.ledger.ask(l.wire.written.Load(), time.Now())
	l.armed = false // somebody waits: ask soon again
	l.watch()
}

// listen is the reader. Whatever ends it ends the stream: a peer of ours has nothing to say.
func (l *link) listen() {
	defer close(l.heard)
	l.fail(l.hear())
}

// hear waits for the end of the stream. TLS may run the user's code here.
func (l *link) hear() (err error) {
	defer guard(&err)
	var words [64]byte
	n, err := l.conn.Read(words[:])
	if n > 0 {
		return unwanted(words[:n])
	}
	return fault(err)
}

// fail ends the stream for err, unless it is over already.
func (l *link) fail(err error) {
	l.mu.Lock()
	first := l.err == nil
	if first {
		l.err = err
		close(l.gone)
	}
	l.mu.Unlock()
	if first {
		l.wire.abort()
	}
}

// Err returns why the stream is over; nil while it is not.
func (l *link) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Gone implements [ship.Link].
func (l *link) Gone() <-chan struct{} { return l.gone }

// Drain implements [ship.Link]: FIN first, behind everything else, so that the peer can answer with its own when it has read all.
func (l *link) Drain(ctx context.Context) error {
	l.sending.Lock()
	defer l.sending.Unlock()
	if err := l.Err(); err != nil {
		return err
	}
	until, _ := ctx.Deadline()
	l.wire.limit(until)
	if t, ok := l.conn.(interface{ CloseWrite() error }); ok && l.conn != l.wire {
		_ = t.CloseWrite() // close_notify; FIN says the same to a peer that it does not reach
	}
	l.wire.finish()
	l.mu.Lock()
	calm := l.ledger.calmed()
	l.watch()
	l.mu.Unlock()
	select {
	case <-calm:
	case <-l.heard:
	case <-ctx.Done():
		return ctx.Err()
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-l.heard:
	case <-timer.C:
	case <-ctx.Done():
	}
	return l.farewell()
}

// farewell settles the rest after a goodbye, and says what is missing.
func (l *link) farewell() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ledger.ask(l.wire.written.Load(), time.Now())
	l.parted = l.err == nil || ship.CauseOf(l.err) == delivery.CausePeerClosed
	switch {
	case len(l.ledger.flights) == 0:
		return nil
	case l.err == nil:
		return errGivenUp
	}
	return l.err
}

// Close implements [ship.Link]. It cuts a Send or a Drain short, asks the kernel a last time, which answers after the peer's RST too,
// and leaves the rest to be taken back.
func (l *link) Close() error {
	l.fail(&ship.Fault{Cause: delivery.CauseTimeout, Err: errGivenUp})
	l.sending.Lock()
	defer l.sending.Unlock()
	if n := l.settleLast(); n > 0 {
		l.meter.Unconfirmed(n)
	}
	err := l.wire.Close()
	<-l.heard
	return err
}

// settleLast is the end of the ledger. It returns how many records were delivered without the peer's word.
func (l *link) settleLast() (unconfirmed int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0
	}
	l.closed = true
	now := time.Now()
	l.ledger.ask(l.wire.written.Load(), now)
	if l.timer != nil {
		l.timer.Stop()
	}
	l.ledger.flights = nil // the engine has what is left
	switch {
	case l.parted:
		return 0
	case l.wire.answer.refused(l.err), ship.CauseOf(l.err) == delivery.CauseProtocol:
		return l.ledger.taken // the server read nothing of it, or is none of ours
	}
	return l.ledger.unconfirmed(now)
}
