package resolve

import (
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"
)

func TestR44_ParseTarget(t *testing.T) {
	for in, want := range map[string]target{
		"[::1]:12201":               {host: "::1", addr: netip.MustParseAddr("::1"), port: 12201},
		"[2001:DB8::1]:514":         {host: "2001:DB8::1", addr: netip.MustParseAddr("2001:db8::1"), port: 514},
		"[fe80::1%eth0]:514":        {host: "fe80::1%eth0", addr: netip.MustParseAddr("fe80::1%eth0"), port: 514},
		"[::ffff:192.0.2.1]:514":    {host: "::ffff:192.0.2.1", addr: netip.MustParseAddr("192.0.2.1"), port: 514},
		"192.0.2.1:1":               {host: "192.0.2.1", addr: netip.MustParseAddr("192.0.2.1"), port: 1},
		"logs.example.com:65535":    {host: "logs.example.com", port: 65535},
		"logs.example.com.:12201":   {host: "logs.example.com.", port: 12201},
		"localhost:0514":            {host: "localhost", port: 514},
		"Log_Receiver-1.corp:12201": {host: "Log_Receiver-1.corp", port: 12201},
		"7f3a:514":                  {host: "7f3a", port: 514},
		"4711:514":                  {host: "4711", port: 514},
		"eu.4711.example:514":       {host: "eu.4711.example", port: 514},
	} {
		if got, err := parseTarget(in); err != nil || got != want {
			t.Errorf("%q: %+v, %v, want %+v", in, got, err, want)
		}
	}
}

func TestR44_ParseTargetErrors(t *testing.T) {
	const (
		noPort   = "the port is missing: write host:port"
		badPort  = "the port must be a number from 1 to 65535"
		noHost   = "the host is missing"
		brackets = "brackets belong around an IPv6 address, as in [::1]:12201, and only there"
		bytes    = "the host name may hold letters, digits, hyphens, underscores and dots only"
		label    = "a part of the host name is empty or longer than 63 bytes"
		neither  = "the host is neither a name nor an IP address"
	)
	for in, want := range map[string]string{
		"":                                       noPort,
		"logs.test":                              noPort,
		"logs.test:":                             noPort,
		"[::1]":                                  noPort,
		"[::1]:":                                 noPort,
		"logs.test:gelf":                         badPort,
		"logs.test:0":                            badPort,
		"logs.test:65536":                        badPort,
		"logs.test:-1":                           badPort,
		"logs.test:+1":                           badPort,
		"logs.test: 1":                           badPort,
		"logs.test:1_0":                          badPort,
		"logs.test:99999999999999999999":         badPort,
		":514":                                   noHost,
		".:514":                                  noHost,
		"::1:12201":                              brackets,
		"2001:db8::1:12201":                      brackets,
		"[192.0.2.1]:514":                        brackets,
		"1:2:3:514":                              "an IPv6 address needs brackets, as in [::1]:12201",
		"[::1:514":                               "] is missing",
		"[]:514":                                 "there is no IPv6 address between the brackets",
		"[logs.test]:514":                        "there is no IPv6 address between the brackets",
		"[::1%]:514":                             "there is no IPv6 address between the brackets",
		"192.0.2.1%eth0:514":                     bytes,
		"192.0.2.256:514":                        neither,
		"10.1:514":                               neither,
		"logs test:514":                          bytes,
		"udp//logs.test:514":                     bytes,
		"lögs.test:514":                          bytes,
		"logs..test:514":                         label,
		strings.Repeat("a", 64) + ".test:514":    label,
		strings.Repeat("a.", 127) + "test:514":   "the host name is longer than 253 bytes",
		strings.Repeat("longer", 5000) + ".test": noPort,
	} {
		_, err := parseTarget(in)
		if err == nil {
			t.Errorf("%q: no error", in)
			continue
		}
		shown := in
		if len(shown) > 100 {
			shown = shown[:100]
		}
		if want := "resolve: " + strconv.Quote(shown) + ": " + want; err.Error() != want {
			t.Errorf("%q:\n got %s\nwant %s", in, err, want)
		}
	}
}

func TestParseTargetKeepsSecrets(t *testing.T) {
	for _, in := range []string{"user:hunter2@logs.test:514", "hunter2@logs.test", "//hunter2@:1"} {
		_, err := parseTarget(in)
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v", err)
		}
	}
}

func FuzzParseTarget(f *testing.F) {
	for _, s := range []string{"[::1]:12201", "logs.test.:514", "192.0.2.1:1", "[fe80::1%eth0]:65535", ":1", "[]:1", "a:b:1", "[::%]]:1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := parseTarget(s)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "resolve: ") || len(err.Error()) > 1000 {
				t.Errorf("%q: %v", s, err)
			}
			return
		}
		// What is accepted here is what package net reads in it, too.
		host, port, err := net.SplitHostPort(s)
		if err != nil || host != got.host || port == "" || got.port == 0 {
			t.Errorf("%q: %+v, but net says %q, %q, %v", s, got, host, port, err)
		}
		if got.addr.Is4In6() {
			t.Errorf("%q: %v is not unmapped", s, got.addr)
		}
	})
}
