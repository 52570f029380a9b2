package dnsd

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// query builds a question as a client sends it, with RD set.
func query(id uint16, name string, t Type) []byte {
	b := binary.BigEndian.AppendUint16(nil, id)
	b = append(b, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0)
	b = appendName(b, name)
	b = binary.BigEndian.AppendUint16(b, uint16(t))
	return append(b, 0, classIN)
}

// unhex reads hexadecimal digits, blanks ignored.
func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestParseQuery(t *testing.T) {
	good := query(0x1234, "Logs.Test", TypeAAAA)
	q, ok := parseQuery(good)
	if !ok || q.id != 0x1234 || q.name != "logs.test" || q.typ != TypeAAAA {
		t.Fatalf("got %+v, %v", q, ok)
	}
	if got := string(q.raw); got != "\x04Logs\x04Test\x00\x00\x1c\x00\x01" {
		t.Errorf("raw question %q: the case of the client is lost", got)
	}
	withOPT := append(append([]byte(nil), good...), 0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0)
	if _, ok := parseQuery(withOPT); !ok {
		t.Error("a query with an EDNS record behind the question is refused")
	}
	root, ok := parseQuery(query(1, "", TypeA))
	if !ok || root.name != "" {
		t.Errorf("the root: %+v, %v", root, ok)
	}
}

func TestParseQueryRefuses(t *testing.T) {
	good := query(1, "logs.test", TypeA)
	for n := range len(good) {
		if _, ok := parseQuery(good[:n]); ok {
			t.Errorf("accepted after %d of %d bytes", n, len(good))
		}
	}
	change := func(at int, b byte) []byte {
		p := append([]byte(nil), good...)
		p[at] = b
		return p
	}
	for name, packet := range map[string][]byte{
		"a response":          change(2, 0x81),
		"no question":         change(5, 0),
		"two questions":       change(5, 2),
		"a compressed name":   change(headerSize, 0xc0),
		"a label of 64 bytes": change(headerSize, 64),
		"a label too long":    change(headerSize, 63),
	} {
		if q, ok := parseQuery(packet); ok {
			t.Errorf("%s: accepted as %+v", name, q)
		}
	}
}

func TestResponseBytes(t *testing.T) {
	q, _ := parseQuery(query(0xbeef, "a.b", TypeA))
	for name, c := range map[string]struct {
		build func() []byte
		want  string
	}{
		"NXDOMAIN": {
			func() []byte { return newResponse(q, NXDomain).buf },
			"beef 8583 0001 0000 0000 0000 0161 0162 00 0001 0001",
		},
		"one address": {
			func() []byte {
				r := newResponse(q, NoError)
				r.address("a.b", netip.MustParseAddr("192.0.2.7"), time.Minute)
				return r.buf
			},
			"beef 8580 0001 0001 0000 0000 0161 0162 00 0001 0001" +
				"0161 0162 00 0001 0001 0000003c 0004 c0000207",
		},
		"alias and IPv6 address": {
			func() []byte {
				r := newResponse(q, NoError)
				r.cname("a.b", "c.", 300*time.Second)
				r.address("c", netip.MustParseAddr("2001:db8::1"), 0)
				return r.buf
			},
			"beef 8580 0001 0002 0000 0000 0161 0162 00 0001 0001" +
				"0161 0162 00 0005 0001 0000012c 0003 0163 00" +
				"0163 00 001c 0001 00000000 0010 20010db8000000000000000000000001",
		},
		"truncated": {
			func() []byte {
				r := newResponse(q, NoError)
				r.address("a.b", netip.MustParseAddr("192.0.2.7"), time.Minute)
				r.truncate(q)
				return r.buf
			},
			"beef 8780 0001 0000 0000 0000 0161 0162 00 0001 0001",
		},
	} {
		if got, want := c.build(), unhex(t, c.want); string(got) != string(want) {
			t.Errorf("%s:\n got %x\nwant %x", name, got, want)
		}
	}
}

func FuzzParseQuery(f *testing.F) {
	f.Add(query(1, "logs.test", TypeA))
	f.Add(query(2, "", TypeAAAA))
	f.Add([]byte("\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\xc0\x0c\x00\x01\x00\x01"))
	f.Fuzz(func(t *testing.T, packet []byte) {
		q, ok := parseQuery(packet)
		if !ok {
			return
		}
		// What was accepted is answered by something that starts like a response to exactly this question.
		b := newResponse(q, NXDomain).buf
		if binary.BigEndian.Uint16(b) != binary.BigEndian.Uint16(packet) || string(b[headerSize:]) != string(q.raw) {
			t.Fatalf("%x answered by %x", packet, b)
		}
	})
}
