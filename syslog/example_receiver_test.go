package syslog_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http/httptest"
	"time"

	"github.com/wholelog/wholelog/internal/fake/syslogd"
)

// The examples send to the receiver of package syslogd, which takes messages apart as strictly as RFC 5424 is.

// listen starts one: the examples are about handlers, and not about what may happen to their receivers.
func listen(network, addr string, opts syslogd.Options) *syslogd.Server {
	s, err := syslogd.Listen(network, addr, opts)
	if err != nil {
		panic(err)
	}
	return s
}

// received waits for n messages.
func received(s *syslogd.Server, n int) []syslogd.Message {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.Wait(ctx, n); err != nil {
		fmt.Println(err)
	}
	return s.Messages()
}

// certificate returns one for 127.0.0.1, and the authorities that trust it.
func certificate() (server *tls.Config, roots *x509.CertPool) {
	s := httptest.NewUnstartedServer(nil)
	s.StartTLS()
	defer s.Close()
	roots = x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return &tls.Config{Certificates: s.TLS.Certificates}, roots
}
