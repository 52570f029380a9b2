package gelf_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/wholelog/wholelog/chunk"
	"github.com/wholelog/wholelog/gelf"
	"github.com/wholelog/wholelog/internal/fake/cluster"
	"github.com/wholelog/wholelog/internal/fake/gelfd"
	"github.com/wholelog/wholelog/internal/yardstick"
	"github.com/wholelog/wholelog/resolve"
)

// The report that began it all: messages of several sizes, in datagrams of several sizes, to three nodes behind a name whose answers
// rotate strictly. Chosen per chunk, everything longer than a datagram was lost. Every message must be whole on one node, or, where
// 128 chunks cannot hold it, cut and marked; the nodes' shares must be equal; and with PerProcess all must be on one. What counts is
// what the receivers counted.
//
// A message leaves only when the nodes have the one before, so that no more than one message is outstanding anywhere and a lost
// datagram is a bug and not a receive buffer that was too small.
func TestMatrix(t *testing.T) {
	const each = 3
	for _, policy := range []resolve.Policy{resolve.PerMessage, resolve.PerProcess} {
		for _, compression := range []gelf.Compression{gelf.CompressNone, gelf.CompressAuto} {
			for _, size := range []int{100, 300, 1000, 1500, 2500, 5000, 9000} {
				t.Run(fmt.Sprintf("%v/%v/%d", policy, compression, size), func(t *testing.T) {
					t.Parallel()
					r := newRig(t, gelf.Options{
						ChunkSize: size, Compression: compression, Resolve: resolve.Options{Policy: policy},
					})
					for _, n := range []int{5, 50, 500, 5_000, 50_000} {
						for i := range each {
							r.send(n, i)
						}
					}
					r.judge(policy, 5*each)
				})
			}
		}
	}
}

// rig is a cluster and a handler that sends to it.
type rig struct {
	t       *testing.T
	cluster *cluster.Cluster
	handler *gelf.Handler
	log     *slog.Logger
	options gelf.Options
	sent    map[string]string // what was logged, by its key
	ctx     context.Context
}

func newRig(t *testing.T, o gelf.Options) *rig {
	c, err := cluster.Start(3, gelfd.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	for _, n := range c.Nodes {
		// The largest message is 128 datagrams; the kernel charges a small one by a few times its size.
		if need := chunk.MaxChunks * 4 * (o.ChunkSize + 512) / 3; n.RcvBuf() < need && n.RcvBuf() < chunk.MaxChunks*2304 {
			t.Logf("receive buffer of %d bytes, %d would be safe", n.RcvBuf(), need)
		}
	}
	o.Resolve.Resolver = c.Resolver
	h, err := gelf.NewHandler("udp://"+c.Service, &o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(func() { h.Close(); cancel() })
	return &rig{t: t, cluster: c, handler: h, log: slog.New(h), options: o, sent: make(map[string]string), ctx: ctx}
}

// send logs a message of n characters and waits until a node has it.
func (r *rig) send(n, i int) {
	key := fmt.Sprintf("%d-%d", n, i)
	r.sent[key] = yardstick.Text(n, uint64(i))
	r.log.Info(r.sent[key], "key", key)
	if err := r.handler.Flush(r.ctx); err != nil {
		r.t.Fatal(err)
	}
	for r.received() < len(r.sent) {
		select {
		case <-r.ctx.Done():
			for _, n := range r.cluster.Nodes {
				r.t.Logf("%+v", n.Stats())
			}
			r.t.Fatalf("message %s did not arrive; %+v", key, r.handler.Stats())
		case <-time.After(100 * time.Microsecond):
		}
	}
}

func (r *rig) received() (sum int) {
	for _, n := range r.cluster.Nodes {
		sum += len(n.Messages())
	}
	return sum
}

// judge compares what the nodes have with what was logged.
func (r *rig) judge(policy resolve.Policy, want int) {
	t := r.t
	seen, truncated := make(map[string]bool), 0
	shares := make([]int, 0, 3)
	for i, node := range r.cluster.Nodes {
		messages := node.Messages()
		shares = append(shares, len(messages))
		for _, m := range messages {
			key, _ := m.Fields["key"].(string)
			text := textOf(m.Fields)
			cut, marked := m.Fields["truncated"].(int64)
			switch logged := r.sent[key]; {
			case seen[key]:
				t.Errorf("%s arrived twice", key)
			case text == logged && !marked:
			case marked && strings.HasPrefix(logged, text) && len(m.Sizes) > chunk.MaxChunks*9/10:
				truncated++
				if cut <= 0 {
					t.Errorf("%s: %d bytes cut", key, cut)
				}
			default:
				t.Errorf("%s is neither whole nor marked: %d of %d characters, truncated %v, %d chunks",
					key, len(text), len(logged), m.Fields["truncated"], len(m.Sizes))
			}
			seen[key] = true
			if len(m.From) != 1 || len(m.Sizes) > chunk.MaxChunks {
				t.Errorf("%s came from %v in %d datagrams", key, m.From, len(m.Sizes))
			}
			for _, size := range m.Sizes {
				if size > r.options.ChunkSize {
					t.Errorf("%s: a datagram of %d bytes", key, size)
				}
			}
		}
		if s := node.Stats(); s.Assembler.WaitingMessages+s.Assembler.ExpiredMessages+s.Assembler.Invalid > 0 {
			t.Errorf("node %d has pieces: %+v", i, s.Assembler)
		}
	}
	if len(seen) != want {
		t.Errorf("%d of %d arrived", len(seen), want)
	}
	s := r.handler.Stats()
	if s.Accepted != uint64(want) || s.Delivered != uint64(want) || s.Truncated != uint64(truncated) || s.Resent != 0 {
		t.Errorf("%d were cut; %+v", truncated, s)
	}
	fits := r.options.ChunkSize >= 1000 || r.options.Compression != gelf.CompressNone && r.options.ChunkSize >= 300
	if fits != (truncated == 0) {
		t.Errorf("%d were cut", truncated)
	}
	most := max(shares[0], shares[1], shares[2])
	if policy == resolve.PerProcess && most != want || policy == resolve.PerMessage && most != want/3 {
		t.Errorf("shares %v", shares)
	}
}

// textOf is what was logged: the first line stands alone in short_message when there are more.
func textOf(fields map[string]any) string {
	if full, ok := fields["full_message"].(string); ok {
		return full
	}
	text, _ := fields["message"].(string)
	return text
}
