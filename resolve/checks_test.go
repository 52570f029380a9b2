package resolve

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wholelog/wholelog/internal/fake/loopback"
	"github.com/wholelog/wholelog/internal/mask"
)

// patience is how long anything may take that is known to happen.
const patience = 30 * time.Second

func checkNow(t *testing.T, c Check, addr netip.AddrPort) (Report, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return c.Check(ctx, addr)
}

func portOf(l net.Listener) int { return l.Addr().(*net.TCPAddr).Port }

func addrOf(l net.Listener) netip.AddrPort { return l.Addr().(*net.TCPAddr).AddrPort() }

func listen(t *testing.T) net.Listener {
	t.Helper()
	addr, err := loopback.Addr() // that of a listener which is closed refuses
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp4", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func TestCheckValidate(t *testing.T) {
	for want, checks := range map[string][]Check{
		"": {TCPCheck(0), TCPCheck(65535), AgentCheck(1), HTTPCheck("http://graylog:9000/api/system/lbstatus"), HTTPCheck("https://[::1]/x")},
		"resolve: TCPCheck: the port must be from 1 to 65535":             {TCPCheck(-1), TCPCheck(65536)},
		"resolve: AgentCheck: the port must be from 1 to 65535":           {AgentCheck(0), AgentCheck(65536)},
		"resolve: HTTPCheck: the URL must begin with http:// or https://": {HTTPCheck(""), HTTPCheck("host:9000/x"), HTTPCheck("ftp://u:secret@h")},
		"resolve: HTTPCheck: the URL has no host":                         {HTTPCheck("http:///x")},
		"resolve: HTTPCheck: the URL cannot be parsed":                    {HTTPCheck("http://u:secret@h:port/"), HTTPCheck("http://u:%secret@h")},
		"resolve: HTTPCheck: the port must be a number from 1 to 65535":   {HTTPCheck("http://u:secret@h:70000/")},
	} {
		for _, c := range checks {
			err := c.(interface{ Validate() error }).Validate()
			if got := fmt.Sprint(err); got != want && (err != nil || want != "") {
				t.Errorf("%s, want %q", got, want)
			}
			if strings.Contains(fmt.Sprint(c), "secret") && err == nil {
				t.Errorf("%v", c)
			}
		}
	}
	if c := HTTPCheck("http://u:secret@h/x"); fmt.Sprint(c) != "http://h/x" {
		t.Errorf("%v", c)
	}
	if c := HTTPCheck("x://u:secret@h/x"); fmt.Sprint(c) != "HTTPCheck" {
		t.Errorf("%v", c)
	}
	for _, c := range []Check{AgentCheck(0), HTTPCheck("")} {
		if _, err := c.Check(t.Context(), netip.AddrPort{}); err == nil {
			t.Errorf("%v checks though it is not valid", c)
		}
	}
}

func TestTCPCheck(t *testing.T) {
	l := listen(t)
	other := netip.AddrPortFrom(addrOf(l).Addr(), 9)
	for _, c := range []struct {
		check skipping
		addr  netip.AddrPort
		skip  bool
	}{
		{TCPCheck(0).(skipping), addrOf(l), true},
		{TCPCheck(portOf(l)).(skipping), other, false},
	} {
		if r, err := checkNow(t, c.check, c.addr); err != nil || r != (Report{State: Up}) {
			t.Errorf("%+v, %v", r, err)
		}
		if c.check.SkipConnected() != c.skip {
			t.Errorf("skips connected addresses: %v", !c.skip)
		}
	}
	// The peer sees a connection that ends without a byte.
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if n, err := conn.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("it sent %d bytes", n)
	}
	l.Close()
	if r, err := checkNow(t, TCPCheck(0), addrOf(l)); !errors.Is(err, syscall.ECONNREFUSED) || r != (Report{}) {
		t.Errorf("%+v, %v", r, err)
	}
}

// skipping is a Check that may be skipped.
type skipping interface {
	Check
	SkipConnected() bool
}

func TestHTTPCheck(t *testing.T) {
	var status int
	var body string
	var seen *http.Request
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r
		if status == http.StatusFound {
			w.Header().Set("Location", "/elsewhere")
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(s.Close)
	addr := netip.MustParseAddrPort(s.Listener.Addr().String())
	for _, c := range []struct {
		status int
		body   string
		want   Report
		err    string
	}{
		{200, "ALIVE", Report{State: Up}, ""},
		{429, "THROTTLED", Report{State: Degraded, Note: "429 Too Many Requests: THROTTLED"}, ""},
		{503, "DEAD\nand more", Report{State: Down, Note: "503 Service Unavailable: DEAD"}, ""},
		{404, "", Report{}, "status 404 Not Found:"},
		{500, strings.Repeat("x", 1<<20), Report{}, "status 500 Internal Server Error: " + strings.Repeat("x", mask.MaxWords-len("500 Internal Server Error: ")) + "…"},
		// R81: servers that repeat what they were sent.
		{429, "user:secret \x1b[31m", Report{State: Degraded, Note: "429 Too Many Requests: *** [31m"}, ""},
		{503, "Basic dXNlcjpzZWNyZXQ=", Report{State: Down, Note: "503 Service Unavailable: Basic ***"}, ""},
		{401, "no user with password secret", Report{}, "status 401 Unauthorized: no user with password ***"},
		{204, "", Report{}, "status 204 No Content:"},
		{302, "", Report{}, "status 302 Found:"},
	} {
		status, body = c.status, c.body
		r, err := checkNow(t, HTTPCheck("http://user:secret@graylog.test/api/system/lbstatus?x=1"), addr)
		if got := fmt.Sprint(err); r != c.want || got != c.err && (err != nil || c.err != "") {
			t.Errorf("%d: %+v, %.200s", c.status, r, got)
		}
		user, password, _ := seen.BasicAuth()
		if seen.Host != "graylog.test" || seen.RequestURI != "/api/system/lbstatus?x=1" || seen.Method != "GET" || user+password != "usersecret" {
			t.Errorf("asked %s %s of %s as %s", seen.Method, seen.RequestURI, seen.Host, user)
		}
	}
	// A port in the URL is kept.
	status = 200
	kept := HTTPCheck(fmt.Sprintf("http://graylog.test:%d/", addr.Port()))
	if r, err := checkNow(t, kept, netip.AddrPortFrom(addr.Addr(), 9)); err != nil || r.State != Up {
		t.Errorf("%+v, %v", r, err)
	}
	s.Close()
	if _, err := checkNow(t, HTTPCheck("http://user:secret@graylog.test/"), addr); !errors.Is(err, syscall.ECONNREFUSED) || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
}

// R81: what is no answer of HTTP is quoted by net/http, and with it what it repeats of the request.
func TestR81_HTTPCheckNoHTTP(t *testing.T) {
	l := listen(t)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		if r, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
			_, _ = fmt.Fprintf(conn, "%s\r\n\r\n", strings.TrimPrefix(r.Header.Get("Authorization"), "Basic "))
		}
	}()
	c := HTTPCheck("http://user:secret@graylog.test/status?key=secret#secret")
	_, err := checkNow(t, c, addrOf(l))
	if err == nil || !strings.HasSuffix(err.Error(), `"***"`) {
		t.Errorf("%v", err)
	}
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if got := fmt.Sprintf(format, c); strings.Contains(got, "user") || strings.Contains(got, "secret") {
			t.Errorf("%s: %s", format, got)
		}
	}
	if got := fmt.Sprint(c); got != "http://graylog.test/status" {
		t.Errorf("%s", got)
	}
}

// The TLS name is that of the URL, and a certificate that the system does not know is a failure.
func TestHTTPCheckTLS(t *testing.T) {
	name := make(chan string, 1)
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.TLS = &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		name <- h.ServerName
		return nil, nil
	}}
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // it would tell of the refused certificate
	s.StartTLS()
	t.Cleanup(s.Close)
	_, err := checkNow(t, HTTPCheck("https://splunk.test/services/collector/health"), netip.MustParseAddrPort(s.Listener.Addr().String()))
	var unknown *tls.CertificateVerificationError
	if !errors.As(err, &unknown) {
		t.Errorf("%v", err)
	}
	if got := <-name; got != "splunk.test" {
		t.Errorf("the TLS name was %q", got)
	}
}

// Every check ends with its context, and leaves nothing behind.
func TestChecksEndWithTheirContext(t *testing.T) {
	l := listen(t) // accepts and says nothing
	for name, c := range map[string]Check{"http": HTTPCheck("http://x/"), "agent": AgentCheck(portOf(l))} {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			if conn, err := l.Accept(); err == nil {
				defer conn.Close()
				cancel()
				_, _ = conn.Read(make([]byte, 1<<10)) // until the check hangs up
				_, _ = conn.Read(make([]byte, 1<<10))
			}
		}()
		r, err := c.Check(ctx, addrOf(l))
		if name == "http" && !errors.Is(err, context.Canceled) || name == "agent" && (err != nil || r.State != Unknown || !strings.HasPrefix(r.Note, "no answer from the agent: ")) {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		cancel()
	}
}
