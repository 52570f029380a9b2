package chunk_test

import (
	"bytes"
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
