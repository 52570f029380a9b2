package syslog

import (
	"cmp"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wholelog/wholelog/internal/severity"
)

// The limits of RFC 5424, section 6, and that of a TAG (RFC 3164, section 4.1.3).
const (
	maxHostname = 255
	maxAppName  = 48
	maxProcID   = 128
	maxMsgID    = 32
	maxName     = 32 // SD-NAME
	maxTag      = 32

	maxSequence = 1<<31 - 1 // RFC 5424, section 7.3.1
	nilValue    = "-"
)

// header is the parts of messages that are the same in all of a handler.
type header struct {
	rfc3164 bool
	pri     [severity.Debug + 1]string // for each severity what stands before the time
	names   string                     // what stands behind the time, up to structured data or text
	origin  string                     // the element, or nothing
	element string                     // how that of the attributes begins: [SD-ID
	msg     string                     // what stands before the text: a space, without which some receivers throw the header away
	bare    string                     // origin and msg, of a message without other structured data
	run     string                     // the value of run; "": none
}

// newHeader makes what o says fit the formats: limits are kept, and what is not printable ASCII becomes an underscore. On a local socket
// RFC 3164 has no HOSTNAME unless somebody asks for one: receivers there (rsyslog's imuxsock, journald) take the first word for the TAG.
func newHeader(o Options, local bool) header {
	h := header{rfc3164: o.Format == RFC3164}
	for s := range h.pri {
		h.pri[s] = "<" + strconv.Itoa(o.Facility.code()*8+s) + ">"
		if !h.rfc3164 {
			h.pri[s] += "1 "
		}
	}
	var ip string
	if o.AppendIP || o.Origin {
		ip = localIP(net.InterfaceAddrs())
	}
	host := cmp.Or(clean(cmp.Or(o.Hostname, systemName(o.Format)), maxHostname), nilValue)
	if h.rfc3164 {
		host = cmp.Or(strings.TrimRight(strings.Map(hostChar, host), "._-"), "localhost")
	}
	if o.AppendIP && ip != "" {
		host = host[:min(len(host), maxHostname-len(",")-len(ip))] + "," + ip
	}
	app := cmp.Or(o.AppName, filepath.Base(cmp.Or(slices.Concat(os.Args, []string{nilValue})[0], nilValue)))
	proc := cmp.Or(clean(cmp.Or(o.ProcID, strconv.Itoa(os.Getpid())), maxProcID), nilValue)
	if h.rfc3164 {
		if !local || o.Hostname != "" || o.AppendIP {
			h.names = " " + host
		}
		h.names += " " + cmp.Or(strings.Map(tagChar, clean(app, maxTag)), nilValue)
		if proc != nilValue {
			h.names += "[" + strings.Map(tagChar, proc) + "]"
		}
		h.names += ": "
		return h
	}
	h.names = " " + host + " " + cmp.Or(clean(app, maxAppName), nilValue) + " " + proc + " " + cmp.Or(clean(o.MsgID, maxMsgID), nilValue) + " "
	if o.Origin && ip != "" {
		h.origin = `[origin ip="` + ip + `"]`
	}
	h.element = "[" + cmp.Or(o.SDID, defaultSDID)
	h.msg = " "
	if o.BOM {
		h.msg += "\uFEFF"
	}
	h.bare = cmp.Or(h.origin, nilValue) + h.msg
	return h
}

// longest is the most bytes of a message that are neither attributes nor text.
func (h *header) longest() int {
	n := len(h.pri[severity.Emergency]) + len("2006-01-02T15:04:05.000000+00:00") + len(h.names) + len(h.origin) + len(h.element) + len("] ") + len("\uFEFF")
	return n + len(`[meta sequenceId="2147483647"]`) + len(` seq=18446744073709551615 run="0123456789abcdef"`) + len(jsonStart) + len(jsonLevel) + maxLevel + len(`"}`)
}

// clean returns s in printable ASCII without spaces, which is what all fields of the header are made of, and at most limit bytes of it.
func clean(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		if r <= ' ' || r >= 0x7f {
			return '_'
		}
		return r
	}, s)
	return s[:min(len(s), limit)]
}

// hostChar is for the HOSTNAME of RFC 3164, which nothing sets apart from a TAG but what it is made of. For rsyslog that is letters, digits,
// "." "_" and "-", the last one a letter or digit: any other word it takes for the TAG, and the TAG for text.
func hostChar(r rune) rune {
	switch {
	case r >= '0' && r <= '9', r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r == '.', r == '-':
		return r
	}
	return '_'
}

// tagChar keeps receivers from finding the end of a TAG, or of the PROCID behind it, too early.
func tagChar(r rune) rune {
	if r == ':' || r == '[' || r == ']' {
		return '_'
	}
	return r
}

// systemName is the name of this host. RFC 3164, section 4.1.2, does not want the domain.
func systemName(f Format) string {
	name, err := os.Hostname()
	if err != nil {
		return nilValue // a machine that does not know its name still logs
	}
	if f == RFC3164 {
		name, _, _ = strings.Cut(name, ".")
	}
	return name
}

// localIP is the first of a host's addresses that others may know it by, IPv4 first; "" when there is none.
func localIP(addrs []net.Addr, err error) string {
	if err != nil {
		return ""
	}
	var v6 string
	for _, a := range addrs {
		p, err := netip.ParsePrefix(a.String())
		if err != nil || !p.Addr().IsGlobalUnicast() {
			continue
		}
		if ip := p.Addr().Unmap().WithZone(""); ip.Is4() {
			return ip.String()
		} else if v6 == "" {
			v6 = ip.String()
		}
	}
	return v6
}

// clock writes the times of messages, and what stands behind them. Most records share the second with the one before: what was made
// for that is kept, and gets the fraction of its own.
type clock struct {
	rfc3164  bool
	behind   string // what stands behind the time
	second   int64
	place    *time.Location // nil: there is nothing kept yet
	text     []byte
	fraction int // its place in text
}

// append appends t: in RFC 5424 with six fraction digits, the most that are allowed, in t's own zone, and in RFC 3164 in seconds of
// local time. mended says that t cannot be written, and that another instant stands there.
func (c *clock) append(dst []byte, t time.Time) (out []byte, mended bool) {
	if s := t.Unix(); s != c.second || t.Location() != c.place {
		if year := t.Year(); year < 1 || year > 9998 { // a zone must not lead out of the four digits either
			t, mended = time.Now(), true
		}
		c.renew(t)
	}
	at := len(dst) + c.fraction
	dst = append(dst, c.text...)
	if !c.rfc3164 {
		us := uint32(t.Nanosecond()) / 1000
		ms := us / 1000
		us -= 1000 * ms
		d := dst[at : at+len("000000")]
		d[0], d[1], d[2] = byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10)
		d[3], d[4], d[5] = byte('0'+us/100), byte('0'+us/10%10), byte('0'+us%10)
	}
	return dst, mended
}

// renew makes the text for the second of t.
func (c *clock) renew(t time.Time) {
	c.second, c.place = t.Unix(), t.Location()
	if c.rfc3164 {
		c.text = append(t.Local().AppendFormat(c.text[:0], time.Stamp), c.behind...)
		return
	}
	if _, offset := t.Zone(); offset%60 != 0 || offset < -24*3600+1 || offset > 24*3600-1 {
		t = t.UTC() // the offsets of the time before zones had seconds, which the format has not
	}
	c.text = t.AppendFormat(c.text[:0], "2006-01-02T15:04:05.")
	c.fraction = len(c.text)
	c.text = append(t.AppendFormat(append(c.text, "000000"...), "Z07:00"), c.behind...)
}
