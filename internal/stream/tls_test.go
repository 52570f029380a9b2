package stream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/fake/authority"
)

// seen is what a TLS server knows of one connection when it has ended.
type seen struct {
	sni   string
	bytes string
	peers int
	err   error
}

// serve accepts connections until the listener closes and tells what each came to.
func serve(l *listener, c *tls.Config) <-chan seen {
	out := make(chan seen, 16)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				var s seen
				own := c.Clone()
				own.GetConfigForClient = func(h *tls.ClientHelloInfo) (*tls.Config, error) { s.sni = h.ServerName; return nil, nil }
				tc := tls.Server(conn, own)
				all, err := io.ReadAll(tc)
				s.bytes, s.err, s.peers = string(all), err, len(tc.ConnectionState().PeerCertificates)
				out <- s
			}()
		}
	}()
	return out
}

func encrypted(c *tls.Config) Config {
	o := config()
	o.TLS = c
	return o
}

// R33, R34: the name that was configured is verified, whatever the address; of an IP address no SNI is sent. What does not verify is
// refused with an error that says why, and no byte of a record leaves.
func TestR33_R34_Verification(t *testing.T) {
	ca, other := authority.New(t), authority.New(t)
	for _, tc := range []struct {
		name    string
		cert    tls.Certificate
		as      string
		roots   *x509.CertPool
		sni     string
		failure string
	}{
		{"right name", ca.Issue(time.Hour, "graylog.test"), "graylog.test", ca.Pool(), "graylog.test", ""},
		{"right address", ca.Issue(time.Hour, "127.0.0.1"), "127.0.0.1", ca.Pool(), "", ""},
		{"wrong name", ca.Issue(time.Hour, "other.test"), "graylog.test", ca.Pool(), "graylog.test", "valid for other.test, not graylog.test"},
		{"address that is not listed", ca.Issue(time.Hour, "graylog.test"), "127.0.0.1", ca.Pool(), "", "cannot validate certificate for 127.0.0.1"},
		{"unknown authority", ca.Issue(time.Hour, "graylog.test"), "graylog.test", other.Pool(), "graylog.test", "unknown authority"},
		{"system's roots", ca.Issue(time.Hour, "graylog.test"), "graylog.test", nil, "graylog.test", "failed to verify certificate"},
		{"expired", ca.Issue(-time.Hour, "graylog.test"), "graylog.test", ca.Pool(), "graylog.test", "expired"},
		{"no name to verify", ca.Issue(time.Hour, "graylog.test"), "", ca.Pool(), "", "ServerName"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := listen(t)
			conns := serve(l, &tls.Config{Certificates: []tls.Certificate{tc.cert}})
			tr := New(encrypted(&tls.Config{ServerName: tc.as, RootCAs: tc.roots}))
			if tc.failure != "" {
				_, err := tr.Dial(t.Context(), l.addr, nil)
				is(t, err, delivery.CauseTLS, "TLS handshake: ")
				is(t, err, delivery.CauseTLS, tc.failure)
				if s := <-conns; s.bytes != "" || s.sni != tc.sni {
					t.Errorf("the server saw %+v", s)
				}
				return
			}
			r := dialRig(t, tr, l.addr)
			if err := r.send("a", "b"); err != nil {
				t.Fatal(err)
			}
			r.eventually("2 delivered")
			if err := r.link.Drain(t.Context()); err != nil {
				t.Error(err)
			}
			r.link.Close()
			if s := <-conns; s.bytes != "a\nb\n" || s.err != nil || s.sni != tc.sni {
				t.Errorf("the server saw %+v; close_notify must come before FIN", s)
			}
		})
	}
}

// R33: whoever does not speak TLS gets nothing, and there is no second try without.
func TestR33_NeverPlain(t *testing.T) {
	for name, answer := range map[string]string{"closes": "", "speaks": "HTTP/1.1 400 Bad Request\r\n\r\n"} {
		t.Run(name, func(t *testing.T) {
			l := listen(t)
			got := make(chan string, 1)
			go func() {
				c, err := l.Accept()
				if err != nil {
					return
				}
				defer c.Close()
				hello := make([]byte, 4096)
				n, _ := c.Read(hello)
				_, _ = c.Write([]byte(answer))
				_ = c.(*net.TCPConn).CloseWrite()
				rest, _ := io.ReadAll(c)
				got <- string(hello[:n]) + string(rest)
			}()
			_, err := New(encrypted(&tls.Config{ServerName: "graylog.test"})).Dial(t.Context(), l.addr, nil)
			if err == nil || !strings.HasPrefix(err.Error(), "TLS handshake: ") {
				t.Errorf("%v", err)
			}
			if name == "speaks" {
				is(t, err, delivery.CauseTLS, "")
			}
			if g := <-got; !strings.HasPrefix(g, "\x16\x03") {
				t.Errorf("%q is no ClientHello", g)
			}
		})
	}
}

// A server that does not answer in the handshake is left when the caller's time is up.
func TestHandshakeTimeout(t *testing.T) {
	l := listen(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := New(encrypted(&tls.Config{ServerName: "graylog.test"})).Dial(ctx, l.addr, nil)
	is(t, err, delivery.CauseTimeout, "TLS handshake: ")
}

// R36: a server that asks for a certificate gets ours. One that is refused, or missing, is an error of Dial: in TLS 1.3 the handshake has
// succeeded for us by then, and what was written would be acknowledged and thrown away.
func TestR36_ClientCertificates(t *testing.T) {
	ca, other := authority.New(t), authority.New(t)
	mine := ca.Issue(time.Hour, "client.test")
	stranger := other.Issue(time.Hour, "client.test")
	server := ca.Issue(time.Hour, "graylog.test")
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, tickets := range []bool{true, false} {
			for _, tc := range []struct {
				name  string
				certs []tls.Certificate
				get   func(*tls.CertificateRequestInfo) (*tls.Certificate, error)
				auth  tls.ClientAuthType
				good  bool
				peers int
			}{
				{"ours", []tls.Certificate{mine}, nil, tls.RequireAndVerifyClientCert, true, 1},
				{"the one that fits", []tls.Certificate{stranger, mine}, nil, tls.RequireAndVerifyClientCert, true, 1},
				{"by function", nil, func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &mine, nil }, tls.RequireAndVerifyClientCert, true, 1},
				{"none needed", nil, nil, tls.VerifyClientCertIfGiven, true, 0},
				{"none", nil, nil, tls.RequireAndVerifyClientCert, false, 0},
				{"a stranger's", nil, func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &stranger, nil }, tls.RequireAndVerifyClientCert, false, 0},
			} {
				t.Run(fmt.Sprintf("%x tickets=%v %s", version, tickets, tc.name), func(t *testing.T) {
					t.Parallel()
					l := listen(t)
					conns := serve(l, &tls.Config{
						Certificates: []tls.Certificate{server}, MaxVersion: version,
						ClientAuth: tc.auth, ClientCAs: ca.Pool(), SessionTicketsDisabled: !tickets,
					})
					tr := New(encrypted(&tls.Config{ServerName: "graylog.test", RootCAs: ca.Pool(), Certificates: tc.certs, GetClientCertificate: tc.get}))
					if !tc.good {
						tr.verdict = time.Minute // a busy machine may take longer than a server does
						_, err := tr.Dial(t.Context(), l.addr, nil)
						if err == nil || !strings.HasPrefix(err.Error(), "TLS handshake: ") {
							t.Errorf("%v", err)
						}
						if s := <-conns; s.bytes != "" || s.err == nil {
							t.Errorf("the server saw %+v", s)
						}
						return
					}
					r := dialRig(t, tr, l.addr)
					if err := r.send("a"); err != nil {
						t.Fatal(err)
					}
					r.eventually("1 delivered")
					r.link.Close()
					if s := <-conns; s.bytes != "a\n" || s.peers != tc.peers {
						t.Errorf("the server saw %+v", s)
					}
				})
			}
		}
	}
}

// A caller's time also limits the wait for the verdict.
func TestVerdictTimeout(t *testing.T) {
	l := &link{gone: make(chan struct{}), wire: &wire{answer: &answer{good: make(chan struct{})}}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	is(t, l.judged(ctx, time.Hour), delivery.CauseTLS, "context canceled")
}

// Under TLS acknowledgements count other bytes than frames have, and a batch leaves with several writes. Everything arrives in order, and
// all of it is settled.
func TestTLSSettles(t *testing.T) {
	ca := authority.New(t)
	l := listen(t)
	conns := serve(l, &tls.Config{Certificates: []tls.Certificate{ca.Issue(time.Hour, "graylog.test")}})
	r := dialRig(t, New(encrypted(&tls.Config{ServerName: "graylog.test", RootCAs: ca.Pool()})), l.addr)
	var want strings.Builder
	for i := range 20 {
		batch := make([]string, 100)
		for j := range batch {
			batch[j] = strings.Repeat("x", 7*j) + fmt.Sprint(i, j)
			want.WriteString(batch[j] + "\n")
		}
		if err := r.send(batch...); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.link.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	r.link.Close()
	if s := <-conns; s.bytes != want.String() || s.err != nil {
		t.Errorf("%d bytes of %d arrived, %v", len(s.bytes), want.Len(), s.err)
	}
	if got := r.settled(); got != "2000 delivered" {
		t.Error(got)
	}
	if len(r.chosen) < 60 {
		t.Errorf("%d writes for 20 batches of 35 KB each", len(r.chosen))
	}
}

// A break under TLS: what was acknowledged is delivered, of the write that failed nobody knows, and what was never handed over goes
// to the front of the queue.
func TestTLSBreak(t *testing.T) {
	ca := authority.New(t)
	cert := ca.Issue(time.Hour, "graylog.test")
	l := listen(t)
	peer := make(chan *net.TCPConn, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		tc := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{cert}})
		_, _ = io.ReadFull(tc, make([]byte, 4)) // the handshake, and the first records; then it reads no more
		peer <- c.(*net.TCPConn)
	}()
	c := encrypted(&tls.Config{ServerName: "graylog.test", RootCAs: ca.Pool()})
	c.SendTimeout = 300 * time.Millisecond
	r := dialRig(t, New(c), l.addr)
	if err := r.send("a", "b"); err != nil {
		t.Fatal(err)
	}
	conn := <-peer
	defer conn.Close()
	n, err := fill(r, 64<<10)
	is(t, err, delivery.CauseTimeout, "")
	if err := r.link.Close(); err != nil {
		t.Error(err)
	}
	got := r.delivered()
	last := r.outcomes[len(r.outcomes)-1]
	if got == 0 || got == n+2 || r.outcomes[0] != "delivered" || last == "delivered" {
		t.Errorf("%s of %d", r.settled(), n)
	}
}

// The end of a TLS stream is noticed like that of any other.
func TestTLSGone(t *testing.T) {
	ca := authority.New(t)
	cert := ca.Issue(time.Hour, "graylog.test")
	for name, tc := range map[string]struct {
		end   func(*tls.Conn, *net.TCPConn) error
		cause delivery.Cause
	}{
		"close":        {func(t *tls.Conn, _ *net.TCPConn) error { return t.Close() }, delivery.CausePeerClosed},
		"close_notify": {func(t *tls.Conn, _ *net.TCPConn) error { return t.CloseWrite() }, delivery.CausePeerClosed},
		"FIN":          {func(_ *tls.Conn, c *net.TCPConn) error { return c.Close() }, delivery.CausePeerClosed},
		"reset":        {func(_ *tls.Conn, c *net.TCPConn) error { return errors.Join(c.SetLinger(0), c.Close()) }, delivery.CauseReset},
		"speaks":       {func(t *tls.Conn, _ *net.TCPConn) error { _, err := t.Write([]byte("hello")); return err }, delivery.CauseProtocol},
		"no TLS":       {func(_ *tls.Conn, c *net.TCPConn) error { _, err := c.Write([]byte("hello")); return err }, delivery.CauseTLS},
	} {
		t.Run(name, func(t *testing.T) {
			l := listen(t)
			done := make(chan error, 1)
			go func() {
				c, err := l.Accept()
				if err != nil {
					done <- err
					return
				}
				tc2 := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{cert}, SessionTicketsDisabled: true})
				_, err = io.ReadFull(tc2, make([]byte, 2))
				done <- errors.Join(err, tc.end(tc2, c.(*net.TCPConn)))
				_, _ = io.ReadAll(c)
				c.Close()
			}()
			r := dialRig(t, New(encrypted(&tls.Config{ServerName: "graylog.test", RootCAs: ca.Pool()})), l.addr)
			if err := r.send("a"); err != nil {
				t.Fatal(err)
			}
			is(t, r.gone(), tc.cause, "")
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

// A panic in the user's part of the handshake is an error, and closes the connection.
func TestHandshakePanics(t *testing.T) {
	ca := authority.New(t)
	l := listen(t)
	conns := serve(l, &tls.Config{Certificates: []tls.Certificate{ca.Issue(time.Hour, "graylog.test")}, ClientAuth: tls.RequestClientCert})
	for name, c := range map[string]*tls.Config{
		"the certificate": {GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { panic("oops") }},
		"the verdict":     {VerifyConnection: func(tls.ConnectionState) error { panic("oops") }},
	} {
		c.ServerName, c.RootCAs = "graylog.test", ca.Pool()
		_, err := New(encrypted(c)).Dial(t.Context(), l.addr, nil)
		is(t, err, delivery.CauseOther, "panic: oops")
		select {
		case s := <-conns:
			if s.bytes != "" {
				t.Errorf("%s: the server saw %+v", name, s)
			}
		case <-time.After(time.Minute):
			t.Errorf("%s: the connection stays open", name)
		}
	}
}

// The user's configuration is cloned: later changes to it, and ours, stay apart.
func TestTLSConfigIsCloned(t *testing.T) {
	c := &tls.Config{ServerName: "graylog.test"}
	tr := New(encrypted(c))
	if c.DynamicRecordSizingDisabled || !tr.config.TLS.DynamicRecordSizingDisabled {
		t.Error("the user's config is changed, or ours is not")
	}
	c.ServerName = "other.test"
	if tr.config.TLS.ServerName != "graylog.test" {
		t.Error("ours changes with the user's")
	}
}
