package syslog

import (
	"fmt"
	"strings"
	"testing"
)

func TestTargets(t *testing.T) {
	for _, x := range []struct {
		in   string
		want target
	}{
		{"udp://logs.example.test:514", target{scheme: "udp", host: "logs.example.test", port: "514"}},
		{"TCP://[::1]:601", target{scheme: "tcp", host: "::1", port: "601"}},
		{"tls://192.0.2.1:6514", target{scheme: "tls", host: "192.0.2.1", port: "6514"}},
		{"relp+tls://h:2514", target{scheme: "relp+tls", host: "h", port: "2514"}},
		{"unix:///dev/log", target{scheme: "unix", path: "/dev/log"}},
		{"unix:///a b/:@ä", target{scheme: "unix", path: "/a b/:@ä"}},
	} {
		got, err := parseTarget(x.in)
		if err != nil || got != x.want {
			t.Errorf("%s: %+v, %v", x.in, got, err)
		}
		if again, err := parseTarget(got.String()); err != nil || again != got || fmt.Sprintf("%#v", got) != got.String() {
			t.Errorf("%s: printed as %s, which is %+v, %v", x.in, got, again, err)
		}
	}
}

func TestR44_R81_WrongTargets(t *testing.T) {
	for in, want := range map[string]string{
		"":                                    "no scheme; want udp://host:port, or another of udp, tcp, tls, relp, relp+tls, unix",
		"s3cret":                              "no scheme",
		"http://h:1":                          "scheme is unknown",
		"udp://s3cret":                        "no port; it is always required",
		"udp://h:s3cret":                      "port is not a number",
		"tcp://u:s3cret@h:1":                  "tcp has no user-info",
		"tcp://h:1/s3cret":                    "tcp has no path",
		"tcp://h:1?s3cret":                    "tcp has no query",
		"tcp://h:1#s3cret":                    "tcp has no fragment",
		"udp://a..b:1":                        `resolve: "a..b:1"`,
		"unix://s3cret":                       "unix wants an absolute path: unix:///path",
		"unix://@s3cret":                      "unix has no abstract sockets; want an absolute path: unix:///path",
		"unix:":                               "unix wants an absolute path: unix:///path",
		"unix:/s3cret":                        "unix wants an absolute path: unix:///path",
		"unix:///s3cret?x":                    "unix has no query and no fragment",
		"unix:///s3cret\x00":                  "path holds a control character",
		"unix:///" + strings.Repeat("x", 107): "path is longer than 107 bytes",
		"relp://h:1":                          "scheme relp is not available in this version",
		"relp+tls://h:1":                      "scheme relp+tls is not available in this version",
	} {
		h, err := NewHandler(in, nil)
		if h != nil || err == nil || !strings.HasPrefix(err.Error(), "syslog: target: "+want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v, %v; want %q", in, h, err, want)
		}
	}
}

func FuzzTarget(f *testing.F) {
	f.Add("tcp://s3cret:s3cret@h:1")
	f.Add("unix:///s3cret\n")
	f.Fuzz(func(t *testing.T, s string) {
		got, err := parseTarget(s)
		if err != nil {
			return
		}
		if again, err := parseTarget(got.String()); err != nil || again != got {
			t.Fatalf("%q: %+v, printed %q: %+v, %v", s, got, got.String(), again, err)
		}
	})
}
