package chunk_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"github.com/wholelog/wholelog/chunk"
)

// One message, one id, one connected socket: all its chunks take the same way through a load balancer.
func ExampleSplit() {
	send := func(conn net.Conn, payload []byte) error {
		datagrams, err := chunk.Split(payload, 1232, rand.Uint64())
		if err != nil {
			return err // too large: compress it first, shorten it, or use TCP
		}
		for d := range datagrams {
			if _, err := conn.Write(d); err != nil {
				return err // start over with a new id, never with the rest
			}
		}
		return nil
	}

	near, far := net.Pipe()
	go func() {
		_ = send(near, bytes.Repeat([]byte("x"), 3000)) // the reader below sees what was sent
		_ = near.Close()
	}()
	buf := make([]byte, 2048)
	for {
		n, err := far.Read(buf)
		if err != nil {
			break
		}
		h, data, err := chunk.Parse(buf[:n])
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%d of %d: %d bytes\n", h.Seq+1, h.Count, len(data))
	}
	// Output:
	// 1 of 3: 1220 bytes
	// 2 of 3: 1220 bytes
	// 3 of 3: 560 bytes
}

// The datagrams stand back to back, all of the same size but the last, as UDP segmentation offload wants them.
func ExampleAppend() {
	buf, err := chunk.Append(nil, []byte(`{"version":"1.1","host":"web-1","short_message":"hello"}`), 40, 0x0123456789abcdef)
	if err != nil {
		fmt.Println(err)
		return
	}
	for len(buf) > 0 {
		n := min(40, len(buf))
		fmt.Printf("%x %s\n", buf[:chunk.HeaderSize], buf[chunk.HeaderSize:n])
		buf = buf[n:]
	}
	// Output:
	// 1e0f0123456789abcdef0002 {"version":"1.1","host":"web
	// 1e0f0123456789abcdef0102 -1","short_message":"hello"}
}

// What a capture of one datagram tells.
func ExampleParse() {
	h, data, err := chunk.Parse([]byte("\x1e\x0f\x01\x23\x45\x67\x89\xab\xcd\xef\x01\x03the middle"))
	fmt.Printf("message %016x, chunk %d of %d: %s, %v\n", h.ID, h.Seq+1, h.Count, data, err)

	_, _, err = chunk.Parse([]byte(`{"version":"1.1"}`))
	fmt.Println(errors.Is(err, chunk.ErrNotChunk))
	// Output:
	// message 0123456789abcdef, chunk 2 of 3: the middle, <nil>
	// true
}

// 128 chunks are all there is: what needs more is compressed, shortened, or sent by another way.
func ExampleAppend_tooLarge() {
	payload := bytes.Repeat([]byte("x"), 156_161)
	_, err := chunk.Append(nil, payload, 1232, rand.Uint64())
	fmt.Println(errors.Is(err, chunk.ErrTooLarge), chunk.Count(len(payload), 1232))
	// Output: true 129
}

func ExampleCount() {
	fmt.Println(chunk.Count(1232, 1232), chunk.Count(1233, 1232), chunk.Count(156_160, 1232), chunk.Count(156_161, 1232))
	// Output: 1 2 128 129
}

func ExampleAssembler() {
	datagrams, err := chunk.Split([]byte("a message that is longer than its datagrams"), 32, rand.Uint64())
	if err != nil {
		fmt.Println(err)
		return
	}
	var a chunk.Assembler
	for d := range datagrams {
		message, done, err := a.Add(d, time.Now())
		if err != nil {
			fmt.Println(err)
		}
		if done {
			fmt.Printf("%s\n", message)
		}
	}
	fmt.Println(a.Stats().TotalChunks, "chunks")
	// Output:
	// a message that is longer than its datagrams
	// 3 chunks
}

// A receiver forgets a message whose rest does not come within Validity, and nobody is told.
func ExampleAssembler_Expire() {
	datagrams, err := chunk.Split([]byte("a message that is longer than its datagrams"), 32, rand.Uint64())
	if err != nil {
		fmt.Println(err)
		return
	}
	var a chunk.Assembler
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for d := range datagrams {
		if _, _, err := a.Add(d, now); err != nil {
			fmt.Println(err)
		}
		break // the others took another way
	}
	fmt.Println(a.Expire(now.Add(chunk.Validity)), a.Expire(now.Add(chunk.Validity+time.Second)))
	fmt.Println(a.Stats().ExpiredMessages, "message,", a.Stats().ExpiredChunks, "chunk expired")
	// Output:
	// 0 1
	// 1 message, 1 chunk expired
}
