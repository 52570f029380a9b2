package hostport

import (
	"crypto/tls"
	"fmt"
	"strings"
	"testing"
)

func TestCutScheme(t *testing.T) {
	known := []string{"udp", "relp+tls"}
	for _, x := range []struct{ in, scheme, rest, err string }{
		{in: "udp://h:1", scheme: "udp", rest: "h:1"},
		{in: "RELP+TLS://[::1]:1/x", scheme: "relp+tls", rest: "[::1]:1/x"},
		{in: "udp://", scheme: "udp"},
		{in: " udp://h:1", err: "white space around it"},
		{in: "udp:h:1", err: "no //host after udp:; want udp://host:port"},
		{in: "s3cret", err: "no scheme; want udp://host:port, or another of udp, relp+tls"},
		{in: "udp", err: "no scheme; want udp://host:port, or another of udp, relp+tls"},
		{in: "s3cret://h:1", err: "scheme is unknown; want one of udp, relp+tls"},
	} {
		scheme, rest, err := CutScheme(x.in, known)
		if scheme != x.scheme || rest != x.rest || text(err) != x.err {
			t.Errorf("%q: %q, %q, %q", x.in, scheme, rest, text(err))
		}
	}
}

func TestSplit(t *testing.T) {
	for _, x := range []struct{ in, host, port, err string }{
		{in: "h:1", host: "h", port: "1"},
		{in: "logs.example.test:65535", host: "logs.example.test", port: "65535"},
		{in: "[::1]:514", host: "::1", port: "514"},
		{in: "[fe80::1%eth0]:514", host: "fe80::1%eth0", port: "514"},
		{in: "[fe80::1%25eth0]:514", host: "fe80::1%eth0", port: "514"},
		{in: "[fe80::1%25]:514", err: "host is not an IPv6 address, though it stands in brackets"},
		{in: "h%25:1", err: "host holds a character that no host name has"},
		{in: "", err: "no host"},
		{in: ":514", err: "no host"},
		{in: "[]:514", err: "no host"},
		{in: "h", err: "no port; it is always required"},
		{in: "h:", err: "no port; it is always required"},
		{in: "[::1]", err: "no port; it is always required"},
		{in: "[::1", err: "host lacks the closing ]"},
		{in: "::1:514", err: "host is not valid; an IPv6 address stands in brackets"},
		{in: "[10.0.0.1]:514", err: "host is not an IPv6 address, though it stands in brackets"},
		{in: "s3 cret:1", err: "host holds a character that no host name has"},
		{in: "h:s3cret", err: "port is not a number"},
		{in: "h:-1", err: "port is not a number"},
		{in: "h:0", err: "port is outside 1…65535"},
		{in: "h:65536", err: "port is outside 1…65535"},
		{in: "a:1,b:1", err: "one host only; option Resolve.Resolver takes several, by resolve.Static"},
	} {
		host, port, err := Split(x.in)
		if text(err) != x.err || err == nil && (host != x.host || port != x.port) {
			t.Errorf("%q: %q, %q, %q", x.in, host, port, text(err))
		}
	}
}

func TestResolver(t *testing.T) {
	if r, err := Resolver("h:1"); err != nil || fmt.Sprint(r) == "" {
		t.Errorf("%v, %v", r, err)
	}
	if r, err := Resolver("a..b:1"); err == nil || r != nil || strings.Contains(err.Error(), "Resolver:") {
		t.Errorf("%v, %v", r, err)
	}
}

// The name that is verified is the user's where there is one; the configuration that was given stays as it is.
func TestTLS(t *testing.T) {
	for in, want := range map[string]string{"h": "h", "h.": "h", "192.0.2.1": "192.0.2.1", "fe80::1%eth0": "fe80::1"} {
		for _, c := range []*tls.Config{nil, {MinVersion: tls.VersionTLS13}} {
			got := TLS(c, in)
			if got.ServerName != want || got == c || c != nil && (c.ServerName != "" || got.MinVersion != c.MinVersion) {
				t.Errorf("%s: %q, want %q", in, got.ServerName, want)
			}
		}
		if got := TLS(&tls.Config{ServerName: "other.test"}, in); got.ServerName != "other.test" {
			t.Errorf("%s: %q in place of the user's", in, got.ServerName)
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
