package gelf_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"net/http/httptest"
	"time"

	"github.com/wholelog/wholelog/internal/fake/gelfd"
)

// The examples send to the receivers of package gelfd, which stand in for Graylog's inputs.

// must returns v: the examples are about handlers, and not about what may happen to their receivers.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// receiver is any of those receivers.
type receiver interface {
	Wait(ctx context.Context, n int) error
	Messages() []gelfd.Message
}

// show prints the fields of the n messages that r receives, as Graylog stores them and without their times.
func show(r receiver, n int) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := r.Wait(ctx, n); err != nil {
		fmt.Println(err)
	}
	for _, m := range r.Messages() {
		fields := maps.Clone(m.Fields)
		delete(fields, "timestamp")
		fmt.Println(fields)
	}
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
