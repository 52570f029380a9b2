package gelf

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/handlertest"
	"github.com/wholelog/wholelog/resolve"
)

func TestDefaults(t *testing.T) {
	c, err := newConfig(target{scheme: "udp", host: "h", port: "1"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := udpConfig{
		chunkSize: 1232, compression: CompressAuto, flows: 16, flowAge: time.Minute, packetRate: 10_000, oversize: OversizeTruncate,
		sendTimeout: 10 * time.Second,
	}
	if c.udp != want {
		t.Errorf("%+v, want %+v", c.udp, want)
	}
	if name, err := os.Hostname(); err == nil && c.host != name {
		t.Errorf("host %q, want %q", c.host, name)
	}
}

func TestOptionsAtTheirLimits(t *testing.T) {
	for _, o := range []Options{
		{ChunkSize: 64},
		{ChunkSize: 65507},
		{PacketRate: 64},
		{PacketRate: -1},
		{Flows: 1},
		{Flows: 1024},
		{FlowAge: 1},
		{Compression: CompressZlib},
		{Oversize: OversizeDrop},
		{Host: strings.Repeat("h", 255)},
		{Host: "münchen 1"},
		{Header: http.Header{}},
	} {
		h, err := NewHandler("udp://h:1", &o)
		if err != nil {
			t.Errorf("%v: %v", o, err)
			continue
		}
		h.Close()
	}
}

func TestWrongOptions(t *testing.T) {
	secret := http.Header{"Authorization": {"s3cret"}}
	for want, o := range map[string]Options{
		"gelf: option ChunkSize: -1 is outside 64…65507":                        {ChunkSize: -1},
		"gelf: option ChunkSize: 63 is outside 64…65507":                        {ChunkSize: 63},
		"gelf: option ChunkSize: 65508 is outside 64…65507":                     {ChunkSize: 65508},
		"gelf: option Compression: 4 is not known":                              {Compression: 4},
		"gelf: option Flows: -1 is negative":                                    {Flows: -1},
		"gelf: option Flows: 1025 is more than 1024":                            {Flows: 1025},
		fmt.Sprintf("gelf: option Flows: %d is more than 1024", math.MaxInt):    {Flows: math.MaxInt},
		"gelf: option FlowAge: -1s is negative":                                 {FlowAge: -time.Second},
		"gelf: option PacketRate: 1 is below 64":                                {PacketRate: 1},
		"gelf: option PacketRate: 63 is below 64":                               {PacketRate: 63},
		"gelf: option Oversize: 2 is not known":                                 {Oversize: 2},
		"gelf: option Fallback: tcp has no user-info":                           {Fallback: "tcp://u:s3cret@h:1"},
		"gelf: option Fallback: no scheme":                                      {Fallback: "s3cret"},
		"gelf: option Fallback: no port":                                        {Fallback: "http://u:s3cret@h/gelf"},
		"gelf: option Fallback: udp is the way it stands in for":                {Fallback: "udp://h:2"},
		"gelf: option Fallback: resolve: \"a..b:2\"":                            {Fallback: "http://a..b:2"},
		"gelf: option Bulk: does not apply to udp":                              {Bulk: true},
		"gelf: option Bulk: does not apply to udp with a fallback by tcp":       {Bulk: true, Fallback: "tcp://h:2"},
		"gelf: option Header: does not apply to udp":                            {Header: secret},
		"gelf: option Header: Authorization stands beside user-info":            {Header: secret, Fallback: "http://u:s3cret@h:2"},
		"gelf: option ConnsPerAddr: does not apply to udp":                      {ConnsPerAddr: 1},
		"gelf: option ConnsPerAddr: -1 is negative":                             {ConnsPerAddr: -1},
		"gelf: option ConnsPerAddr: 257 is more than 256":                       {ConnsPerAddr: 257},
		"gelf: option ConnAge: does not apply to udp":                           {ConnAge: -1},
		"gelf: option TLSConfig: does not apply to udp":                         {TLSConfig: &tls.Config{}},
		"gelf: option TLSConfig: does not apply to udp with a fallback by http": {TLSConfig: &tls.Config{}, Fallback: "http://h:2"},
		"gelf: option Host: is blank":                                           {Host: " \t"},
		"gelf: option Host: is longer than 255 bytes":                           {Host: strings.Repeat("h", 256)},
		"gelf: option Host: is not valid UTF-8":                                 {Host: "h\xff"},
		"gelf: option Host: holds a control character":                          {Host: "h\nx"},
		"gelf: option Delivery.QueueBytes: 1 is less":                           {Delivery: delivery.Options{QueueBytes: 1}},
		"gelf: option Resolve.Refresh: -1ns is neither":                         {Resolve: resolve.Options{Refresh: -1}},
		"gelf: option Resolve.Zone: a part of the host name is empty":           {Resolve: resolve.Options{Zone: "."}},
		"gelf: option Resolve.Resolver: resolve: SRV: \"x y\"":                  {Resolve: resolve.Options{Resolver: resolve.SRV("x y", nil)}},
	} {
		h, err := NewHandler("udp://h:1", &o)
		if h != nil || err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(fmt.Sprint(err), "s3cret") {
			t.Errorf("%v, %v; want %q", h, err, want)
		}
	}
}

// Each option belongs to some schemes, and is an error with the others: silence would let a user believe that it holds.
func TestOptionsBelongToSchemes(t *testing.T) {
	for name, x := range map[string]struct {
		o       Options
		schemes string
	}{
		"ChunkSize":    {Options{ChunkSize: 1400}, "udp"},
		"Flows":        {Options{Flows: 2}, "udp"},
		"FlowAge":      {Options{FlowAge: time.Minute}, "udp"},
		"PacketRate":   {Options{PacketRate: 500}, "udp"},
		"Compression":  {Options{Compression: CompressGzip}, "udp"},
		"Fallback":     {Options{Fallback: "http://h:2"}, "udp"},
		"Bulk":         {Options{Bulk: true}, "http https"},
		"Header":       {Options{Header: http.Header{"X-Token": {"s3cret"}}}, "http https"},
		"ConnsPerAddr": {Options{ConnsPerAddr: 2}, "tcp tls http https"},
		"ConnAge":      {Options{ConnAge: -1}, "tcp tls http https"},
		"TLSConfig":    {Options{TLSConfig: &tls.Config{}}, "tls https"},
		"none":         {Options{Compression: CompressNone}, "udp tcp tls http https"},
	} {
		for _, scheme := range schemes() {
			_, err := newConfig(target{scheme: scheme, host: "h", port: "1"}, x.o)
			if applies := slices.Contains(strings.Fields(x.schemes), scheme); applies != (err == nil) {
				t.Errorf("%s with %s: %v", name, scheme, err)
			} else if err != nil && !(strings.HasPrefix(err.Error(), "option "+name+": ") && strings.HasSuffix(err.Error(), "does not apply to "+scheme)) || strings.Contains(fmt.Sprint(err), "s3cret") {
				t.Errorf("%s with %s: %v", name, scheme, err)
			}
		}
	}
}

func TestDefaultsOfConnections(t *testing.T) {
	for _, x := range []struct {
		scheme    string
		o         Options
		want      connConfig
		encrypted bool
		engine    time.Duration
	}{
		{"tcp", Options{}, connConfig{perAddr: 1, age: 5 * time.Minute, sendTimeout: 10 * time.Second, dialTimeout: 5 * time.Second}, false, 10 * time.Second},
		{"tls", Options{}, connConfig{perAddr: 1, age: 5 * time.Minute, sendTimeout: 10 * time.Second, dialTimeout: 5 * time.Second}, true, 10 * time.Second},
		{"http", Options{}, connConfig{perAddr: 8, age: 5 * time.Minute, sendTimeout: 30 * time.Second, dialTimeout: 5 * time.Second}, false, 30 * time.Second},
		{"https", Options{}, connConfig{perAddr: 8, age: 5 * time.Minute, sendTimeout: 30 * time.Second, dialTimeout: 5 * time.Second}, true, 30 * time.Second},
		{
			"https",
			Options{ConnsPerAddr: 3, ConnAge: -1, Oversize: OversizeDrop, Delivery: delivery.Options{SendTimeout: time.Second, DialTimeout: time.Minute}},
			connConfig{perAddr: 3, sendTimeout: time.Second, dialTimeout: time.Minute, oversize: OversizeDrop},
			true, time.Second,
		},
	} {
		to := target{scheme: x.scheme, host: "graylog.test.", port: "1"}
		c, err := newConfig(to, x.o)
		if err != nil {
			t.Fatal(err)
		}
		got := c.connTo(to)
		if encrypted := got.tls != nil; encrypted != x.encrypted || encrypted && got.tls.ServerName != "graylog.test" {
			t.Errorf("%s: TLS %v", x.scheme, got.tls)
		}
		got.tls = nil
		if got != x.want {
			t.Errorf("%s: %+v, want %+v", x.scheme, got, x.want)
		}
		if d := c.sendTimeout(); d != x.engine {
			t.Errorf("%s: the engine gives a link %v", x.scheme, d)
		}
	}
	c, err := newConfig(target{scheme: "udp", host: "h", port: "1"}, Options{Fallback: "http://h:2"})
	if d := c.sendTimeout(); err != nil || d != 30*time.Second {
		t.Errorf("udp with a fallback by http: %v, %v", d, err)
	}
}

// The fallback is found as the target is, but by its own name, in no zone if it has none, and judged by what it answers.
func TestResolveOptionsOfTheFallback(t *testing.T) {
	o := resolve.Options{
		Resolver: resolve.DNS("h:1", nil), Policy: resolve.PerProcess, Refresh: time.Minute, Zone: "a",
		Check: resolve.TCPCheck(9), CheckEvery: time.Second,
	}
	for host, zone := range map[string]string{"h": "a", "192.0.2.1": ""} {
		c := config{fallback: target{scheme: "tcp", host: host, port: "2"}}
		got, err := c.resolveFallback(o)
		if err != nil || got.Policy != o.Policy || got.Refresh != o.Refresh || got.Zone != zone || got.Check != nil || got.CheckEvery != 0 || got.Resolver == o.Resolver {
			t.Errorf("%s: %v, %v", host, got, err)
		}
		if err := got.Validate(); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
}

func TestR82_PrintingMasksSecrets(t *testing.T) {
	o := Options{
		Host: "h", ChunkSize: 1420, Compression: CompressGzip, Fallback: "https://user:s3cret@h:1/gelf",
		Header: http.Header{"Authorization": {"s3cret"}}, Level: slog.LevelWarn,
	}
	handlertest.Printed(t, o, "s3cret", "1420", "gzip", "https://***@h:1/gelf")
	handlertest.Printed(t, &o, "s3cret", "1420", "gzip", "https://***@h:1/gelf")
	handlertest.Printed(t, testHandler(t, Options{Host: "h"}), "s3cret", "udp://127.0.0.1:12201")
	var none *Handler
	if got := none.String(); got != "gelf.Handler{}" {
		t.Errorf("nil handler: %s", got)
	}
}

func TestEnumsPrint(t *testing.T) {
	for want, v := range map[string]fmt.Stringer{
		"auto": CompressAuto, "none": CompressNone, "gzip": CompressGzip, "zlib": CompressZlib, "Compression(9)": Compression(9),
		"truncate": OversizeTruncate, "drop": OversizeDrop, "Oversize(9)": Oversize(9),
	} {
		if v.String() != want {
			t.Errorf("%s, want %s", v, want)
		}
	}
}

func TestOptionsAreCopied(t *testing.T) {
	o := Options{Host: "first"}
	h, err := NewHandler("udp://127.0.0.1:1", &o)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	o.Host, o.ReplaceAttr = "second", func([]string, slog.Attr) slog.Attr { return slog.Attr{} }
	if got, _ := encode(h, info("m")); got != `{"version":"1.1","host":"first","level":6,"short_message":"m"}` {
		t.Error(got)
	}
}
