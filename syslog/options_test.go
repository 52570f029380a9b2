package syslog

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/fake/syslogd"
	"github.com/wholelog/wholelog/internal/handlertest"
	"github.com/wholelog/wholelog/resolve"
)

func TestDefaults(t *testing.T) {
	for scheme, x := range map[string]struct {
		maxSize int
		framing Framing
	}{"udp": {1432, OctetCounting}, "tcp": {8192, OctetCounting}, "tls": {8192, OctetCounting}, "unix": {8192, Newline}} {
		c, err := newConfig(target{scheme: scheme, host: "h.", port: "1"}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if c.maxSize != x.maxSize || c.framing != x.framing || c.connAge != 10*time.Minute || c.perAddr != 1 || c.sendTimeout != 10*time.Second {
			t.Errorf("%s: %+v", scheme, c)
		}
		if encrypted := c.tls != nil; encrypted != (scheme == "tls") || encrypted && c.tls.ServerName != "h" {
			t.Errorf("%s: %v", scheme, c.tls)
		}
	}
	h, err := NewHandler("udp://127.0.0.1:514", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	got, _ := encode(h, info("m"))
	m := parsed(t, got)
	name, _ := os.Hostname()
	if m.Facility != 16 || m.Hostname != clean(name, 255) || m.AppName != clean(filepath.Base(os.Args[0]), 48) || m.ProcID != fmt.Sprint(os.Getpid()) || m.MsgID != "" {
		t.Errorf("%+v", m)
	}
}

func TestWrongOptions(t *testing.T) {
	for want, o := range map[string]Options{
		"option Format: 2 is not known":                                  {Format: 2},
		"option Framing: 3 is not known":                                 {Framing: 3},
		"option Facility: -17 is not known":                              {Facility: -17},
		"option Facility: 8 is not known":                                {Facility: 8},
		"option Attrs: 3 is not known":                                   {Attrs: 3},
		"option MaxSize: -1 is outside 480…8388607":                      {MaxSize: -1},
		"option MaxSize: 479 is outside 480…8388607":                     {MaxSize: 479},
		"option MaxSize: 8388608 is outside 480…8388607":                 {MaxSize: 8 << 20},
		"option MaxSize: 500 leaves no room behind this header; want at": {MaxSize: 500, Hostname: strings.Repeat("h", 255)},
		"option SDID: is not name@number of at most 32 characters":       {SDID: "attrs"},
		"option SDID: is not name@number of at most 32 characters ":      {SDID: "a b@1"},
		"option SDID: is not name@number of at most 32 characters  ":     {SDID: strings.Repeat("a", 31) + "@1"},
		"option SDID: is not name@number of at most 32 characters   ":    {SDID: "a]@1"},
		"option Replay: 1024: not available in this version":             {Replay: 1024},
		"option SendBuffer: 4095 is below 4096":                          {SendBuffer: 4095},
		"option SendBuffer: 1073741825 is more than 1073741824":          {SendBuffer: 1<<30 + 1},
		"option Flows: -1 is negative":                                   {Flows: -1},
		"option Flows: 1025 is more than 1024":                           {Flows: 1025},
		"option FlowAge: -1ns is negative":                               {FlowAge: -1},
		"option ConnsPerAddr: -1 is negative":                            {ConnsPerAddr: -1},
		"option ConnsPerAddr: 257 is more than 256":                      {ConnsPerAddr: 257},
		"option MsgID: does not apply to RFC 3164":                       {MsgID: "x", Format: RFC3164},
		"option SDID: does not apply to RFC 3164":                        {SDID: "x@1", Format: RFC3164},
		"option Origin: does not apply to RFC 3164":                      {Origin: true, Format: RFC3164},
		"option BOM: does not apply to RFC 3164":                         {BOM: true, Format: RFC3164},
		"option TLSConfig: does not apply to tcp":                        {TLSConfig: &tls.Config{}},
		"option Delivery.QueueBytes: 1 is less":                          {Delivery: delivery.Options{QueueBytes: 1}},
		"option Resolve.Refresh: -1ns is neither":                        {Resolve: resolve.Options{Refresh: -1}},
	} {
		_, err := newConfig(target{scheme: "tcp", host: "h", port: "1"}, o)
		if err == nil || !strings.HasPrefix(err.Error(), strings.TrimRight(want, " ")) {
			t.Errorf("%v; want %q", err, want)
		}
	}
}

type noCheck struct{}

func (noCheck) Check(context.Context, netip.AddrPort) (resolve.Report, error) {
	return resolve.Report{}, nil
}

// Each option belongs to some schemes, and is an error with the others: silence would let a user believe that it holds.
func TestOptionsBelongToSchemes(t *testing.T) {
	for name, x := range map[string]struct {
		o       Options
		schemes string
	}{
		"Framing":          {Options{Framing: Newline}, "tcp tls unix"},
		"SendBuffer":       {Options{SendBuffer: 4096}, "tcp tls"},
		"Flows":            {Options{Flows: 1024}, "udp"},
		"FlowAge":          {Options{FlowAge: 1}, "udp"},
		"ConnsPerAddr":     {Options{ConnsPerAddr: 2}, "tcp tls"},
		"ConnAge":          {Options{ConnAge: -1}, "tcp tls"},
		"TLSConfig":        {Options{TLSConfig: &tls.Config{}}, "tls"},
		"Resolve.Resolver": {Options{Resolve: resolve.Options{Resolver: resolve.Static("h:1")}}, "udp tcp tls"},
		"Resolve.Check":    {Options{Resolve: resolve.Options{Check: noCheck{}}}, "udp tcp tls"},
		"MaxSize":          {Options{MaxSize: 65507}, "udp tcp tls unix"},
		"everything else": {Options{
			AppName: "a", Hostname: "h", ProcID: "1", MsgID: "m", SDID: "a.b@32473.1", Facility: Kern, Attrs: AttrsText, AppendIP: true, Origin: true, Sequence: true, BOM: true,
		}, "udp tcp tls unix"},
	} {
		for _, scheme := range []string{"udp", "tcp", "tls", "unix"} {
			_, err := newConfig(target{scheme: scheme, host: "h", port: "1"}, x.o)
			if applies := slices.Contains(strings.Fields(x.schemes), scheme); applies != (err == nil) {
				t.Errorf("%s with %s: %v", name, scheme, err)
			} else if err != nil && !strings.HasPrefix(err.Error(), "option "+name+": does not apply to "+scheme) {
				t.Errorf("%s with %s: %v", name, scheme, err)
			}
		}
	}
}

// Whatever names a user gives, the header keeps the limits of RFC 5424.
func TestR29_NamesAreMadeToFit(t *testing.T) {
	long := strings.Repeat("x", 300)
	for _, name := range []string{long, "a b", "größe\n", "\xff", "[x]:", "-"} {
		for _, f := range []Format{RFC5424, RFC3164} {
			o := Options{Format: f, AppName: name, Hostname: name, ProcID: name, AppendIP: true, MaxSize: 1000}
			if f == RFC5424 {
				o.MsgID = name
			}
			got, _ := encode(testHandler(t, o), info("m"))
			if m := parsed(t, got); m.Text != "m" {
				t.Errorf("%s", got)
			}
		}
	}
}

// Of RFC 3164's HOSTNAME rsyslog takes these characters, and no other than a letter or digit at the end: else the word is its TAG, and
// the TAG a part of the text.
func TestHostnamesOfRFC3164(t *testing.T) {
	for name, want := range map[string]string{
		"web-1.example.test": "web-1.example.test", "web_1": "web_1", "192.0.2.1": "192.0.2.1",
		"2001:db8::1": "2001_db8__1", "a/b,c": "a_b_c", "größe": "gr__e",
		"h.": "h", "h-_:": "h", "-": "localhost", "ö": "localhost", strings.Repeat("h", 300): strings.Repeat("h", 255),
	} {
		got, _ := encode(testHandler(t, Options{Format: RFC3164, Hostname: name}), info("m"))
		if m := parsed(t, got); m.Hostname != want || m.AppName != "app" || m.Text != "m" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestLocalIP(t *testing.T) {
	ipnet := func(s string) net.Addr {
		ip, n, err := net.ParseCIDR(s)
		if err != nil {
			t.Fatal(err)
		}
		n.IP = ip
		return n
	}
	for want, addrs := range map[string][]net.Addr{
		"192.0.2.7":   {ipnet("127.0.0.1/8"), ipnet("::1/128"), ipnet("fe80::1/64"), ipnet("2001:db8::1/64"), ipnet("192.0.2.7/24"), ipnet("192.0.2.8/24")},
		"2001:db8::1": {ipnet("127.0.0.1/8"), ipnet("169.254.1.1/16"), ipnet("2001:db8::1/64"), ipnet("2001:db8::2/64")},
		"":            {ipnet("127.0.0.1/8"), &net.UnixAddr{Name: "x"}},
	} {
		if got := localIP(addrs, nil); got != want {
			t.Errorf("%v: %q, want %q", addrs, got, want)
		}
	}
	if got := localIP(nil, errors.New("none")); got != "" {
		t.Error(got)
	}
	h := newHeader(Options{Hostname: strings.Repeat("h", 255), AppendIP: true, Origin: true}, false)
	if ip := localIP(net.InterfaceAddrs()); ip != "" && (!strings.Contains(h.names, "h,"+ip+" ") || h.origin != `[origin ip="`+ip+`"]`) {
		t.Errorf("%+v", h)
	}
}

func TestR82_Printing(t *testing.T) {
	o := Options{Hostname: "h", MaxSize: 1420, Facility: Audit, Format: RFC3164, Level: slog.LevelWarn, TLSConfig: &tls.Config{ServerName: "s3cret"}}
	handlertest.Printed(t, o, "s3cret", "1420", "audit", "rfc3164")
	handlertest.Printed(t, &o, "s3cret", "1420", "audit", "rfc3164")
	handlertest.Printed(t, testHandler(t, Options{}), "s3cret", "tcp://127.0.0.1:514")
	var none *Handler
	if got := none.String(); got != "syslog.Handler{}" {
		t.Errorf("nil handler: %s", got)
	}
}

func TestEnumsPrint(t *testing.T) {
	for want, v := range map[string]fmt.Stringer{
		"rfc5424": RFC5424, "rfc3164": RFC3164, "Format(9)": Format(9),
		"auto": FramingAuto, "octet-counting": OctetCounting, "newline": Newline, "Framing(9)": Framing(9),
		"structured": AttrsStructured, "json": AttrsJSON, "text": AttrsText, "Attrs(9)": Attrs(9),
		"kern": Kern, "clock": Clock, "local0": Local0, "local7": Local7, "Facility(8)": Facility(8), "Facility(-17)": Facility(-17),
	} {
		if v.String() != want {
			t.Errorf("%s, want %s", v, want)
		}
	}
	var zero Facility
	if zero != Local0 || Kern.code() != 0 || AuthPriv.code() != 10 || Clock.code() != 15 || Local7.code() != 23 {
		t.Error("codes are not the RFC's")
	}
}

func TestOptionsAreCopied(t *testing.T) {
	o := named(Options{})
	h, err := NewHandler("udp://127.0.0.1:1", &o)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	o.Hostname, o.ReplaceAttr = "second", func([]string, slog.Attr) slog.Attr { return slog.Attr{} }
	if got, _ := encode(h, info("m")); got != head+"- m" {
		t.Error(got)
	}
}

// What options say of connections reaches what opens them, and of the user's TLSConfig a copy, for the target's host.
func TestOptionsReachTheTransport(t *testing.T) {
	own := &tls.Config{MinVersion: tls.VersionTLS13}
	c, err := newConfig(target{scheme: "tls", host: "h.test", port: "1"}, Options{
		SendBuffer: 8192, ConnsPerAddr: 3, ConnAge: time.Minute, TLSConfig: own, Delivery: delivery.Options{SendTimeout: time.Second},
	})
	if err != nil {
		t.Fatal(err)
	}
	l := c.newStream("").Limits()
	if l.Window != 2*8192+l.BatchBytes || l.LinksPerAddr != 3 || l.MaxAge != time.Minute || c.sendTimeout != time.Second {
		t.Errorf("%+v, %+v", l, c)
	}
	if own.ServerName != "" || c.tls.ServerName != "h.test" || c.tls.MinVersion != tls.VersionTLS13 {
		t.Errorf("ours %q, the user's %q", c.tls.ServerName, own.ServerName)
	}
	own.ServerName = "other.test"
	if c, err = newConfig(c.target, Options{TLSConfig: own, ConnAge: -1}); err != nil || c.tls.ServerName != "other.test" || c.newStream("").Limits().MaxAge != 0 {
		t.Errorf("%v, %+v", err, c)
	}
}

// The strict parser is a fake of ours; a message of every option at once keeps it honest about order.
func TestEveryOptionAtOnce(t *testing.T) {
	h := testHandler(t, Options{Sequence: true, Origin: true, AppendIP: true, BOM: true, MsgID: "id", Facility: Audit, SDID: "app@32473.7"})
	got, _ := encodeContext(t.Context(), h, info("text", slog.Int("a", 1)), 3)
	m := parsed(t, got)
	seq, _ := m.Param("meta", "sequenceId")
	a, _ := m.Param("app@32473.7", "a")
	if seq != "3" || a != "1" || !m.BOM || m.Facility != 13 || m.MsgID != "id" || m.Text != "text" || m.Elements[0].ID != "meta" {
		t.Errorf("%+v", m)
	}
	var want []syslogd.Param
	if run := h.core.config.header.run; len(run) == 16 {
		want = []syslogd.Param{{Name: "run", Value: run}, {Name: "a", Value: "1"}}
	}
	if last := m.Elements[len(m.Elements)-1]; !slices.Equal(last.Params, want) {
		t.Errorf("%+v", last)
	}
}
