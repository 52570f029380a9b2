package dnsd

import (
	"encoding/binary"
	"net/netip"
	"strings"
	"time"
)

// Type is a record type (RFC 1035 §3.2.2, RFC 3596 §2.1, RFC 2782).
type Type uint16

// The types the server knows.
const (
	TypeA     Type = 1
	TypeCNAME Type = 5
	TypeAAAA  Type = 28
	TypeSRV   Type = 33
)

// RCode is a response code (RFC 1035 §4.1.1).
type RCode uint8

// The response codes of interest.
const (
	NoError  RCode = 0
	ServFail RCode = 2
	NXDomain RCode = 3
	Refused  RCode = 5
)

const (
	headerSize = 12
	classIN    = 1

	// maxUDP is what resolvers advertise today (RFC 6891 §6.2.5 and the DNS Flag Day of 2020). Longer answers are truncated over
	// UDP, so that the client comes back over TCP.
	maxUDP = 1232
)

// Bits of the second and third header word's flags (RFC 1035 §4.1.1).
const (
	flagResponse           = 1 << 15
	flagAuthoritative      = 1 << 10
	flagTruncated          = 1 << 9
	flagRecursionDesired   = 1 << 8
	flagRecursionAvailable = 1 << 7
)

// question is the one question of a query.
type question struct {
	id    uint16
	flags uint16
	name  string // lower case, without the final dot
	typ   Type
	raw   []byte // name, type and class as they came: a client compares them with what it asked, in its own case
}

// parseQuery reads a query with one question. It says false to everything else: such packets get no answer.
func parseQuery(packet []byte) (question, bool) {
	if len(packet) < headerSize {
		return question{}, false
	}
	q := question{
		id:    binary.BigEndian.Uint16(packet),
		flags: binary.BigEndian.Uint16(packet[2:]),
	}
	if q.flags&flagResponse != 0 || binary.BigEndian.Uint16(packet[4:]) != 1 {
		return question{}, false
	}
	var labels []string
	at := headerSize
	for {
		if at >= len(packet) {
			return question{}, false
		}
		n := int(packet[at])
		at++
		if n == 0 {
			break
		}
		// 63 is the longest label; the two bits above it mark compression, which has nothing to point at in a question.
		if n > 63 || at+n > len(packet) {
			return question{}, false
		}
		labels = append(labels, string(packet[at:at+n]))
		at += n
	}
	if at+4 > len(packet) {
		return question{}, false
	}
	q.name = strings.ToLower(strings.Join(labels, "."))
	q.typ = Type(binary.BigEndian.Uint16(packet[at:]))
	q.raw = packet[headerSize : at+4]
	return q, true
}

// response builds the answer to one question, record by record.
type response struct {
	buf []byte
}

func newResponse(q question, rcode RCode) *response {
	flags := uint16(flagResponse | flagAuthoritative | flagRecursionAvailable)
	flags |= q.flags&flagRecursionDesired | uint16(rcode)
	b := binary.BigEndian.AppendUint16(make([]byte, 0, 512), q.id)
	b = binary.BigEndian.AppendUint16(b, flags)
	b = append(b, 0, 1, 0, 0, 0, 0, 0, 0) // one question, no records yet
	return &response{append(b, q.raw...)}
}

func (r *response) record(owner string, typ Type, ttl time.Duration, data []byte) {
	r.buf = appendName(r.buf, owner)
	r.buf = binary.BigEndian.AppendUint16(r.buf, uint16(typ))
	r.buf = binary.BigEndian.AppendUint16(r.buf, classIN)
	r.buf = binary.BigEndian.AppendUint32(r.buf, uint32(ttl/time.Second))
	r.buf = binary.BigEndian.AppendUint16(r.buf, uint16(len(data)))
	r.buf = append(r.buf, data...)
	binary.BigEndian.PutUint16(r.buf[6:], binary.BigEndian.Uint16(r.buf[6:])+1)
}

func (r *response) cname(owner, target string, ttl time.Duration) {
	r.record(owner, TypeCNAME, ttl, appendName(nil, target))
}

func (r *response) srv(owner string, s SRV, ttl time.Duration) {
	var data []byte
	for _, n := range []uint16{s.Priority, s.Weight, s.Port} {
		data = binary.BigEndian.AppendUint16(data, n)
	}
	r.record(owner, TypeSRV, ttl, appendName(data, s.Target))
}

func (r *response) address(owner string, addr netip.Addr, ttl time.Duration) {
	r.record(owner, typeOf(addr), ttl, addr.AsSlice())
}

// truncate takes all records off and sets TC.
func (r *response) truncate(q question) {
	r.buf = r.buf[:headerSize+len(q.raw)]
	binary.BigEndian.PutUint16(r.buf[2:], binary.BigEndian.Uint16(r.buf[2:])|flagTruncated)
	binary.BigEndian.PutUint16(r.buf[6:], 0)
}

func typeOf(addr netip.Addr) Type {
	if addr.Is4() {
		return TypeA
	}
	return TypeAAAA
}

// appendName writes a name without compression.
func appendName(b []byte, name string) []byte {
	for label := range strings.SplitSeq(strings.TrimSuffix(name, "."), ".") {
		if label != "" {
			b = append(b, byte(len(label)))
			b = append(b, label...)
		}
	}
	return append(b, 0)
}
