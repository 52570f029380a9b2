//go:build linux

package interop

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"
)

// packet is one UDP packet over IPv4 as it was on the wire.
type packet struct {
	from, to netip.AddrPort
	payload  []byte
	fragment bool
}

// parsePcap reads as many packets as a capture holds so far: the classic format of libpcap, Ethernet frames, IPv4, UDP. A packet that
// is not complete yet is left for the next time.
func parsePcap(b []byte) ([]packet, error) {
	const fileHeader, recordHeader, ethernet = 24, 16, 1
	if len(b) < fileHeader {
		return nil, nil
	}
	// The magic number tells the byte order, and this is the machine that wrote it.
	if magic, link := binary.NativeEndian.Uint32(b), binary.NativeEndian.Uint32(b[20:]); magic != 0xa1b2c3d4 || link != ethernet {
		return nil, fmt.Errorf("pcap: magic %x, link type %d", magic, link)
	}
	var out []packet
	for b = b[fileHeader:]; len(b) >= recordHeader; {
		captured, original := int(binary.NativeEndian.Uint32(b[8:])), int(binary.NativeEndian.Uint32(b[12:]))
		if captured != original {
			return nil, fmt.Errorf("pcap: %d of %d bytes were captured", captured, original)
		}
		if len(b) < recordHeader+captured {
			break
		}
		p, err := parseFrame(b[recordHeader : recordHeader+captured])
		if err != nil {
			return nil, err
		}
		out = append(out, p)
		b = b[recordHeader+captured:]
	}
	return out, nil
}

// parseFrame reads an Ethernet frame (RFC 894) with IPv4 (RFC 791) and UDP (RFC 768).
func parseFrame(f []byte) (packet, error) {
	const ethernet, udp = 14, 8
	if len(f) < ethernet+20 || f[12] != 8 || f[13] != 0 || f[ethernet]>>4 != 4 || f[ethernet+9] != 17 {
		return packet{}, errors.New("pcap: not UDP over IPv4")
	}
	ip := f[ethernet:]
	header, total := int(ip[0]&15)*4, int(binary.BigEndian.Uint16(ip[2:]))
	if header < 20 || total < header+udp || total > len(ip) {
		return packet{}, fmt.Errorf("pcap: an IP packet of %d bytes in a frame of %d", total, len(f))
	}
	addr := func(at, port int) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(ip[at:at+4])), binary.BigEndian.Uint16(ip[header+port:]))
	}
	return packet{
		from: addr(12, 0), to: addr(16, 2), payload: ip[header+udp : total],
		fragment: binary.BigEndian.Uint16(ip[6:])&0x3fff != 0, // "more fragments", or an offset
	}, nil
}

func TestParsePcap(t *testing.T) {
	const head = "\xd4\xc3\xb2\xa1\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x04\x00\x01\x00\x00\x00"
	const record = "\x00\x00\x00\x00\x00\x00\x00\x00\x2c\x00\x00\x00\x2c\x00\x00\x00" +
		"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x08\x00" +
		"\x45\x00\x00\x1e\x00\x00\x40\x00\x40\x11\x00\x00\x7f\x00\x00\x01\x7f\x00\x00\x02" +
		"\x30\x39\x2f\xa9\x00\x0a\x00\x00\x1e\x0f"
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Log("the bytes here are those of a little-endian machine, which this is not")
		return
	}
	for n := range record {
		if got, err := parsePcap([]byte(head + record[:n])); err != nil || len(got) != 0 {
			t.Errorf("%d bytes: %v, %v", n, got, err)
		}
	}
	got, err := parsePcap([]byte(head + record + record[:20]))
	want := packet{from: netip.MustParseAddrPort("127.0.0.1:12345"), to: netip.MustParseAddrPort("127.0.0.2:12201"), payload: []byte{0x1e, 0x0f}}
	if err != nil || len(got) != 1 || fmt.Sprint(got[0]) != fmt.Sprint(want) {
		t.Errorf("%v, %v", got, err)
	}
	for name, b := range map[string]string{
		"not a capture": "\x0a\x0d\x0d\x0a" + head[4:],
		"not UDP":       head + record[:39] + "\x06" + record[40:],
		"cut short":     head + record[:12] + "\xff" + record[13:],
	} {
		if got, err := parsePcap([]byte(b)); err == nil {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func FuzzParsePcap(f *testing.F) {
	f.Add([]byte("\xd4\xc3\xb2\xa1 and more than that is needed for a header"))
	f.Fuzz(func(t *testing.T, b []byte) {
		begin := time.Now()
		got, err := parsePcap(b)
		if err == nil && len(got) > len(b)/16 || time.Since(begin) > time.Second {
			t.Errorf("%d packets of %d bytes", len(got), len(b))
		}
	})
}
