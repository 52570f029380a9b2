package gelf

import (
	"encoding/binary"
	"hash/adler32"
	"hash/crc32"

	"github.com/klauspost/compress/flate"

	"github.com/wholelog/wholelog/chunk"
)

const (
	// maxInflated is where a receiver cuts what it inflates, by default: a message that long would come out as broken JSON. The
	// limit is not asked of plain payloads.
	maxInflated = 8 << 20
	// maxRetained bounds every buffer a link keeps between messages. It holds a message of 128 chunks of up to 2 KiB; the rare
	// larger one takes memory of its own and gives it back.
	maxRetained = 256 << 10
)

// compressor turns records into what is chunked. It keeps one buffer and no compressor state: deflate without state is as fast
// and as small as level 1 on messages of this size, and a link then costs 15 KB in place of 800. Not safe for concurrent use.
type compressor struct {
	mode Compression
	buf  []byte
}

// pack returns what leaves for data in datagrams of at most size bytes: data itself, or its compressed form, which is valid until
// the next call. What fits one datagram is never compressed, since gzip makes short texts longer and saves no datagram.
func (c *compressor) pack(data []byte, size int) []byte {
	if len(data) <= size || c.mode == CompressNone || len(data) >= maxInflated {
		return data
	}
	z := c.deflate(data)
	if c.mode == CompressAuto {
		// Fewer bytes in as many chunks gain nothing: it is a chunk that gets lost, and the processor time is spent.
		if chunk.Count(len(z), size) < chunk.Count(len(data), size) {
			return z
		}
		return data
	}
	if len(z) < len(data) {
		return z
	}
	return data
}

// deflate returns data as one zlib (RFC 1950) or gzip (RFC 1952) stream.
func (c *compressor) deflate(data []byte) []byte {
	if c.mode == CompressZlib {
		// CM 8 with a 32 KiB window, FCHECK for the fastest level: receivers know zlib by 78 and this checksum.
		c.buf = append(c.buf[:0], 0x78, 0x01)
	} else {
		// No name, no time, level unsaid, system unknown.
		c.buf = append(c.buf[:0], 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff)
	}
	// All of the message in one call: the encoder looks back only inside it. It fails only when c.Write does.
	_ = flate.StatelessDeflate(c, data, true, nil)
	if c.mode == CompressZlib {
		c.buf = binary.BigEndian.AppendUint32(c.buf, adler32.Checksum(data))
	} else {
		c.buf = binary.LittleEndian.AppendUint32(c.buf, crc32.ChecksumIEEE(data))
		c.buf = binary.LittleEndian.AppendUint32(c.buf, uint32(len(data)))
	}
	return c.buf
}

// Write collects the encoder's output.
func (c *compressor) Write(p []byte) (int, error) {
	c.buf = append(c.buf, p...)
	return len(p), nil
}

// release gives back what one large message needed.
func (c *compressor) release() {
	if cap(c.buf) > maxRetained {
		c.buf = nil
	}
}
