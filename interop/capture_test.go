//go:build linux

package interop

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wholelog/wholelog/chunk"
	"github.com/wholelog/wholelog/gelf"
	"github.com/wholelog/wholelog/resolve"
)

// capture is tcpdump on the loopback interface.
type capture struct {
	*program
	pcap output
}

// startCapture captures UDP to a port.
func startCapture(t *testing.T, port uint16) *capture {
	t.Helper()
	path := find(t, "tcpdump")
	version(t, path, "--version")
	// The ring has a place of -s bytes for each packet, so that asking for whole ones of any size would leave it few places.
	cmd := command("/", path, "-i", "lo", "-n", "-s", "2048", "-B", "16384", "-U", "--immediate-mode", "-w", "-",
		fmt.Sprintf("udp dst port %d", port))
	c := &capture{}
	cmd.Stdout = &c.pcap
	c.program = run(t, cmd)
	until(t, "tcpdump listens", func() bool { return strings.Contains(c.out.String(), "listening on lo") })
	return c
}

// packets waits for n packets and ends the capture, which must be complete.
func (c *capture) packets(t *testing.T, n int) []packet {
	t.Helper()
	var got []packet
	var err error
	parsed := func() bool { got, err = parsePcap(c.pcap.Bytes()); return err != nil || len(got) >= n }
	if !within(t, patience, parsed) || err != nil {
		t.Fatalf("%d packets of %d: %v", len(got), n, err)
	}
	c.stop(t, syscall.SIGTERM)
	parsed()
	if err != nil || len(got) != n || !strings.Contains(c.out.String(), "\n0 packets dropped by kernel") {
		t.Fatalf("%d packets, want %d; %v\n%s", len(got), n, err, c.out.String())
	}
	return got
}

// On the wire, where no test double can be kind: all chunks of a message leave from one source port to one address, none is longer
// than ChunkSize, header included, none is fragmented, and together they are the message.
func TestR15R16_Capture(t *testing.T) {
	if !ownNetwork(t) {
		return
	}
	const size, each = 1420, 12
	nodes, port := listenTogether(t, 3)
	tcpdump := startCapture(t, port)

	var targets []string
	for _, n := range nodes {
		targets = append(targets, n.Addr().String())
	}
	h := newHandler(t, "udp://"+service+":12201", gelf.Options{
		ChunkSize: size, Compression: gelf.CompressNone, Resolve: resolve.Options{Resolver: resolve.Static(targets...)},
	})
	s := &sender{t: t, nodes: nodes, log: slog.New(h)}
	texts := map[string]bool{}
	for _, n := range []int{40, 2000, 20_000, 128*(size-chunk.HeaderSize) - 300} {
		for i := range each {
			text := filler(n - i)
			texts[text] = true
			s.send(text)
		}
	}
	s.whole(h)

	type way struct{ from, to netip.AddrPort }
	ways, chunks := map[uint64]way{}, map[uint64]int{}
	flows := map[way]int{}
	var assembler chunk.Assembler
	messages := 0
	for _, p := range tcpdump.packets(t, int(sum(nodes).datagrams)) {
		if p.fragment || len(p.payload) > size {
			t.Errorf("a packet of %d bytes, fragment %v", len(p.payload), p.fragment)
		}
		w := way{p.from, p.to}
		if header, _, err := chunk.Parse(p.payload); err == nil {
			if before, seen := ways[header.ID]; seen && before != w {
				t.Errorf("a message took %v and %v", before, w)
			}
			ways[header.ID] = w
			if chunks[header.ID]++; int(header.Seq)+1 < int(header.Count) && len(p.payload) != size {
				t.Errorf("chunk %d of %d has %d bytes", header.Seq, header.Count, len(p.payload))
			}
		}
		message, done, err := assembler.Add(p.payload, time.Now())
		if err != nil {
			t.Error(err)
		}
		if !done {
			continue
		}
		messages++
		flows[w]++
		for text := range texts {
			if bytes.Contains(message, []byte(`"`+text+`"`)) {
				delete(texts, text)
			}
		}
	}
	if st := assembler.Stats(); messages != 4*each || len(ways) != 3*each || len(texts) != 0 || st.WaitingMessages+st.DuplicateChunks != 0 {
		t.Errorf("%d messages, %d of them in chunks, %d texts missing; %+v", messages, len(ways), len(texts), st)
	}
	most := 0
	for _, n := range chunks {
		most = max(most, n)
	}
	if most != chunk.MaxChunks {
		t.Errorf("the longest message took %d chunks, want %d", most, chunk.MaxChunks)
	}
	if len(flows) != 3*16 { // every message opens a flow until all exist
		t.Errorf("%d flows, want 48", len(flows))
	}
	t.Logf("%d messages in %d packets over %d flows", messages, sum(nodes).datagrams, len(flows))
}
