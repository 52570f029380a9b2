package stream

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"testing"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/fake/authority"
)

// R36: a server that takes longer over our certificate than we wait has its kernel acknowledge records that it never reads. When it
// refuses, they are not taken for safe.
func TestR36_LateVerdict(t *testing.T) {
	ca := authority.New(t)
	for name, refusal := range map[string]error{"refused": errors.New("not you"), "accepted": nil} {
		t.Run(name, func(t *testing.T) {
			l := listen(t)
			verdict := make(chan struct{})
			conns := serve(l, &tls.Config{
				Certificates: []tls.Certificate{ca.Issue(time.Hour, "graylog.test")}, ClientAuth: tls.RequireAnyClientCert,
				VerifyPeerCertificate: func([][]byte, [][]*x509.Certificate) error { <-verdict; return refusal },
			})
			tr := New(encrypted(&tls.Config{ServerName: "graylog.test", RootCAs: ca.Pool(), Certificates: []tls.Certificate{ca.Issue(time.Hour)}}))
			tr.verdict = 0
			r := dialRig(t, tr, l.addr)
			if err := r.send("a", "b"); err != nil {
				t.Fatal(err)
			}
			r.eventually("2 delivered")
			close(verdict)
			want := 0
			if refusal != nil {
				is(t, r.gone(), delivery.CauseTLS, "bad certificate")
				want = 2
			} else if err := r.link.Drain(t.Context()); err != nil {
				t.Error(err)
			}
			if err := r.link.Close(); err != nil {
				t.Error(err)
			}
			if s := <-conns; (s.bytes == "a\nb\n") != (refusal == nil) {
				t.Errorf("the server saw %+v", s)
			}
			if r.unconfirmed != want {
				t.Errorf("%d are unconfirmed, want %d", r.unconfirmed, want)
			}
		})
	}
}
