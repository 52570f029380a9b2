package gelf_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"log/slog"
	"math/big"
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
	"github.com/wholelog/wholelog/internal/fake/gelfd"
	"github.com/wholelog/wholelog/resolve"
)

// authority signs certificates of one test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{key: key, pool: x509.NewCertPool()}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.pool.AddCert(a.cert)
	return a
}

// sign makes a certificate for a name or an IP address, good until then.
func (a *authority) sign(t testing.TB, name string, until time.Time) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: until,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if ip := net.ParseIP(name); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{name}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

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

func handlerOf(t testing.TB, target string, o gelf.Options) *gelf.Handler {
	t.Helper()
	h, err := gelf.NewHandler(target, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

func flushed(t testing.TB, h *gelf.Handler) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := h.Flush(ctx); err != nil {
		t.Fatalf("%v; %+v", err, h.Stats())
	}
}

// R33: a certificate that is not good ends the matter before a byte of a request, and the error says what is wrong with it.
func TestR33_HTTPSRefusesBadCertificates(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	later := time.Now().Add(time.Hour)
	for _, x := range []struct {
		name string
		cert tls.Certificate
		conf *tls.Config
		want string
	}{
		{"wrong name", a.sign(t, "other.test", later), &tls.Config{RootCAs: a.pool}, "not graylog.test"},
		{"unknown CA", other.sign(t, "graylog.test", later), &tls.Config{RootCAs: a.pool}, "unknown authority"},
		{"unknown CA, system roots", a.sign(t, "graylog.test", later), nil, "certificate"},
		{"expired", a.sign(t, "graylog.test", time.Now().Add(-time.Hour)), &tls.Config{RootCAs: a.pool}, "expired"},
		{"panic in a callback", a.sign(t, "graylog.test", later), &tls.Config{RootCAs: a.pool, VerifyConnection: func(tls.ConnectionState) error { panic("no") }}, "TLS handshake: panic: no"},
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
	a := newAuthority(t)
	cert := a.sign(t, "graylog.test", time.Now().Add(time.Hour))
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
		TLSConfig: &tls.Config{RootCAs: a.pool},
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
	a := newAuthority(t)
	cert := a.sign(t, "127.0.0.1", time.Now().Add(time.Hour))
	sni := make(chan string, 10)
	node := httpNode(t, gelfd.HTTPOptions{TLS: &tls.Config{GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		sni <- hello.ServerName
		return &cert, nil
	}}})
	h := handlerOf(t, "https://"+node.Addr().String(), gelf.Options{TLSConfig: &tls.Config{RootCAs: a.pool}})
	slog.New(h).Info("m")
	flushed(t, h)
	if got := <-sni; got != "" || len(node.Messages()) != 1 {
		t.Errorf("SNI %q", got)
	}
	named := httpNode(t, gelfd.HTTPOptions{TLS: &tls.Config{Certificates: []tls.Certificate{a.sign(t, "graylog.test", time.Now().Add(time.Hour))}}})
	h = handlerOf(t, "https://"+named.Addr().String(), gelf.Options{TLSConfig: &tls.Config{RootCAs: a.pool}, Delivery: quickly(delivery.Options{})})
	if err := h.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "IP SAN") {
		t.Errorf("a certificate for another name: %v", err)
	}
}

// R36: a server that asks for a client certificate accepts one of the right authority. Without, it says no after the handshake, in the
// place of an answer: the record waits and is not held for "perhaps taken".
func TestR36_HTTPSClientCertificates(t *testing.T) {
	a := newAuthority(t)
	later := time.Now().Add(time.Hour)
	node := httpNode(t, gelfd.HTTPOptions{TLS: &tls.Config{
		Certificates: []tls.Certificate{a.sign(t, "127.0.0.1", later)}, ClientCAs: a.pool, ClientAuth: tls.RequireAndVerifyClientCert,
	}})
	h := handlerOf(t, "https://"+node.Addr().String(), gelf.Options{
		TLSConfig: &tls.Config{RootCAs: a.pool, Certificates: []tls.Certificate{a.sign(t, "client", later)}},
	})
	slog.New(h).Info("m")
	flushed(t, h)
	if len(node.Messages()) != 1 {
		t.Errorf("%d messages", len(node.Messages()))
	}
	h = handlerOf(t, "https://"+node.Addr().String(), gelf.Options{
		TLSConfig: &tls.Config{RootCAs: a.pool}, Delivery: quickly(delivery.Options{CloseTimeout: time.Millisecond, Tries: 1000}),
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
