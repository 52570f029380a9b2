package gelf

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/ship"
	"github.com/wholelog/wholelog/internal/stream"
)

// maxFrame is the longest frame a GELF TCP input takes by default, without its NUL. At one byte more it closes the connection, and what
// is on its way behind is lost.
const maxFrame = 2 << 20

// errNoFrame says that a record is nothing that may stand between two NULs. No encoder of ours makes such a one; but one that came
// would cost the connection, and with it what is on its way.
var errNoFrame = errors.New("not a frame: empty, one byte long, or with NUL in it")

// newTCP returns the transport for tcp and tls: each record is a frame of its JSON and one NUL, never compressed.
func newTCP(c connConfig) *stream.Transport {
	return stream.New(stream.Config{
		Frame:       framer{c.oversize, maxFrame}.frame,
		Refused:     frameOutcome,
		TLS:         c.tls,
		SendTimeout: c.sendTimeout,
		PerAddr:     c.perAddr,
		MaxAge:      c.age,
	})
}

// framer makes frames of records.
type framer struct {
	oversize Oversize
	max      int // bytes of a frame without its NUL
}

// frame implements [stream.Config].Frame.
func (f framer) frame(dst, record []byte) (frame []byte, cut bool, err error) {
	if len(record) < 2 || bytes.IndexByte(record, 0) >= 0 {
		return dst, false, errNoFrame
	}
	if len(record) > f.max {
		short, ok := []byte(nil), false
		if f.oversize == OversizeTruncate {
			short, ok = shorten(record, f.max, false, func(p []byte) []byte { return p })
		}
		if !ok {
			return dst, false, fmt.Errorf("%d bytes do not fit a frame of %d: %w", len(record), f.max, delivery.ErrTooLarge)
		}
		cut = !cutBefore(record)
		record = short
	}
	return append(append(dst, record...), 0), cut, nil
}

// frameOutcome says what becomes of a record that no frame can carry.
//
//	ErrTooLarge   Drop, too_large
//	errNoFrame    Drop, rejected
func frameOutcome(err error) ship.Outcome {
	if errors.Is(err, delivery.ErrTooLarge) {
		return ship.Outcome{Do: ship.Drop, Reason: delivery.ReasonTooLarge, Err: err}
	}
	return ship.Outcome{Do: ship.Drop, Reason: delivery.ReasonRejected, Err: err}
}
