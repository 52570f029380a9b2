package authority_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/wholelog/wholelog/internal/fake/authority"
)

// What is issued is good for its names, for both sides, for its life, and for whoever trusts its authority: nothing more.
func TestIssue(t *testing.T) {
	a, stranger := authority.New(t), authority.New(t)
	for _, tc := range []struct {
		what  string
		life  time.Duration
		as    string
		roots *x509.CertPool
		want  string // in the error
	}{
		{"a name", time.Hour, "a.test", a.Pool(), ""},
		{"another of its names", time.Hour, "b.test", a.Pool(), ""},
		{"an address", time.Hour, "127.0.0.1", a.Pool(), ""},
		{"an address of the other family", time.Hour, "::1", a.Pool(), ""},
		{"a name it does not have", time.Hour, "c.test", a.Pool(), "valid for a.test, b.test, not c.test"},
		{"an address it does not have", time.Hour, "127.0.0.2", a.Pool(), "not 127.0.0.2"},
		{"another authority", time.Hour, "a.test", stranger.Pool(), "unknown authority"},
		{"the past", -time.Hour, "a.test", a.Pool(), "expired"},
	} {
		cert := a.Issue(tc.life, "a.test", "b.test", "127.0.0.1", "::1")
		for _, use := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
			_, err := cert.Leaf.Verify(x509.VerifyOptions{DNSName: tc.as, Roots: tc.roots, KeyUsages: []x509.ExtKeyUsage{use}})
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v, want %q", tc.what, err, tc.want)
			}
		}
	}
	if a.Issue(time.Hour, "a.test").Leaf.SerialNumber.Cmp(a.Issue(time.Hour, "a.test").Leaf.SerialNumber) == 0 {
		t.Error("two certificates with one number")
	}
}

// A client certificate is what a server asks for.
func TestBothSides(t *testing.T) {
	a := authority.New(t)
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	server := tls.Server(far, &tls.Config{
		Certificates: []tls.Certificate{a.Issue(time.Hour, "server.test")}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: a.Pool(),
	})
	served := make(chan error, 1)
	go func() { served <- server.Handshake() }()
	client := tls.Client(near, &tls.Config{
		ServerName: "server.test", RootCAs: a.Pool(), Certificates: []tls.Certificate{a.Issue(time.Hour, "client.test")},
	})
	if err := errors.Join(client.Handshake(), <-served); err != nil {
		t.Fatal(err)
	}
	if peers := server.ConnectionState().PeerCertificates; len(peers) != 1 || peers[0].DNSNames[0] != "client.test" {
		t.Errorf("the server saw %v", peers)
	}
}

func TestFiles(t *testing.T) {
	a := authority.New(t)
	roots, certFile, keyFile := a.Files(a.Issue(time.Hour, "a.test"))
	cert, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(roots)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) || !pool.Equal(a.Pool()) {
		t.Errorf("the roots are\n%s", text)
	}
	if _, err := cert.Leaf.Verify(x509.VerifyOptions{DNSName: "a.test", Roots: pool}); err != nil {
		t.Error(err)
	}
	if another, _, _ := a.Files(cert); another == roots {
		t.Error("the files of two certificates overwrite each other")
	}
}
