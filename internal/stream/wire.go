package stream

import (
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wholelog/wholelog/internal/ship"
)

// wire is a connection as the kernel has it, below TLS if there is any. It counts what the kernel took, since that is what the kernel
// counts acknowledgements in, and it gives every write its time: a write goes on as long as something moves. TLS does not survive a
// write that ended early, so that must be done below it.
type wire struct {
	net.Conn
	timeout time.Duration
	meter   *ship.Meter
	written atomic.Uint64 // bytes the kernel took

	answer *answer // set while the peer's word on the handshake is awaited; belongs to the reader then

	mu       sync.Mutex
	until    time.Time // the end of all writes, whatever moves; zero: none
	deadline time.Time // the one in force
	over     bool
}

// limit has all writes end by until; the zero time lifts that.
func (w *wire) limit(until time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.until = until
}

// Write implements [net.Conn].
func (w *wire) Write(p []byte) (n int, err error) {
	still := time.Now() // nothing has moved since
	for {
		if err := w.arm(time.Now(), still.Add(w.timeout)); err != nil {
			return n, err
		}
		m, err := w.Conn.Write(p[n:])
		n += m
		if m > 0 {
			w.written.Add(uint64(m))
			w.meter.Wire(m)
		}
		if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		if m > 0 {
			still = time.Now()
		}
		if w.expired(time.Now(), still) {
			return n, err
		}
	}
}

// arm gives the write that follows until limit. To set a deadline costs as much as a small write: one in force serves as long as it
// leaves at least half of the time, and a write that it ends too early goes on.
func (w *wire) arm(now, limit time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return net.ErrClosed
	}
	if !w.until.IsZero() && w.until.Before(limit) {
		limit = w.until
	}
	if !w.deadline.After(limit) && w.deadline.Sub(now) >= limit.Sub(now)/2 && w.deadline.After(now) {
		return nil
	}
	w.deadline = limit
	return w.SetWriteDeadline(limit)
}

// expired says whether a write that was ended at now, and in which nothing moved since still, has had its time.
func (w *wire) expired(now, still time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return now.Sub(still) >= w.timeout || !w.until.IsZero() && !now.Before(w.until)
}

// Read implements [net.Conn].
func (w *wire) Read(p []byte) (int, error) {
	w.answer.reads()
	n, err := w.Conn.Read(p)
	w.answer.got(n)
	return n, err
}

// abort ends reads and writes under way, and all later ones. The connection stays open: the kernel still has to say what was
// acknowledged.
func (w *wire) abort() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	_ = w.SetDeadline(time.Unix(1, 0)) // it fails on a closed connection only
}

// finish sends FIN: nothing follows.
func (w *wire) finish() {
	half, ok := w.Conn.(interface{ CloseWrite() error })
	if ok && half.CloseWrite() == nil {
		w.written.Add(1) // FIN takes a sequence number (RFC 9293, section 3.4), and the kernel counts it as unacknowledged
	}
}
