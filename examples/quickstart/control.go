package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/wholelog/wholelog/chunk"
)

// perChunk is the control: a GELF client as many are written, correct in every datagram. It fails by one habit alone, which is
// marked below: it hands each chunk to the network by name, and so every chunk is looked up.
type perChunk struct {
	conn   *net.UDPConn
	lookup func(context.Context) ([]netip.AddrPort, error)
	bytes  uint64 // sent so far
}

func (c *perChunk) send(ctx context.Context, m message) error {
	payload, err := encode(m)
	if err != nil {
		return err
	}
	// A fresh id of 64 random bits for each message; the control does not lose by its ids either.
	datagrams, err := chunk.Split(payload, chunkSize, rand.Uint64())
	if err != nil {
		return err
	}
	// <difference>
	for datagram := range datagrams {
		addrs, err := c.lookup(ctx) // another answer for every chunk
		if err != nil {
			return err
		}
		if err := c.write(datagram, addrs[0]); err != nil {
			return err
		}
	}
	// </difference>
	return nil
}

func (c *perChunk) write(datagram []byte, to netip.AddrPort) error {
	n, err := c.conn.WriteToUDPAddrPort(datagram, to)
	c.bytes += uint64(n)
	return err
}

// encode makes a GELF message, with fast gzip when it does not fit one datagram: the same rule as wholelog's, so that both ways need
// about the same number of chunks.
func encode(m message) ([]byte, error) {
	text := m.text()
	// short_message is the line shown in lists; the whole text is full_message, if there is more than that line.
	short, _, more := strings.Cut(text, "\n")
	fields := map[string]any{
		"version":       "1.1",
		"host":          "quickstart",
		"short_message": short,
		"timestamp":     float64(time.Now().UnixMilli()) / 1000,
		"level":         6,
		"_size":         m.size,
		"_number":       m.number,
	}
	if more {
		fields["full_message"] = text
	}
	payload, err := json.Marshal(fields)
	if err != nil || len(payload) <= chunkSize {
		return payload, err
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(payload); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}
