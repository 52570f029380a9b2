package chunk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"
)

// Limits of the format.
const (
	// HeaderSize is the length of a chunk's header in bytes. Every size in this package includes it.
	HeaderSize = 12
	// MaxChunks is the largest number of chunks a receiver joins. It drops a message with more, and says nothing.
	MaxChunks = 128
	// Validity is how long a receiver waits for the rest of a message, from the first chunk it received.
	Validity = 5 * time.Second
)

// magic0 and magic1 open every chunk. A payload that starts so cannot be sent: whole, it would be taken for a chunk, and
// receivers reject it when it comes out of chunks.
const magic0, magic1 = 0x1e, 0x0f

var (
	// ErrTooLarge says that a payload does not fit into MaxChunks datagrams of the size given.
	ErrTooLarge = errors.New("chunk: payload too large")
	// ErrNotChunk says that a datagram is not a chunk: it does not start with the magic bytes.
	ErrNotChunk = errors.New("chunk: not a chunk")
	// ErrInvalid says that bytes look like a chunk and break the format's rules.
	ErrInvalid = errors.New("chunk: invalid")
)

// Count returns how many datagrams of at most size bytes carry a payload of n bytes: 1 when it fits whole, without a header.
// The result may exceed [MaxChunks], in which case the payload cannot be sent at this size. It is 0 when the payload does not
// fit whole and size leaves no room behind the header.
func Count(n, size int) int {
	if n <= size {
		return 1
	}
	if size <= HeaderSize {
		return 0
	}
	// Rounded up without an addition that could overflow; n is at least 1 here.
	return (n-1)/(size-HeaderSize) + 1
}

// Append appends the datagrams of payload to dst, back to back, and returns the extended slice. All but the last are exactly
// size bytes long; there are [Count] of them. A payload that fits whole is appended as it is, without a header. Append does
// not allocate when dst has room for Count(len(payload), size)·HeaderSize + len(payload) bytes more. dst and payload must not
// overlap.
//
// The error is [ErrTooLarge] when the payload needs more than [MaxChunks] datagrams or size leaves no room behind the header,
// and [ErrInvalid] when the payload itself starts like a chunk; dst is then returned unchanged. An empty payload is one empty
// datagram: it is no error here, but receivers reject datagrams of fewer than two bytes.
func Append(dst, payload []byte, size int, id uint64) ([]byte, error) {
	n, err := check(payload, size)
	if err != nil {
		return dst, err
	}
	if n == 1 {
		return append(dst, payload...), nil
	}
	dst = slices.Grow(dst, n*HeaderSize+len(payload))
	for seq := range n {
		dst = appendChunk(dst, payload, size, Header{ID: id, Seq: uint8(seq), Count: uint8(n)})
	}
	return dst, nil
}

// Split returns the datagrams of payload one at a time, in order. It is [Append] for a sender that needs only one datagram in
// memory, and fails as Append does, before the first step. Each slice is valid until the next step and must not be changed;
// a payload that fits whole is yielded itself. payload must stay unchanged while the sequence is in use. The sequence can be
// ranged over again.
func Split(payload []byte, size int, id uint64) (iter.Seq[[]byte], error) {
	n, err := check(payload, size)
	if err != nil {
		return nil, err
	}
	return func(yield func([]byte) bool) {
		if n == 1 {
			yield(slices.Clip(payload))
			return
		}
		buf := make([]byte, 0, size)
		for seq := range n {
			if !yield(appendChunk(buf, payload, size, Header{ID: id, Seq: uint8(seq), Count: uint8(n)})) {
				return
			}
		}
	}, nil
}

// check returns the number of datagrams, which is from 1 to MaxChunks when there is no error.
func check(payload []byte, size int) (int, error) {
	if isChunk(payload) {
		return 0, fmt.Errorf("%w: the payload starts like a chunk", ErrInvalid)
	}
	n := Count(len(payload), size)
	if n == 0 {
		return 0, fmt.Errorf("%w: %d bytes, and a datagram of %d has no room behind the header", ErrTooLarge, len(payload), size)
	}
	if n > MaxChunks {
		return 0, fmt.Errorf("%w: %d bytes need %d datagrams of %d", ErrTooLarge, len(payload), n, size)
	}
	return n, nil
}

// appendChunk appends the header and the part of payload that belongs to h.Seq.
func appendChunk(dst, payload []byte, size int, h Header) []byte {
	data := size - HeaderSize
	from := int(h.Seq) * data
	dst = append(dst, magic0, magic1)
	dst = binary.BigEndian.AppendUint64(dst, h.ID)
	dst = append(dst, h.Seq, h.Count)
	return append(dst, payload[from:min(from+data, len(payload))]...)
}

// Header is what the first [HeaderSize] bytes of a chunk say.
type Header struct {
	ID    uint64 // the message id: 8 opaque bytes, read big-endian
	Seq   uint8  // sequence number, from 0
	Count uint8  // number of chunks of the message
}

// Parse reads one chunk and returns its header and its data, which aliases datagram.
//
// The error is [ErrNotChunk] when datagram does not start with the magic bytes, and [ErrInvalid] when it is shorter than a
// header, when it counts no chunks, or when its sequence number is not below its count. In the last two cases the header and
// the data are returned beside the error. A count above [MaxChunks] is not an error of one chunk.
func Parse(datagram []byte) (Header, []byte, error) {
	if !isChunk(datagram) {
		return Header{}, nil, ErrNotChunk
	}
	if len(datagram) < HeaderSize {
		return Header{}, nil, fmt.Errorf("%w: %d bytes, shorter than a header", ErrInvalid, len(datagram))
	}
	h := Header{ID: binary.BigEndian.Uint64(datagram[2:]), Seq: datagram[10], Count: datagram[11]}
	data := datagram[HeaderSize:]
	if h.Seq >= h.Count {
		return h, data, fmt.Errorf("%w: sequence number %d of %d chunks", ErrInvalid, h.Seq, h.Count)
	}
	return h, data, nil
}

// isChunk reports whether b starts with the magic bytes.
func isChunk(b []byte) bool {
	return len(b) >= 2 && b[0] == magic0 && b[1] == magic1
}
