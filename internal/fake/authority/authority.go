// Package authority is a certificate authority that lives as long as a test.
package authority

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// early is how long ago a certificate became valid. It is longer than the ages that tests of expired certificates use.
const early = 24 * time.Hour

// Authority signs certificates. Its methods are for the goroutine of a test, since whatever fails in them fails that test.
type Authority struct {
	t    testing.TB
	cert *x509.Certificate
	key  crypto.Signer
}

// New makes an authority for t and its subtests.
func New(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{t: t}
	// Programs look for an issuer by its name first: each authority has one of its own, so that the wrong one is not even tried.
	own := &x509.Certificate{
		Subject: pkix.Name{CommonName: rand.Text()}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		NotAfter: time.Now().Add(early),
	}
	a.cert, a.key = a.sign(own, nil)
	return a
}

// Issue makes a certificate for names, which may be IP addresses, that is good for life from now, and has expired when life is
// negative. It serves a server as well as a client.
func (a *Authority) Issue(life time.Duration, names ...string) tls.Certificate {
	a.t.Helper()
	c := &x509.Certificate{
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		NotAfter: time.Now().Add(life),
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			c.IPAddresses = append(c.IPAddresses, ip)
		} else {
			c.DNSNames = append(c.DNSNames, name)
		}
	}
	leaf, key := a.sign(c, a.cert)
	return tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf}
}

// sign makes a key and a certificate of it. Without a parent it signs itself.
func (a *Authority) sign(c, parent *x509.Certificate) (*x509.Certificate, crypto.Signer) {
	a.t.Helper()
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	signer := a.key
	if parent == nil {
		parent, signer = c, own
	}
	// RFC 5280, section 4.1.2.2: positive, unique and of 20 octets at most.
	if c.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 128)); err != nil {
		a.t.Fatal(err)
	}
	c.SerialNumber.Add(c.SerialNumber, big.NewInt(1))
	c.NotBefore = time.Now().Add(-early)
	der, err := x509.CreateCertificate(rand.Reader, c, parent, own.Public(), signer)
	if err != nil {
		a.t.Fatal(err)
	}
	done, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return done, own
}

// Pool returns what a side trusts that trusts this authority alone.
func (a *Authority) Pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

// Files writes the authority's own certificate, one that it issued and that one's key as PEM files, for programs that want
// files. They go when the test ends.
func (a *Authority) Files(c tls.Certificate) (roots, cert, key string) {
	a.t.Helper()
	secret, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		a.t.Fatal(err)
	}
	dir := a.t.TempDir()
	write := func(name, kind string, der []byte) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			a.t.Fatal(err)
		}
		return name
	}
	return write("roots.pem", "CERTIFICATE", a.cert.Raw), write("cert.pem", "CERTIFICATE", c.Certificate[0]), write("key.pem", "PRIVATE KEY", secret)
}
