//go:build linux

package interop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wholelog/wholelog/chunk"
	"github.com/wholelog/wholelog/gelf"
	"github.com/wholelog/wholelog/internal/fake/gelfd"
)

// graypyData is how many bytes of a message graypy puts into a chunk: its chunk size leaves the header out.
const graypyData = 1420

// graypy is a Python program that logs as it is told.
type graypy struct {
	*program
	t       *testing.T
	orders  io.Writer
	answers *output
	asked   int
}

// graypyAnswer is what the program says after each message.
type graypyAnswer struct {
	Payload  int      // bytes of the message, compressed if it compresses
	Warnings []string // their classes
}

func startGraypy(t *testing.T, host string, port uint16, compress bool) *graypy {
	t.Helper()
	// Debian's, and no other that may be in front of it.
	const python = "/usr/bin/python3"
	version(t, python, "-c", "import graypy, sys, importlib.metadata as m; print('graypy', m.version('graypy'), 'Python', sys.version)")
	dir := workDir(t)
	flag := "0"
	if compress {
		flag = "1"
	}
	cmd := command(dir, python, script(t, dir, "graypy_send.py"), host, fmt.Sprint(port), flag)
	orders, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	g := &graypy{t: t, orders: orders, answers: &output{}}
	cmd.Stdout = g.answers
	g.program = run(t, cmd)
	return g
}

// log has one message logged and returns when it was sent.
func (g *graypy) log(order map[string]any) (a graypyAnswer) {
	g.t.Helper()
	line, err := json.Marshal(order)
	if err != nil {
		g.t.Fatal(err)
	}
	if _, err := g.orders.Write(append(line, '\n')); err != nil {
		g.t.Fatal(err)
	}
	g.asked++
	until(g.t, "graypy answers", func() bool { return strings.Count(g.answers.String(), "\n") == g.asked })
	lines := strings.Split(g.answers.String(), "\n")
	if err := json.Unmarshal([]byte(lines[g.asked-1]), &a); err != nil {
		g.t.Fatal(err)
	}
	return a
}

// Its boundaries are other ones: 1420 bytes of data in a chunk and so datagrams of 1432, and a message of exactly 1420 is a single
// chunk. All of it is put together as it was, and the one byte that makes 129 chunks is refused with a warning.
func TestGraypyBoundaries(t *testing.T) {
	p := newTap(t)
	g := startGraypy(t, "127.0.0.1", p.port(), false)
	for _, tt := range []struct{ size, datagrams int }{
		{graypyData - 1, 1},
		{graypyData, 1},
		{graypyData + 1, 2},
		{2*graypyData - 1, 2},
		{2 * graypyData, 2},
		{2*graypyData + 1, 3},
		{127*graypyData - 1, 127},
		{127 * graypyData, 127},
		{127*graypyData + 1, 128},
		{128*graypyData - 1, 128},
		{128 * graypyData, 128},
		{128*graypyData + 1, 0},
	} {
		a := g.log(map[string]any{"payload": tt.size})
		var warnings []string
		if tt.datagrams == 0 {
			warnings = []string{"GELFChunkOverflowWarning"}
		}
		if a.Payload != tt.size || !slices.Equal(a.Warnings, warnings) {
			t.Errorf("%d bytes: %+v", tt.size, a)
		}
		got := p.take(t, tt.datagrams)
		for _, d := range got {
			h, data, err := chunk.Parse(d.data)
			chunked := err == nil
			if chunked != (tt.size >= graypyData) || chunked && (int(h.Count) != tt.datagrams || len(data) == 0 || len(data) > graypyData) {
				t.Errorf("%d bytes: %+v with %d bytes, %v", tt.size, h, len(data), err)
			}
		}
		messages := assemble(t, got)
		if tt.datagrams == 0 {
			continue
		}
		const begin = `{"version":"1.0","host":"graypy","short_message":"xxx`
		if len(messages) != 1 || len(messages[0]) != tt.size || !bytes.HasPrefix(messages[0], []byte(begin)) {
			t.Errorf("%d bytes: %d messages, %.80q", tt.size, len(messages), messages)
		}
	}
}

// Whole and in chunks, compressed and not, the receiver has every field.
func TestGraypyToReceiver(t *testing.T) {
	for _, compress := range []bool{false, true} {
		t.Run(fmt.Sprintf("compress %v", compress), func(t *testing.T) {
			s := listen(t)
			g := startGraypy(t, "127.0.0.1", s.Addr().Port(), compress)
			kind := gelfd.Plain
			if compress {
				kind = gelfd.Zlib
			}
			for i, n := range []int{1, 200, 3000, 50_000, 150_000} {
				text := filler(n)
				a := g.log(map[string]any{"text": text})
				got := await(t, s, i+1)[i]
				want := map[string]any{
					"message": text, "source": "graypy", "level": int64(6), "facility": "graypy",
					"timestamp": time.UnixMilli(1772368245123).UTC(),
				}
				if fmt.Sprint(got.Fields) != fmt.Sprint(want) || got.Kind != kind || len(got.Dropped) != 0 {
					t.Errorf("%d characters: %.300v, %v, dropped %v", n, got.Fields, got.Kind, got.Dropped)
				}
				if datagrams := (a.Payload + graypyData - 1) / graypyData; len(got.Sizes) != datagrams || len(got.From) != 1 {
					t.Errorf("%d characters: %d datagrams from %v, want %d", n, len(got.Sizes), got.From, datagrams)
				}
			}
			if st := s.Stats(); len(st.Rejected) != 0 || st.Assembler.WaitingMessages != 0 {
				t.Errorf("%+v", st)
			}
		})
	}
}

// Given a name, graypy has the C library look it up for every datagram. With the strict rotation of a load balancer's name its chunks
// go round the nodes: short messages arrive and no chunked one does, and nobody is told. Ours, same name and nodes, all arrive. The
// balancer is one where each address has a node of its own, because with others in between a few could meet again by chance.
func TestR16_GraypyByName(t *testing.T) {
	if !behindBalancer(t, "zonal") {
		return
	}
	const each = 20
	nodes := balancedNodes(t)
	d := startDNSMasq(t, dnsPort, vipAddrs()...)
	g := startGraypy(t, strings.TrimSuffix(service, "."), vips()[0].Port(), false)

	datagrams, incomplete, asked := uint64(0), uint64(0), 0
	for n := 1; n <= 5; n++ {
		for range each {
			a := g.log(map[string]any{"payload": n*graypyData - 1})
			if len(a.Warnings) != 0 {
				t.Errorf("%+v", a)
			}
			asked += n
			datagrams += uint64(n)
			if n > 1 {
				incomplete += uint64(min(n, len(nodes)))
			}
			until(t, "its datagrams arrive", func() bool { return sum(nodes).datagrams == datagrams })
		}
	}
	if got := sum(nodes); got.messages != each || got.waiting != incomplete {
		t.Errorf("graypy: the nodes have %+v; want the %d short messages and %d pieces", got, each, incomplete)
	}
	until(t, "dnsmasq has logged a query for each datagram", func() bool { return d.queries("A") == asked })
	t.Logf("graypy: %d look-ups; %d of %d short messages arrived, and 0 of %d in chunks", asked, each, each, 4*each)

	s, h := behindName(t, nodes, gelf.Options{ChunkSize: graypyData + chunk.HeaderSize, Compression: gelf.CompressNone})
	for n := 1; n <= 5; n++ {
		for range each {
			s.send(filler(n*graypyData - 300))
		}
	}
	flush(t, h)
	until(t, "dnsmasq has logged our look-up", func() bool { return d.queries("A") > asked })
	if got, st := sum(nodes), h.Stats(); got.messages != 6*each || got.waiting != incomplete || st.Delivered != 5*each {
		t.Errorf("wholelog: the nodes have %+v; %+v", got, st)
	}
	t.Logf("wholelog: %d look-ups; %d of %d messages arrived", d.queries("A")-asked, sum(nodes).messages-each, 5*each)
}
