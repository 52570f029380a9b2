package main

import (
	"context"
	"fmt"
	"io"
	"net"
)

// runDemo sends the load both ways to the same three nodes and prints what the nodes counted. It fails when the outcome is not the
// one it means to show.
func runDemo(ctx context.Context, out io.Writer) error {
	b, err := startBed()
	if err != nil {
		return err
	}
	defer b.Close()
	fmt.Fprintf(out, "The same messages, sent two ways to three GELF nodes behind one name. Every look-up of the name gives all\n")
	fmt.Fprintf(out, "three addresses, each time with another one first. Both ways use gzip and datagrams of at most %d bytes.\n", chunkSize)
	fmt.Fprintf(out, "All numbers but \"sent\" were counted by the nodes. Chunk counts differ a little: wholelog has another compressor.\n\n")

	lossy, err := runPerChunk(ctx, b)
	if err != nil {
		return err
	}
	// The losing way goes first: who sees it lose asks for the other.
	render(out, "PER CHUNK: every chunk is looked up and goes to the first address of its answer", lossy)
	whole, err := runWhole(ctx, b)
	if err != nil {
		return err
	}
	render(out, "WHOLELOG: one choice per message, all its chunks to the same node", whole)
	// The tables are printed before they are judged, so that an unexpected outcome can be seen.
	if err := verdict(lossy, whole); err != nil {
		return err
	}
	fmt.Fprintf(out, "Per chunk, %d of %d messages are lost: every one of two or more chunks. Their datagrams did reach the nodes,\n", total(lossy).lost(), total(lossy).sent)
	fmt.Fprintf(out, "but no node has all chunks of a message, and after 5 s it throws its part away. wholelog lost none.\n\n")
	return renderCode(out)
}

// runPerChunk sends the load the control's way. Its socket is not connected, as a sender that changes the address needs it; one
// socket for all datagrams keeps it from losing by source ports what it is meant to lose by addresses.
func runPerChunk(ctx context.Context, b *bed) ([]row, error) {
	conn, err := net.ListenUDP("udp4", nil)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	c := &perChunk{conn: conn, lookup: b.lookup}
	return b.run(ctx, c.send, func() uint64 { return c.bytes })
}

// verdict compares the outcome with what the demonstration claims: look-ups per chunk lose every message of two or more chunks and
// no other, wholelog loses none and cuts only what cannot be sent.
func verdict(lossy, whole []row) error {
	for _, r := range lossy {
		if want := lossOf(r); r.lost() != want {
			return fmt.Errorf("per chunk, %s characters: %d of %d messages lost, expected %d", thousands(r.size), r.lost(), r.sent, want)
		}
	}
	for _, r := range whole {
		if r.lost() != 0 {
			return fmt.Errorf("wholelog, %s characters: %d of %d messages lost %s", thousands(r.size), r.lost(), r.sent, r.note)
		}
		if (sum(r.cut) > 0) != r.tooLong() {
			return fmt.Errorf("wholelog, %s characters: %d of %d messages cut", thousands(r.size), sum(r.cut), r.sent)
		}
	}
	return nil
}

// lossOf is what look-ups per chunk have to lose of a row. With strict rotation two chunks in a row never go to the same node, so
// that it is all or nothing.
func lossOf(r row) int {
	if r.chunked() {
		return r.sent
	}
	return 0
}
