package resolve

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"net"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Parts of messages: a.b A, an alias of TTL 300, and addresses of TTL 60 with the name as a pointer and spelled out.
const (
	header1  = "beef 8180 0001 0001 0000 0000"
	header2  = "beef 8180 0001 0002 0001 0001"
	question = "0161 0162 00 0001 0001"
	alias    = "c00c 0005 0001 0000012c 0002 c00c"
	address  = "c00c 0001 0001 0000003c 0004 c0000201"
	spelled  = "0161 c00e 0001 0001 0000003c 0004 c0000201"
	soa      = "c00c 0006 0001 00000001 0000"
)

func TestSmallestTTL(t *testing.T) {
	for name, c := range map[string]struct {
		message string
		ttl     uint32
		ok      bool
	}{
		"one address":             {header1 + question + address, 60, true},
		"spelled out":             {header1 + question + spelled, 60, true},
		"alias and address":       {header2 + question + alias + address + soa, 60, true},
		"address and alias":       {header2 + question + address + alias, 60, true},
		"alias alone":             {header1 + question + alias, 300, true},
		"zero":                    {header1 + question + "c00c 0001 0001 00000000 0004 c0000201", 0, true},
		"longest":                 {header1 + question + "c00c 0001 0001 7fffffff 0004 c0000201", math.MaxInt32, true},
		"top bit means zero":      {header1 + question + "c00c 0001 0001 80000000 0004 c0000201", 0, true},
		"no question":             {"beef 8180 0000 0001 0000 0000" + "00 0001 0001 00000005 0000", 5, true},
		"empty":                   {"beef 8180 0001 0000 0001 0000" + question + soa, 0, false},
		"a query":                 {"beef 0100 0001 0001 0000 0000" + question + address, 0, false},
		"nothing":                 {"", 0, false},
		"header cut":              {"beef 8180 0001", 0, false},
		"question cut":            {header1 + "0161 0162 00 0001", 0, false},
		"name cut":                {header1 + "0161 05", 0, false},
		"name without end":        {header1 + "0161", 0, false},
		"reserved label":          {header1 + "41" + question + address, 0, false},
		"pointer cut":             {header1 + question + "c0", 0, false},
		"record cut":              {header1 + question + "c00c 0001 0001 0000", 0, false},
		"data cut":                {header1 + question + "c00c 0001 0001 0000003c 0004 c000", 0, false},
		"second answer cut":       {header2 + question + alias + "c00c 0001", 300, true},
		"more announced than was": {header2 + question + alias, 300, true},
	} {
		ttl, ok := smallestTTL(unhex(t, c.message))
		if ok != c.ok || ok && ttl != c.ttl {
			t.Errorf("%s: %d, %v, want %d, %v", name, ttl, ok, c.ttl, c.ok)
		}
	}
}

func FuzzSmallestTTL(f *testing.F) {
	for _, m := range []string{header1 + question + address, header2 + question + alias + spelled + soa, "beef 8180 0000 0001 0000 0000 00 0001"} {
		f.Add(unhex(f, m))
	}
	f.Fuzz(func(t *testing.T, m []byte) {
		if ttl, ok := smallestTTL(m); ok && ttl > math.MaxInt32 {
			t.Errorf("TTL %d", ttl)
		}
	})
}

func TestSmallestOfAllMessages(t *testing.T) {
	w := &wire{}
	if got := w.smallest(); got != 0 {
		t.Errorf("before any: %v", got)
	}
	for _, step := range []struct {
		message string
		want    time.Duration
	}{
		{"", 0},
		{header1 + question + alias, 300 * time.Second},
		{header1 + question + address, 60 * time.Second},
		{header1 + question + alias, 60 * time.Second},
		{header1 + question + "c00c 0001 0001 00000000 0004 c0000201", time.Second},
	} {
		w.message(unhex(t, step.message))
		if got := w.smallest(); got != step.want {
			t.Errorf("after %s: %v, want %v", step.message, got, step.want)
		}
	}
}

// piecewise gives what it reads in small pieces.
type piecewise struct {
	net.Conn
	r io.Reader
}

func (p piecewise) Read(b []byte) (int, error) { return p.r.Read(b) }

func TestStreamIsReadInPieces(t *testing.T) {
	framed := func(parts ...string) string {
		var b strings.Builder
		for _, p := range parts {
			m := unhex(t, p)
			b.Write([]byte{byte(len(m) >> 8), byte(len(m))})
			b.Write(m)
		}
		return b.String()
	}
	all := framed(header1+question+alias, "", header1+question+address, header2+question+alias)
	for name, wrap := range map[string]func(io.Reader) io.Reader{
		"whole":  func(r io.Reader) io.Reader { return r },
		"halves": iotest.HalfReader,
		"bytes":  iotest.OneByteReader,
	} {
		w := &wire{}
		s := &stream{query: query{wire: w, Conn: piecewise{r: wrap(strings.NewReader(all))}}}
		got, err := io.ReadAll(s)
		if err != nil || string(got) != all {
			t.Errorf("%s: %x, %v", name, got, err)
		}
		if w.smallest() != time.Minute || len(s.pending) != 0 {
			t.Errorf("%s: TTL %v, %d bytes left", name, w.smallest(), len(s.pending))
		}
	}
}

// A look-up of 2 s has time for a query of 0.9 s and one of 1 s, and ends its queries 0.1 s before itself. A slow one has one query.
func TestTimeOfQueries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), lookupLimit)
		defer cancel()
		const ms = time.Millisecond
		for _, c := range []struct {
			slow      bool
			at, until time.Duration
		}{
			{false, 0, 900 * ms},
			{false, 100 * ms, 1000 * ms},
			{false, 900 * ms, 1900 * ms},
			{false, 1900 * ms, 1900 * ms},
			{true, 0, 1900 * ms},
			{true, 1900 * ms, 1900 * ms},
		} {
			w := newWire(ctx, c.slow)
			if got := w.until(began.Add(c.at)).Sub(began); got != c.until {
				t.Errorf("slow=%v: a query at %v ends at %v, want %v", c.slow, c.at, got, c.until)
			}
		}
	})
}

func TestDialOfTheUserIsGuarded(t *testing.T) {
	conn, peer := net.Pipe()
	defer peer.Close()
	defer conn.Close()
	broken := errors.New("broken")
	for want, base := range map[string]dialFunc{
		"the resolver's Dial panicked: oh no":        func(context.Context, string, string) (net.Conn, error) { panic("oh no") },
		"the resolver's Dial returned no connection": func(context.Context, string, string) (net.Conn, error) { return nil, nil },
		"broken": func(context.Context, string, string) (net.Conn, error) { return nil, broken },
	} {
		w := &wire{ctx: t.Context()}
		if c, err := w.dial(base)(t.Context(), "udp", "x:53"); c != nil || err == nil || err.Error() != want {
			t.Errorf("%v, %v, want %s", c, err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	w := &wire{ctx: ctx}
	dial := w.dial(func(context.Context, string, string) (net.Conn, error) { return conn, nil })
	c, err := dial(t.Context(), "tcp", "x:53")
	if _, packets := c.(net.PacketConn); err != nil || packets {
		t.Errorf("a stream became %T, %v", c, err)
	}
	cancel()
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the query outlived its look-up: %v", err)
	}
	if _, err := dial(t.Context(), "tcp", "x:53"); !errors.Is(err, context.Canceled) {
		t.Errorf("a query after the look-up: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
