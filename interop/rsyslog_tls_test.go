//go:build linux

package interop

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/fake/authority"
	"github.com/wholelog/wholelog/syslog"
)

// told is what a handler reports.
type told struct {
	mu     sync.Mutex
	errors []error
	drops  []delivery.Drop
}

// listen makes o report to it.
func (r *told) listen(o *delivery.Options) {
	o.OnError = func(err error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.errors = append(r.errors, err)
	}
	o.OnDrop = func(d delivery.Drop) {
		r.mu.Lock()
		defer r.mu.Unlock()
		d.Data = nil
		r.drops = append(r.drops, d)
	}
}

// of says whether an error was told for which is is true.
func (r *told) of(is func(error) bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, err := range r.errors {
		if is(err) {
			return true
		}
	}
	return false
}

// dropped is how many records were told to be lost, by reason.
func (r *told) dropped() map[delivery.Reason]uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[delivery.Reason]uint64{}
	for _, d := range r.drops {
		out[d.Reason] += uint64(d.Records)
	}
	return out
}

// newSyslog makes a handler and returns what it reports. Who made it closes it.
func newSyslog(t *testing.T, target string, o syslog.Options) (*syslog.Handler, *told) {
	t.Helper()
	said := new(told)
	said.listen(&o.Delivery)
	h, err := syslog.NewHandler(target, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() }) // a second one does nothing
	return h, said
}

// is makes a test of an error's kind.
func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// show makes a client show a certificate whatever the server asks for. One in Certificates would stay hidden where it cannot please.
func show(c tls.Certificate) func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	return func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &c, nil }
}

// A server that is not who it should be, and one that does not want us, gets no message. The error says why, in Ready and to OnError,
// counts as one of TLS, and what was logged stays until Close, which says that it is lost.
func TestR33_R34_R36_RsyslogRefused(t *testing.T) {
	const records = 3
	ca, other := authority.New(t), authority.New(t)
	good := ca.Issue(time.Hour, "localhost")
	stranger, old := other.Issue(time.Hour), ca.Issue(-time.Hour)
	for _, tt := range []struct {
		what    string
		server  tls.Certificate
		host    string
		roots   *x509.CertPool
		mutual  bool             // it demands a certificate
		own     *tls.Certificate // ours
		version uint16           // of TLS at most; 0: the newest
		kind    func(error) bool
		says    string
	}{
		{"another name", ca.Issue(time.Hour, "other.test"), "localhost", ca.Pool(), false, nil, 0, is[x509.HostnameError], "valid for other.test, not localhost"},
		{"an address that it does not list", good, "127.0.0.1", ca.Pool(), false, nil, 0, is[x509.HostnameError], "cannot validate certificate for 127.0.0.1"},
		{"expired", ca.Issue(-time.Hour, "localhost"), "localhost", ca.Pool(), false, nil, 0, is[x509.CertificateInvalidError], "expired"},
		{"unknown authority", good, "localhost", other.Pool(), false, nil, 0, is[x509.UnknownAuthorityError], "unknown authority"},
		{"the system's roots", good, "localhost", nil, false, nil, 0, is[*tls.CertificateVerificationError], "failed to verify certificate"},
		{"none of ours", good, "localhost", ca.Pool(), true, nil, 0, alert, "certificate required"},
		{"none of ours, TLS 1.2", good, "localhost", ca.Pool(), true, nil, tls.VersionTLS12, alert, "handshake failure"},
		{"a stranger's", good, "localhost", ca.Pool(), true, &stranger, 0, alert, "unknown certificate authority"},
		{"a stranger's, TLS 1.2", good, "localhost", ca.Pool(), true, &stranger, tls.VersionTLS12, alert, "unknown certificate authority"},
		{"an expired one of ours", good, "localhost", ca.Pool(), true, &old, 0, alert, "expired certificate"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			r := startRsyslogTLS(t, ca, tt.server)
			port := r.tls
			if tt.mutual {
				port = r.mutual
			}
			own := &tls.Config{RootCAs: tt.roots, MaxVersion: tt.version}
			if tt.own != nil {
				own.GetClientCertificate = show(*tt.own)
			}
			h, said := newSyslog(t, "tls://"+tt.host+":"+port, syslog.Options{
				TLSConfig: own, Delivery: delivery.Options{CloseTimeout: 100 * time.Millisecond},
			})
			log := slog.New(h)
			for i := range records {
				log.Warn("for nobody", "i", i)
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			// Of a refusal that a client of TLS 1.3 hears of after the handshake Ready may know too late.
			if err := h.Ready(ctx); err == nil && !tt.mutual || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("Ready: %v", err)
			}
			until(t, "the refusal is told", func() bool {
				return said.of(func(err error) bool { return tt.kind(err) && strings.Contains(err.Error(), tt.says) })
			})
			if s := h.Stats(); len(s.Endpoints) != 1 || s.Endpoints[0].Errors[delivery.CauseTLS] == 0 {
				t.Errorf("%+v", s)
			}
			err := h.Close()
			s := h.Stats()
			if lost := records - s.Unconfirmed; !errors.Is(err, delivery.ErrClosed) || s.Accepted != records || s.Delivered != s.Unconfirmed ||
				s.Dropped != lost || s.Reasons[delivery.ReasonClosed] != lost || said.dropped()[delivery.ReasonClosed] != lost || s.Pending != 0 {
				t.Errorf("Close: %v; %v were told to be lost; %+v", err, said.dropped(), s)
			}
			r.nothingBut(t, "a message in plain text, which shows that no other came")
		})
	}
}

// alert says whether err is an alert of the server's, which has no type.
func alert(err error) bool { return strings.Contains(err.Error(), "remote error: tls: ") }

// nothingBut sends one message, by UDP and without any help, and checks that it is the only one there is.
func (r *rsyslog) nothingBut(t *testing.T, text string) {
	t.Helper()
	c, err := net.Dial("udp", "127.0.0.1:"+r.udp)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "<13>1 - - - - - - "+text); err != nil {
		t.Fatal(err)
	}
	if all := r.messages(t, 1); len(all) == 0 || all[0].Msg != text {
		t.Errorf("%+v", all)
	}
}

// Whoever is who it should be gets everything, and a server that demands a certificate of ours gets one.
func TestR34_R36_RsyslogAccepts(t *testing.T) {
	const records = 300
	ca := authority.New(t)
	r := startRsyslogTLS(t, ca, ca.Issue(time.Hour, "localhost", "127.0.0.1", "logs.test"))
	mine := ca.Issue(time.Hour, "client.test")
	for _, tt := range []struct {
		what, host, port string
		own              *tls.Config
	}{
		{"its name", "localhost", r.tls, &tls.Config{RootCAs: ca.Pool()}},
		{"its address", "127.0.0.1", r.tls, &tls.Config{RootCAs: ca.Pool()}},
		{"the name of the options", "127.0.0.1", r.tls, &tls.Config{RootCAs: ca.Pool(), ServerName: "logs.test"}},
		{"TLS 1.2", "localhost", r.tls, &tls.Config{RootCAs: ca.Pool(), MaxVersion: tls.VersionTLS12}},
		{"insecure by an option", "localhost", r.tls, &tls.Config{InsecureSkipVerify: true}},
		{"our certificate", "localhost", r.mutual, &tls.Config{RootCAs: ca.Pool(), Certificates: []tls.Certificate{mine}}},
		{"our certificate, TLS 1.2", "localhost", r.mutual, &tls.Config{RootCAs: ca.Pool(), Certificates: []tls.Certificate{mine}, MaxVersion: tls.VersionTLS12}},
		{"our certificate, by a function", "localhost", r.mutual, &tls.Config{RootCAs: ca.Pool(), GetClientCertificate: show(mine)}},
	} {
		t.Run(tt.what, func(t *testing.T) {
			h, said := newSyslog(t, "tls://"+tt.host+":"+tt.port, syslog.Options{TLSConfig: tt.own})
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if err := h.Ready(ctx); err != nil {
				t.Fatal(err)
			}
			for i := range records {
				slog.New(h).Info(fmt.Sprintf("message %d", i))
			}
			if err := h.Close(); err != nil {
				t.Error(err)
			}
			for i, m := range r.messages(t, records) {
				if m.Msg != fmt.Sprintf("message %d", i) {
					t.Fatalf("message %d: %+v", i, m)
				}
			}
			if s := h.Stats(); s.Delivered != records || s.Unconfirmed+s.Resent+s.Dropped+s.Reconnects != 0 || len(said.errors) > 0 {
				t.Errorf("%+v, %v", s, said.errors)
			}
		})
	}
}
