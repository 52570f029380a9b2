package main

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/wholelog/wholelog/internal/fake/cluster"
	"github.com/wholelog/wholelog/internal/fake/gelfd"
)

const (
	nodes = 3
	// arrival is how long a message may take from the kernel to a node's counters. Loopback needs microseconds; a busy machine
	// may let the node wait for a processor. What is not there by then was lost, and the table says so.
	arrival = 2 * time.Second
)

// bed is three GELF nodes and their common name.
type bed struct {
	*cluster.Cluster
	lookup func(ctx context.Context) ([]netip.AddrPort, error) // the control's; tests replace it
}

func startBed() (*bed, error) {
	c, err := cluster.Start(nodes, gelfd.Options{})
	if err != nil {
		return nil, err
	}
	return &bed{c, c.Lookup}, nil
}

// run sends the load, one message at a time: the next one leaves when the nodes have read the last, so that their receive buffers
// never hold more than one message and nothing but the choice of addresses can lose any. wired returns the bytes sent so far. An
// error of send is the loss of that message.
func (b *bed) run(ctx context.Context, send func(context.Context, message) error, wired func() uint64) ([]row, error) {
	var rows []row
	base, _ := b.received()
	for _, batch := range load() {
		r := row{size: batch.size, sent: batch.count}
		// Counters only grow, and messages stay in their order, so that a row is what came after its mark.
		before := b.mark()
		for i := range batch.count {
			if err := send(ctx, message{batch.size, i}); err != nil {
				r.note = err.Error()
			}
			b.settle(ctx, base+wired())
			if ctx.Err() != nil {
				return nil, fmt.Errorf("interrupted: %w", ctx.Err())
			}
		}
		b.count(&r, before)
		if r.tooLong() {
			r.note = "does not fit UDP"
			if sum(r.cut) > 0 {
				r.note += ": truncated, marked"
			}
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// received is what all nodes have read, in bytes; idle says that none of them still has a complete message in hand.
func (b *bed) received() (bytes uint64, idle bool) {
	idle = true
	for _, n := range b.Nodes {
		s := n.Stats()
		bytes += s.Bytes
		idle = idle && s.Whole == s.Datagrams-s.Assembler.TotalChunks+s.Assembler.CompleteMessages
	}
	return bytes, idle
}

// settle waits until the nodes have received so many bytes and have judged what they made of them.
func (b *bed) settle(ctx context.Context, want uint64) {
	ctx, cancel := context.WithTimeout(ctx, arrival)
	defer cancel()
	tick := time.NewTicker(200 * time.Microsecond)
	defer tick.Stop()
	for {
		if bytes, idle := b.received(); bytes >= want && idle {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// mark is the state of the nodes' counters at the start of a row.
type mark struct{ datagrams, messages [nodes]int }

func (b *bed) mark() (m mark) {
	for i, n := range b.Nodes {
		m.datagrams[i] = int(n.Stats().Datagrams)
		m.messages[i] = len(n.Messages())
	}
	return m
}

// count fills in what the nodes received since the mark. A message is whole when its text is the one that was logged, to the last
// character, and cut when it is the beginning of it and a field says how much is missing. Anything else is neither.
func (b *bed) count(r *row, since mark) {
	for i, n := range b.Nodes {
		r.datagrams[i] = int(n.Stats().Datagrams) - since.datagrams[i]
		for _, m := range n.Messages()[since.messages[i]:] {
			number, _ := m.Fields["number"].(int64)
			logged, got := (message{r.size, int(number)}).text(), textOf(m)
			_, marked := m.Fields["truncated"]
			switch {
			case got == logged:
				r.whole[i]++
			case marked && strings.HasPrefix(logged, got):
				r.cut[i]++
			}
		}
	}
}

// textOf is what was logged: short_message holds the first line only when there are more.
func textOf(m gelfd.Message) string {
	if full, ok := m.Fields["full_message"].(string); ok {
		return full
	}
	text, _ := m.Fields["message"].(string)
	return text
}
