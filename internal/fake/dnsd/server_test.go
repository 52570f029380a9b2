package dnsd

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"testing"
	"time"
)

func start(t *testing.T) *Server {
	t.Helper()
	s, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func addrs(texts ...string) []netip.Addr {
	var out []netip.Addr
	for _, text := range texts {
		out = append(out, netip.MustParseAddr(text))
	}
	return out
}

// reply is a response, taken apart. Names in responses of this server are never compressed.
type reply struct {
	rcode     RCode
	truncated bool
	records   []string
}

// ask sends one question and reads one answer, with nothing between us and the server, within wait.
func ask(t *testing.T, s *Server, network, name string, typ Type, wait time.Duration) (reply, error) {
	t.Helper()
	c, err := s.Dial(t.Context(), network, "ignored:53")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(wait))
	packet := query(7, name, typ)
	if network == "tcp" {
		packet = append(binary.BigEndian.AppendUint16(nil, uint16(len(packet))), packet...)
	}
	if _, err := c.Write(packet); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 64<<10)
	n := 0
	if network == "tcp" {
		if _, err = io.ReadFull(c, buf[:2]); err == nil {
			n, err = io.ReadFull(c, buf[:binary.BigEndian.Uint16(buf)])
		}
	} else {
		n, err = c.Read(buf)
	}
	if err != nil {
		return reply{}, err
	}
	return decode(t, buf[:n]), nil
}

func decode(t *testing.T, b []byte) reply {
	t.Helper()
	flags := binary.BigEndian.Uint16(b[2:])
	r := reply{rcode: RCode(flags & 15), truncated: flags&flagTruncated != 0}
	count := int(binary.BigEndian.Uint16(b[6:]))
	_, rest := readName(b[headerSize:])
	rest = rest[4:]
	for range count {
		var name string
		name, rest = readName(rest)
		typ, ttl, size := Type(binary.BigEndian.Uint16(rest)), binary.BigEndian.Uint32(rest[4:]), binary.BigEndian.Uint16(rest[8:])
		data := rest[10 : 10+size]
		rest = rest[10+size:]
		value := ""
		if typ == TypeCNAME {
			value, _ = readName(data)
		} else if addr, ok := netip.AddrFromSlice(data); ok {
			value = addr.String()
		}
		r.records = append(r.records, fmt.Sprintf("%s %d %d %s", name, ttl, typ, value))
	}
	if len(rest) != 0 {
		t.Errorf("%d bytes behind the last record", len(rest))
	}
	return r
}

func readName(b []byte) (name string, rest []byte) {
	for b[0] != 0 {
		name += string(b[1:1+b[0]]) + "."
		b = b[1+b[0]:]
	}
	return name, b[1:]
}

// patience is how long a test waits for what must come, however loaded the machine is.
const patience = 30 * time.Second

func mustAsk(t *testing.T, s *Server, network, name string, typ Type) reply {
	t.Helper()
	r, err := ask(t, s, network, name, typ, patience)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRotatesByOneWithEveryQuery(t *testing.T) {
	s := start(t)
	s.Set("logs.test", Answer{Addrs: addrs("192.0.2.1", "192.0.2.2", "2001:db8::1", "192.0.2.3", "2001:db8::2"), TTL: time.Minute})
	want := [][]string{
		{"logs.test. 60 1 192.0.2.1", "logs.test. 60 1 192.0.2.2", "logs.test. 60 1 192.0.2.3"},
		{"logs.test. 60 1 192.0.2.2", "logs.test. 60 1 192.0.2.3", "logs.test. 60 1 192.0.2.1"},
		{"logs.test. 60 1 192.0.2.3", "logs.test. 60 1 192.0.2.1", "logs.test. 60 1 192.0.2.2"},
		{"logs.test. 60 1 192.0.2.1", "logs.test. 60 1 192.0.2.2", "logs.test. 60 1 192.0.2.3"},
	}
	for i, want := range want {
		// UDP and TCP are the same server, AAAA questions turn their own wheel.
		network := []string{"udp", "tcp"}[i%2]
		if got := mustAsk(t, s, network, "logs.test", TypeA).records; !slices.Equal(got, want) {
			t.Errorf("query %d over %s: %q, want %q", i, network, got, want)
		}
	}
	for _, want := range [][]string{
		{"logs.test. 60 28 2001:db8::1", "logs.test. 60 28 2001:db8::2"},
		{"logs.test. 60 28 2001:db8::2", "logs.test. 60 28 2001:db8::1"},
	} {
		if got := mustAsk(t, s, "udp", "LOGS.test.", TypeAAAA).records; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if a, aaaa := s.Queries("Logs.Test.", TypeA), s.Queries("logs.test", TypeAAAA); a != 4 || aaaa != 2 {
		t.Errorf("counted %d A and %d AAAA questions", a, aaaa)
	}
}

func TestAnswers(t *testing.T) {
	s := start(t)
	two := addrs("192.0.2.1", "192.0.2.2")
	s.Set("fixed.test", Answer{Addrs: two, Fixed: true})
	s.Set("alias.test", Answer{CNAME: "Middle.test.", TTL: 300 * time.Second})
	s.Set("middle.test", Answer{CNAME: "fixed.test", TTL: 200 * time.Second})
	s.Set("dangling.test", Answer{CNAME: "gone.test"})
	s.Set("circle.test", Answer{CNAME: "circle.test"})
	s.Set("empty.test", Answer{})
	s.Set("fail.test", Answer{Addrs: two, RCode: ServFail})
	s.Set("refuse.test", Answer{RCode: Refused})
	s.Set("tc.test", Answer{Addrs: two, Fixed: true, Truncated: true})
	s.SetType("mixed.test", TypeAAAA, Answer{RCode: ServFail})
	s.Set("mixed.test", Answer{Addrs: two[:1]})

	circle := slices.Repeat([]string{"circle.test. 0 5 circle.test."}, maxAliases)
	fixed := []string{"fixed.test. 0 1 192.0.2.1", "fixed.test. 0 1 192.0.2.2"}
	for _, c := range []struct {
		network, name string
		typ           Type
		want          reply
	}{
		{"udp", "fixed.test", TypeA, reply{records: fixed}},
		{"udp", "fixed.test", TypeA, reply{records: fixed}},
		{"udp", "fixed.test", TypeAAAA, reply{}},
		{"udp", "alias.test", TypeA, reply{records: append([]string{
			"alias.test. 300 5 Middle.test.", "middle.test. 200 5 fixed.test.",
		}, fixed...)}},
		{"udp", "dangling.test", TypeA, reply{records: []string{"dangling.test. 0 5 gone.test."}}},
		{"udp", "circle.test", TypeA, reply{records: circle}},
		{"udp", "empty.test", TypeA, reply{}},
		{"tcp", "fail.test", TypeA, reply{rcode: ServFail}},
		{"udp", "refuse.test", TypeA, reply{rcode: Refused}},
		{"udp", "unknown.test", TypeA, reply{rcode: NXDomain}},
		{"udp", "tc.test", TypeA, reply{truncated: true}},
		{"tcp", "tc.test", TypeA, reply{records: []string{"tc.test. 0 1 192.0.2.1", "tc.test. 0 1 192.0.2.2"}}},
		{"udp", "mixed.test", TypeA, reply{records: []string{"mixed.test. 0 1 192.0.2.1"}}},
		{"udp", "mixed.test", TypeAAAA, reply{rcode: ServFail}},
	} {
		got := mustAsk(t, s, c.network, c.name, c.typ)
		if got.rcode != c.want.rcode || got.truncated != c.want.truncated || !slices.Equal(got.records, c.want.records) {
			t.Errorf("%s %s %d: %+v, want %+v", c.network, c.name, c.typ, got, c.want)
		}
	}
}

func TestChangesWhileRunning(t *testing.T) {
	s := start(t)
	for _, set := range [][]netip.Addr{
		addrs("192.0.2.1"),
		addrs("192.0.2.1", "192.0.2.2", "192.0.2.3"),
		addrs("192.0.2.9"),
	} {
		s.Set("logs.test", Answer{Addrs: set})
		if got := mustAsk(t, s, "udp", "logs.test", TypeA).records; len(got) != len(set) {
			t.Errorf("%q for the set %v", got, set)
		}
	}
	s.SetType("logs.test", TypeAAAA, Answer{})
	s.Remove("LOGS.test.")
	for _, typ := range []Type{TypeA, TypeAAAA} {
		if got := mustAsk(t, s, "udp", "logs.test", typ); got.rcode != NXDomain {
			t.Errorf("type %d after Remove: %+v", typ, got)
		}
	}
}

func TestLongAnswerComesOverTCP(t *testing.T) {
	s := start(t)
	var many []netip.Addr
	for i := range 200 {
		many = append(many, netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}))
	}
	s.Set("many.test", Answer{Addrs: many})
	if got := mustAsk(t, s, "udp", "many.test", TypeA); !got.truncated || len(got.records) != 0 {
		t.Errorf("over UDP: truncated=%v with %d records", got.truncated, len(got.records))
	}
	got, err := s.Resolver().LookupNetIP(t.Context(), "ip4", "many.test.")
	if err != nil || len(got) != len(many) {
		t.Errorf("the resolver got %d of %d addresses, %v", len(got), len(many), err)
	}
}

func TestSeenThroughNetResolver(t *testing.T) {
	s := start(t)
	r := s.Resolver()
	s.Set("ok.test", Answer{CNAME: "real.test"})
	s.Set("real.test", Answer{Addrs: addrs("192.0.2.1", "2001:db8::1")})
	s.Set("empty.test", Answer{})
	s.Set("fail.test", Answer{RCode: ServFail})

	got, err := r.LookupNetIP(t.Context(), "ip", "ok.test.")
	slices.SortFunc(got, netip.Addr.Compare)
	if err != nil || !slices.Equal(got, addrs("192.0.2.1", "2001:db8::1")) {
		t.Errorf("ok.test: %v, %v", got, err)
	}
	for name, notFound := range map[string]bool{"unknown.test.": true, "empty.test.": true, "fail.test.": false} {
		_, err := r.LookupNetIP(t.Context(), "ip4", name)
		var dns *net.DNSError
		if !errors.As(err, &dns) || dns.IsNotFound != notFound || dns.IsTemporary == notFound {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := s.Queries("fail.test", TypeA); n != 2 {
		t.Errorf("SERVFAIL was asked for %d times; net tries twice", n)
	}
}

func TestDelayHoldsUpOnlyItsOwnAnswer(t *testing.T) {
	s := start(t)
	s.Set("slow.test", Answer{Delay: 100 * time.Millisecond})
	s.Set("fast.test", Answer{})
	var order []string
	var mu sync.Mutex
	var wg sync.WaitGroup
	note := func(name string) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, name)
	}
	began := time.Now()
	wg.Go(func() {
		if _, err := ask(t, s, "udp", "slow.test", TypeA, patience); err == nil {
			note("slow")
		}
	})
	for s.Queries("slow.test", TypeA) == 0 {
		if time.Since(began) > patience {
			t.Fatal("the slow question never came")
		}
	}
	mustAsk(t, s, "udp", "fast.test", TypeA)
	note("fast")
	wg.Wait()
	if !slices.Equal(order, []string{"fast", "slow"}) || time.Since(began) < 100*time.Millisecond {
		t.Errorf("order %v after %v", order, time.Since(began))
	}
}

func TestSilence(t *testing.T) {
	s := start(t)
	s.Set("silent.test", Answer{Silent: true})
	for i, network := range []string{"udp", "tcp"} {
		// Not through net.Resolver, whose own goroutine would go on reading for seconds.
		if got, err := ask(t, s, network, "silent.test", TypeA, 100*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("over %s: %+v, %v", network, got, err)
		}
		if n := s.Queries("silent.test", TypeA); n != i+1 {
			t.Errorf("counted %d questions after %s", n, network)
		}
	}
}

func TestNonsenseIsPassedOver(t *testing.T) {
	s := start(t)
	s.Set("logs.test", Answer{})
	c, err := s.Dial(t.Context(), "udp", "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, junk := range []string{"", "x", "no query at all, though long enough"} {
		if _, err := io.WriteString(c, junk); err != nil {
			t.Fatal(err)
		}
	}
	mustAsk(t, s, "udp", "logs.test", TypeA)
}

func TestCloseWithWorkUnderWay(t *testing.T) {
	s := start(t)
	s.Set("slow.test", Answer{Delay: time.Hour})
	var wg sync.WaitGroup
	for _, network := range []string{"udp", "tcp"} {
		c, err := s.Dial(t.Context(), network, "")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		packet := query(1, "slow.test", TypeA)
		if network == "tcp" {
			packet = append(binary.BigEndian.AppendUint16(nil, uint16(len(packet))), packet...)
		}
		if _, err := c.Write(packet); err != nil {
			t.Fatal(err)
		}
	}
	for deadline := time.Now().Add(patience); s.Queries("slow.test", TypeA) < 2; {
		if time.Now().After(deadline) {
			t.Fatal("the questions never came")
		}
	}
	for range 3 {
		wg.Go(func() { s.Close() })
	}
	wg.Wait()
}

func TestServices(t *testing.T) {
	s := start(t)
	s.Set("_gelf._udp.logs.test", Answer{TTL: time.Minute, SRV: []SRV{
		{Priority: 1, Weight: 2, Port: 12201, Target: "a.test"}, {Priority: 3, Weight: 4, Port: 514, Target: "b.test."},
	}})
	s.Set("_none._udp.logs.test", Answer{SRV: []SRV{{Target: "."}}})
	s.Set("alias.test", Answer{CNAME: "_gelf._udp.logs.test"})
	for name, want := range map[string]string{
		"_gelf._udp.logs.test.": "{a.test. 12201 1 2} {b.test. 514 3 4} ",
		"_none._udp.logs.test.": "{. 0 0 0} ",
		"alias.test.":           "{a.test. 12201 1 2} {b.test. 514 3 4} ",
	} {
		_, records, err := s.Resolver().LookupSRV(t.Context(), "", "", name)
		got := ""
		for _, r := range records {
			got += fmt.Sprint(*r, " ")
		}
		if got != want || err != nil {
			t.Errorf("%s: %s, %v, want %s", name, got, err, want)
		}
	}
	if n := s.Queries("_gelf._udp.logs.test", TypeSRV); n != 1 {
		t.Errorf("counted %d questions", n)
	}
}
