package gelf

import (
	"fmt"
	"strings"
	"testing"

	"github.com/wholelog/wholelog/resolve"
)

func TestParseTarget(t *testing.T) {
	for in, want := range map[string]target{
		"udp://graylog.example.org:12201": {scheme: "udp", host: "graylog.example.org", port: "12201"},
		"UDP://h:1":                       {scheme: "udp", host: "h", port: "1"},
		"udp://192.0.2.1:65535":           {scheme: "udp", host: "192.0.2.1", port: "65535"},
		"udp://[::1]:12201":               {scheme: "udp", host: "::1", port: "12201"},
		"udp://[fe80::1%eth0]:12201":      {scheme: "udp", host: "fe80::1%eth0", port: "12201"},
		"udp://under_score-dash:9":        {scheme: "udp", host: "under_score-dash", port: "9"},
		"tcp://h:1":                       {scheme: "tcp", host: "h", port: "1"},
		"TLS://[::1]:1":                   {scheme: "tls", host: "::1", port: "1"},
		"http://h:1":                      {scheme: "http", host: "h", port: "1", path: "/gelf"},
		"http://h:1/":                     {scheme: "http", host: "h", port: "1", path: "/"},
		"https://h:1/gelf/":               {scheme: "https", host: "h", port: "1", path: "/gelf/"},
		"http://h:1/a/b%2Fc~(d);e=f":      {scheme: "http", host: "h", port: "1", path: "/a/b%2Fc~(d);e=f"},
		"http://h:1//a":                   {scheme: "http", host: "h", port: "1", path: "//a"},
		"http://u:p@[::1]:1":              {scheme: "http", host: "::1", port: "1", path: "/gelf", user: "u", password: "p"},
		"http://a%40b:%2f%3F:%25@h:1/x":   {scheme: "http", host: "h", port: "1", path: "/x", user: "a@b", password: "/?:%"},
		"http://u@x:p@h:1":                {scheme: "http", host: "h", port: "1", path: "/gelf", user: "u@x", password: "p"},
		"http://token@h:1":                {scheme: "http", host: "h", port: "1", path: "/gelf", user: "token"},
		"http://:p@h:1":                   {scheme: "http", host: "h", port: "1", path: "/gelf", password: "p"},
	} {
		got, err := parseTarget(in)
		if got != want || err != nil {
			t.Errorf("%s: %v, %v", in, got, err)
		}
	}
	v6, _ := parseTarget("udp://[::1]:12201")
	if s := v6.String(); s != "udp://[::1]:12201" {
		t.Errorf("R44 brackets: %s", s)
	}
}

// R81, R82: a target is printed in errors and by handlers, and its user-info never.
func TestR82_TargetsPrintNoSecret(t *testing.T) {
	for in, want := range map[string]string{
		"http://h:1":                      "http://h:1/gelf",
		"https://u:s3cret@h:1/in":         "https://***@h:1/in",
		"http://s3cret@[::1]:1":           "http://***@[::1]:1/gelf",
		"http://s3cret%2Fs3cret:@h:1/%41": "http://***@h:1/%41",
	} {
		got, err := parseTarget(in)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []string{got.String(), fmt.Sprintf("%v", got), fmt.Sprintf("%+v", got), fmt.Sprintf("%#v", got)} {
			if s != want {
				t.Errorf("%s, want %s", s, want)
			}
		}
	}
}

// Each error names the part of the URL, and R81: none quotes any.
func TestR44_WrongTargets(t *testing.T) {
	const secret = "s3cret"
	for in, want := range map[string]string{
		"":                               "target: no scheme",
		"graylog:12201":                  "target: no scheme",
		"udp:graylog:12201":              "target: no //host after udp:",
		"udp:":                           "target: no //host after udp:",
		"UDP:" + secret:                  "target: no //host after udp:",
		" udp://h:1":                     "target: white space around it",
		"udp://h:1\n":                    "target: white space around it",
		" " + secret:                     "target: white space around it",
		"gopher://h:1":                   "target: scheme is unknown",
		secret + "://h:1":                "target: scheme is unknown",
		"://h:1":                         "target: scheme is unknown",
		"http:h:1":                       "target: no //host after http:; want http://host:port",
		"http":                           "target: no scheme",
		"http://":                        "target: no host",
		"http:///gelf":                   "target: no host",
		"http://h/gelf":                  "target: no port",
		"http://u:" + secret + "@h":      "target: no port",
		"http://u:" + secret + "@h/gelf": "target: no port",
		"http://u:" + secret + "@:1":     "target: no host",
		"http://@h:1":                    "target: user-info is empty",
		"http://:@h:1":                   "target: user-info is empty",
		"http://u%3A:" + secret + "@h:1": "target: user-info: the user holds a colon",
		"http://u:" + secret + "%@h:1":   "target: user-info holds a %",
		"http://u:" + secret + "%0A@h:1": "target: user-info holds a control character",
		"http://u:1/" + secret + "@h:1":  "target: path holds an @",
		"http://u:?" + secret + "@h:1":   "target: http has no query",
		"http://h:1/gelf?x=" + secret:    "target: http has no query",
		"http://h:1?x=" + secret:         "target: http has no query",
		"https://h:1/gelf#" + secret:     "target: https has no fragment",
		"http://h:1/g elf":               "target: path holds a character",
		"http://h:1/gelf\x00" + secret:   "target: path holds a character",
		"http://h:1/lög":                 "target: path holds a character",
		"http://h:1/%4":                  "target: path holds a character",
		"http://a:1,b:2/gelf":            "target: one host only",
		"tcp://h:1/" + secret:            "target: tcp has no path",
		"tcp://u:" + secret + "@h:1":     "target: tcp has no user-info",
		"tls://h:1?x=" + secret:          "target: tls has no query",
		"udp://":                         "target: no host",
		"udp://:12201":                   "target: no host",
		"udp://h":                        "target: no port",
		"udp://h:":                       "target: no port",
		"udp://[::1]":                    "target: no port",
		"udp://h:gelf":                   "target: port is not a number",
		"udp://h:+1":                     "target: port is not a number",
		"udp://h:-1":                     "target: port is not a number",
		"udp://h:0":                      "target: port is outside 1…65535",
		"udp://h:65536":                  "target: port is outside 1…65535",
		"udp://h:99999999999999999999":   "target: port is outside 1…65535",
		"udp://::1:12201":                "target: host is not valid; an IPv6 address stands in brackets",
		"udp://[h]:12201":                "target: host is not an IPv6 address",
		"udp://[192.0.2.1]:12201":        "target: host is not an IPv6 address",
		"udp://a b:12201":                "target: host holds a character",
		"udp://a,b:12201":                "target: one host only",
		"udp://a:1,b:2":                  "target: one host only",
		"udp://[::1":                     "target: host lacks the closing ]",
		"udp://[::1:" + secret:           "target: host lacks the closing ]",
		"udp://h\x00:12201":              "target: host holds a character",
		"udp://h:1/" + secret:            "target: udp has no path",
		"udp://h:1/":                     "target: udp has no path",
		"udp://h:1?token=" + secret:      "target: udp has no query",
		"udp://h:1#" + secret:            "target: udp has no fragment",
		"udp://u:" + secret + "@h:1":     "target: udp has no user-info",
		"udp://u:" + secret + "/x@h:1":   "target: udp has no path",
		"udp://h:" + secret:              "target: port is not a number",
	} {
		got, err := NewHandler(in, nil)
		if got != nil || err == nil || !strings.HasPrefix(err.Error(), "gelf: "+want) {
			t.Errorf("%q: %v, %v; want an error with %q", in, got, err, want)
		}
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("%q: the error quotes it: %v", in, err)
		}
	}
}

// A host that no look-up can ever find is an error of the configuration; with a Resolver of the user's own nobody looks it up.
func TestR44_HostsThatNeverResolve(t *testing.T) {
	for host, want := range map[string]string{
		"300.1.2.3":              "the host is neither a name nor an IP address",
		"1.2.3":                  "the host is neither a name nor an IP address",
		"127.0.0.01":             "the host is neither a name nor an IP address",
		"a..b":                   "a part of the host name is empty or longer than 63 bytes",
		"a..":                    "a part of the host name is empty or longer than 63 bytes",
		".":                      "the host is missing",
		"löc.example":            "the host name may hold letters, digits, hyphens, underscores and dots only",
		"~":                      "the host name may hold letters, digits, hyphens, underscores and dots only",
		strings.Repeat("a", 64):  "a part of the host name is empty or longer than 63 bytes",
		strings.Repeat("a", 300): "the host name is longer than 253 bytes",
	} {
		shown := fmt.Sprintf("%.100q", host+":12201")
		if h, err := NewHandler("udp://"+host+":12201", nil); h != nil || err == nil || err.Error() != "gelf: target: resolve: "+shown+": "+want {
			t.Errorf("%q: %v, %v; want %s", host, h, err, want)
		}
		h, err := NewHandler("udp://"+host+":12201", &Options{Resolve: resolve.Options{Resolver: resolve.Static("127.0.0.1:12201")}})
		if err != nil {
			t.Errorf("%q with a Resolver: %v", host, err)
			continue
		}
		h.Close()
	}
	for _, host := range []string{"localhost", "graylog", "logs.example.com", "logs.example.com.", "a_b-c.example", "127.0.0.1", "[::1]", "[fe80::1%lo]", "4", "x.4a"} {
		h, err := NewHandler("udp://"+host+":12201", nil)
		if err != nil {
			t.Errorf("%q: %v", host, err)
			continue
		}
		h.Close()
	}
}

func FuzzParseTarget(f *testing.F) {
	f.Add("udp://h:1")
	f.Add("udp://[::1]:12201")
	f.Add("udp://u:p@h:1/x?y#z")
	f.Add("http://u%3A:p@[fe80::1%25eth0]:1/x%2Fy")
	f.Add("https://h:443")
	f.Fuzz(func(t *testing.T, in string) {
		got, err := parseTarget(in)
		if err != nil {
			return
		}
		shown := got.String()
		if got.user+got.password != "" {
			got.user, got.password = "***", "" // what is shown in their place
		}
		if again, err := parseTarget(shown); err != nil || again != got {
			t.Fatalf("%q: %v prints as %s, which reads %v, %v", in, got, got, again, err)
		}
	})
}
