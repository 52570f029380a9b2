package gelf_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/gelf"
	"github.com/wholelog/wholelog/internal/fake/authority"
	"github.com/wholelog/wholelog/internal/fake/gelfd"
	"github.com/wholelog/wholelog/resolve"
)

// httpNode starts an HTTP receiver.
func httpNode(t testing.TB, o gelfd.HTTPOptions) *gelfd.HTTPServer {
	t.Helper()
	s, err := gelfd.ListenHTTP("", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// quickly makes retries fast and keeps standard error quiet.
func quickly(o delivery.Options) delivery.Options {
	o.Backoff.Base, o.Backoff.Max = 5*time.Millisecond, 50*time.Millisecond
	if o.OnError == nil {
		o.OnError = func(error) {}
	}
	return o
}

// R33: a certificate that is not good ends the matter before a byte of a request, and the error says what is wrong with it.
func TestR33_HTTPSRefusesBadCertificates(t *testing.T) {
	a, other := authority.New(t), authority.New(t)
	for _, x := range []struct {
		name string
		cert tls.Certificate
		conf *tls.Config
		want string
	}{
		{"wrong name", a.Issue(time.Hour, "other.test"), &tls.Config{RootCAs: a.Pool()}, "not graylog.test"},
		{"unknown CA", other.Issue(time.Hour, "graylog.test"), &tls.Config{RootCAs: a.Pool()}, "unknown authority"},
		{"unknown CA, system roots", a.Issue(time.Hour, "graylog.test"), nil, "certificate"},
		{"expired", a.Issue(-time.Hour, "graylog.test"), &tls.Config{RootCAs: a.Pool()}, "expired"},
		{"panic in a callback", a.Issue(time.Hour, "graylog.test"), &tls.Config{RootCAs: a.Pool(), VerifyConnection: func(tls.ConnectionState) error { panic("no") }}, "TLS handshake: panic: no"},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			node := httpNode(t, gelfd.HTTPOptions{TLS: &tls.Config{Certificates: []tls.Certificate{x.cert}}})
			var told []string
			h, err := gelf.NewHandler("https://graylog.test:443", &gelf.Options{
				TLSConfig: x.conf,
				Resolve:   resolve.Options{Resolver: resolve.Static(node.Addr().String())},
				Delivery: quickly(delivery.Options{
					CloseTimeout: 100 * time.Millisecond, OnError: func(err error) { told = append(told, err.Error()) },
				}),
			})
			if err != nil {
				t.Fatal(err)
			}
			slog.New(h).Info("must not leave")
			wait(t, func() bool {
				s := h.Stats()
				return len(s.Endpoints) > 0 && s.Endpoints[0].Errors[delivery.CauseTLS] > 1
			}, func() string { return fmt.Sprintf("%+v", h.Stats()) })
			if err := h.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("Ready: %v, want %q", err, x.want)
			}
			if s := h.Stats(); s.Pending != 1 || s.Dropped != 0 {
				t.Errorf("%+v", s)
			}
			if err := h.Close(); err == nil {
				t.Error("Close does not tell the loss")
			}
			if len(told) == 0 || !strings.Contains(told[0], x.want) || !strings.HasPrefix(told[0], "gelf: connect to "+node.Addr().String()+": TLS handshake: ") {
				t.Errorf("told: %q", told)
			}
			if len(node.Requests()) != 0 {
				t.Errorf("%d requests arrived", len(node.Requests()))
			}
		})
	}
}

// A server that speaks no TLS gets a ClientHello and nothing else.
func TestR33_HTTPSNeverFallsBackToPlain(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var mu sync.Mutex
	var seen []byte
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			b := make([]byte, 4096)
			n, _ := c.Read(b)
			mu.Lock()
			seen = append(seen, b[:n]...)
			mu.Unlock()
			_, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"))
			c.Close()
		}
	}()
	h := handlerOf(t, "https://"+l.Addr().String(), gelf.Options{Delivery: quickly(delivery.Options{CloseTimeout: time.Millisecond})})
	slog.New(h).Info("must not leave")
	err = h.Ready(t.Context())
	if err == nil || !strings.Contains(err.Error(), "TLS") {
		t.Errorf("%v", err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(seen) == 0 || seen[0] != 0x16 || strings.Contains(string(seen), "POST") || strings.Contains(string(seen), "leave") {
		t.Errorf("%.100q", seen)
	}
}

// A name with three addresses: each is verified by the name, is asked for it by SNI, and sees it as Host.
func TestHTTPSThreeAddressesByName(t *testing.T) {
	a := authority.New(t)
	cert := a.Issue(time.Hour, "graylog.test")
	var mu sync.Mutex
	names := map[string]int{}
	conf := &tls.Config{GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		mu.Lock()
		defer mu.Unlock()
		names[hello.ServerName]++
		return &cert, nil
	}}
	var all []*gelfd.HTTPServer
	var addrs []string
	for range 3 {
		s := httpNode(t, gelfd.HTTPOptions{TLS: conf})
		all, addrs = append(all, s), append(addrs, s.Addr().String())
	}
	h := handlerOf(t, "https://u:p@graylog.test.:12443", gelf.Options{
		TLSConfig: &tls.Config{RootCAs: a.Pool()},
		Resolve:   resolve.Options{Resolver: resolve.Static(addrs...)},
	})
	log, sent, got := slog.New(h), 0, 0
	// A handshake takes long on a loaded machine, and what is not connected takes no share.
	wait(t, func() bool {
		log.Info("m", "n", sent)
		flushed(t, h)
		sent++
		return !slices.ContainsFunc(all, func(s *gelfd.HTTPServer) bool { return len(s.Messages()) == 0 })
	}, func() string { return fmt.Sprintf("%+v", h.Stats()) })
	for _, s := range all {
		got += len(s.Messages())
		for _, r := range s.Requests() {
			if r.Host != "graylog.test.:12443" || r.Proto != "HTTP/1.1" || r.Header.Get("Authorization") != "Basic dTpw" {
				t.Errorf("%+v", r)
			}
		}
	}
	if got != sent {
		t.Errorf("%d of %d arrived", got, sent)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(names) != 1 || names["graylog.test"] == 0 {
		t.Errorf("SNI: %v", names)
	}
}

// R34: of an IP address no SNI is sent, and the certificate must list it.
func TestR34_HTTPSOfAnIPAddress(t *testing.T) {
	a := authority.New(t)
	cert := a.Issue(time.Hour, "127.0.0.1")
	sni := make(chan string, 10)
	node := httpNode(t, gelfd.HTTPOptions{TLS: &tls.Config{GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		sni <- hello.ServerName
		return &cert, nil
	}}})
	h := handlerOf(t, "https://"+node.Addr().String(), gelf.Options{TLSConfig: &tls.Config{RootCAs: a.Pool()}})
	slog.New(h).Info("m")
	flushed(t, h)
	if got := <-sni; got != "" || len(node.Messages()) != 1 {
		t.Errorf("SNI %q", got)
	}
	named := httpNode(t, gelfd.HTTPOptions{TLS: &tls.Config{Certificates: []tls.Certificate{a.Issue(time.Hour, "graylog.test")}}})
	h = handlerOf(t, "https://"+named.Addr().String(), gelf.Options{TLSConfig: &tls.Config{RootCAs: a.Pool()}, Delivery: quickly(delivery.Options{})})
	if err := h.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "IP SAN") {
		t.Errorf("a certificate for another name: %v", err)
	}
}

// R36: a server that asks for a client certificate accepts one of the right authority. Without, it says no after the handshake, in the
// place of an answer: the record waits and is not held for "perhaps taken".
func TestR36_HTTPSClientCertificates(t *testing.T) {
	a := authority.New(t)
	node := httpNode(t, gelfd.HTTPOptions{TLS: &tls.Config{
		Certificates: []tls.Certificate{a.Issue(time.Hour, "127.0.0.1")}, ClientCAs: a.Pool(), ClientAuth: tls.RequireAndVerifyClientCert,
	}})
	h := handlerOf(t, "https://"+node.Addr().String(), gelf.Options{
		TLSConfig: &tls.Config{RootCAs: a.Pool(), Certificates: []tls.Certificate{a.Issue(time.Hour, "client")}},
	})
	slog.New(h).Info("m")
	flushed(t, h)
	if len(node.Messages()) != 1 {
		t.Errorf("%d messages", len(node.Messages()))
	}
	h = handlerOf(t, "https://"+node.Addr().String(), gelf.Options{
		TLSConfig: &tls.Config{RootCAs: a.Pool()}, Delivery: quickly(delivery.Options{CloseTimeout: time.Millisecond, Tries: 1000}),
	})
	slog.New(h).Info("m")
	wait(t, func() bool { return h.Stats().Endpoints != nil && h.Stats().Endpoints[0].Errors[delivery.CauseTLS] > 2 }, func() string { return fmt.Sprintf("%+v", h.Stats()) })
	// On its way the alert may be overtaken by the reset of the connection, which says less.
	if s := h.Stats(); s.Pending != 1 || s.Dropped != 0 || len(s.Endpoints[0].Errors) > 2 {
		t.Errorf("%+v", s)
	}
}

// A server that would rather speak HTTP/2 is spoken to by HTTP/1.1: one connection for all requests would be one target behind a
// balancer.
func TestHTTPSNeverHTTP2(t *testing.T) {
	protos := make(chan string, 10)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		protos <- r.Proto
		w.WriteHeader(http.StatusAccepted)
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	h := handlerOf(t, s.URL, gelf.Options{TLSConfig: &tls.Config{RootCAs: roots, NextProtos: []string{"h2"}}})
	slog.New(h).Info("m")
	flushed(t, h)
	if got := <-protos; got != "HTTP/1.1" {
		t.Error(got)
	}
}
