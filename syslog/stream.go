package syslog

import (
	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/attrs"
	"github.com/wholelog/wholelog/internal/ship"
	"github.com/wholelog/wholelog/internal/stream"
)

// newStream makes a transport over TCP, TLS, or the unix socket at path.
func (c *config) newStream(path string) *stream.Transport {
	frame := frameCounted
	if c.framing == Newline {
		frame = frameLine
	}
	return stream.New(stream.Config{
		Frame: frame, Refused: refused, TLS: c.tls, Path: path,
		SendTimeout: c.sendTimeout, SendBuffer: c.sendBuffer, PerAddr: c.perAddr, MaxAge: c.connAge,
	})
}

// frameCounted puts the length in front (RFC 6587, section 3.4.1; RFC 5425, section 4.3.1). Nothing follows the message: a line feed
// there would be taken for the beginning of the next length.
func frameCounted(dst, record []byte) (frame []byte, cut bool, err error) {
	dst = append(attrs.AppendUint(dst, uint64(len(record))), ' ')
	return append(dst, record...), false, nil
}

// frameLine ends the message with a line feed (RFC 6587, section 3.4.2). No message holds one, and none begins with a digit.
func frameLine(dst, record []byte) (frame []byte, cut bool, err error) {
	return append(append(dst, record...), '\n'), false, nil
}

// refused is for a record that no frame can hold. There is none.
func refused(err error) ship.Outcome {
	return ship.Outcome{Do: ship.Drop, Reason: delivery.ReasonTooLarge, Err: err}
}
