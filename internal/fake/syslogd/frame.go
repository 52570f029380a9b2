package syslogd

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
)

// Framing is what a receiver takes on streams.
type Framing int

// The framings of real receivers.
const (
	Either  Framing = iota // each frame is octet-counted when it begins with a digit: rsyslog's imtcp, HAProxy
	Counted                // octet counting only: syslog-ng's syslog(), RFC 5425
	Lines                  // a line feed ends a frame, and so does NUL: syslog-ng's network()
)

// frames reads the messages of a stream, and gives each to take, until the stream ends or its framing is broken. limit is the longest
// message; what is longer breaks the stream, as HAProxy does it.
func frames(r io.Reader, framing Framing, limit int, take func(string)) error {
	b := bufio.NewReaderSize(r, limit+len("\n"))
	for {
		first, err := b.Peek(1)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var frame []byte
		if framing == Counted || framing == Either && first[0] >= '0' && first[0] <= '9' {
			frame, err = counted(b, limit)
		} else {
			frame, err = line(b)
		}
		if err != nil {
			return err
		}
		if len(frame) == 0 {
			return reject(BadFrame, "an empty frame")
		}
		take(string(frame))
	}
}

// counted reads MSG-LEN SP MSG (RFC 6587, section 3.4.1).
func counted(b *bufio.Reader, limit int) ([]byte, error) {
	count, err := b.ReadSlice(' ')
	n, bad := strconv.Atoi(string(bytes.TrimSuffix(count, []byte{' '})))
	switch {
	case err != nil && len(count) == 0:
		return nil, err
	case err != nil || bad != nil || count[0] < '1' || count[0] > '9': // signs and leading zeros are no MSG-LEN
		return nil, reject(BadFrame, "%.20q is no length", count)
	case n > limit:
		return nil, reject(BadSize, "%d bytes", n)
	}
	frame := make([]byte, n)
	if _, err := io.ReadFull(b, frame); err != nil {
		return nil, reject(BadFrame, "the stream ends in a message of %d bytes", n)
	}
	return frame, nil
}

// line reads up to a line feed (RFC 6587, section 3.4.2).
func line(b *bufio.Reader) ([]byte, error) {
	s, err := b.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, reject(BadSize, "more than %d bytes in a line", len(s))
	case err != nil:
		return nil, reject(BadFrame, "the stream ends in a line: %.40q", s)
	case s[0] != '<':
		return nil, reject(BadFrame, "a line begins with %.20q", s)
	case bytes.IndexByte(s, 0) >= 0:
		return nil, reject(BadFrame, "a NUL, which ends a message, in %.40q", s)
	}
	return s[:len(s)-1], nil
}
