package syslog

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/fake/authority"
	"github.com/wholelog/wholelog/internal/fake/syslogd"
	"github.com/wholelog/wholelog/resolve"
)

// seen is what a TLS receiver learned about those who connected.
type seen struct {
	mu       sync.Mutex
	names    []string // SNI of every ClientHello
	versions []uint16 // of handshakes that were completed
	peers    []int    // certificates that came with these
}

// node starts a receiver over TLS that takes what RFC 5425 asks for: counted frames.
func (s *seen) node(t *testing.T, c *tls.Config) *syslogd.Server {
	t.Helper()
	c = c.Clone()
	choose := c.GetCertificate
	certs := c.Certificates
	c.Certificates = nil
	c.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		s.mu.Lock()
		s.names = append(s.names, hello.ServerName)
		s.mu.Unlock()
		if choose != nil {
			return choose(hello)
		}
		return &certs[0], nil
	}
	c.VerifyConnection = func(state tls.ConnectionState) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.versions, s.peers = append(s.versions, state.Version), append(s.peers, len(state.PeerCertificates))
		return nil
	}
	node, err := syslogd.Listen("tcp", "", syslogd.Options{Framing: syslogd.Counted, TLS: c})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { node.Close() })
	return node
}

// told keeps what OnError hears.
type told struct {
	mu  sync.Mutex
	all []string
}

func (o *told) hear(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, err.Error())
}

func (o *told) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(o.all, "\n")
}

// quickly is quick, with something that listens and an end that comes soon.
func quickly(o *told) delivery.Options {
	d := quick
	d.OnError, d.CloseTimeout = o.hear, 200*time.Millisecond
	return d
}

// over says where the receivers are, whatever a target's host is.
func over(nodes ...*syslogd.Server) resolve.Options {
	var addrs []string
	for _, n := range nodes {
		addrs = append(addrs, n.Addr())
	}
	return resolve.Options{Resolver: resolve.Static(addrs...)}
}

// refusals is how often addresses failed for a cause.
func refusals(h *Handler, c delivery.Cause) (n uint64) {
	for _, e := range h.Stats().Endpoints {
		n += e.Errors[c]
	}
	return n
}

// R33: over TLS the target's name is verified at each of its addresses. What does not verify gets no byte of a record, an error says
// why, and records wait.
func TestR33_WhatDoesNotVerify(t *testing.T) {
	ca, other := authority.New(t), authority.New(t)
	good := ca.Issue(time.Hour, "syslog.example.test")
	for name, x := range map[string]struct {
		server *tls.Config
		client *tls.Config
		want   string
		cause  delivery.Cause // "": tls
	}{
		"wrong name":               {certified(ca.Issue(time.Hour, "other.example.test")), &tls.Config{RootCAs: ca.Pool()}, "valid for other.example.test, not syslog.example.test", ""},
		"an address for a name":    {certified(ca.Issue(time.Hour, "127.0.0.1")), &tls.Config{RootCAs: ca.Pool()}, "syslog.example.test", ""},
		"expired":                  {certified(ca.Issue(-time.Hour, "syslog.example.test")), &tls.Config{RootCAs: ca.Pool()}, "expired", ""},
		"unknown authority":        {certified(good), &tls.Config{RootCAs: other.Pool()}, "unknown authority", ""},
		"system's roots":           {certified(good), nil, "certificate", ""},
		"the user's own name":      {certified(good), &tls.Config{RootCAs: ca.Pool(), ServerName: "log.example.test"}, "not log.example.test", ""},
		"TLS 1.1":                  {&tls.Config{Certificates: []tls.Certificate{good}, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}, &tls.Config{RootCAs: ca.Pool()}, "protocol version", ""},
		"what the user wants more": {&tls.Config{Certificates: []tls.Certificate{good}, MaxVersion: tls.VersionTLS12}, &tls.Config{RootCAs: ca.Pool(), MinVersion: tls.VersionTLS13}, "protocol version", ""},
		"a callback that panics":   {certified(good), &tls.Config{RootCAs: ca.Pool(), VerifyConnection: func(tls.ConnectionState) error { panic("no") }}, "panic: no", delivery.CauseOther},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cause := cmp.Or(x.cause, delivery.CauseTLS)
			s, o := new(seen), new(told)
			nodes := []*syslogd.Server{s.node(t, x.server), s.node(t, x.server)}
			h := dialled(t, "tls://syslog.example.test:6514", Options{TLSConfig: x.client, Resolve: over(nodes...), Delivery: quickly(o)})
			slog.New(h).Info("s3cret")
			eventually(t, func() bool { return refusals(h, cause) > 2 })
			if err := h.Ready(within(t)); err == nil || !strings.Contains(err.Error(), x.want) || !strings.HasPrefix(err.Error(), "syslog: ") {
				t.Errorf("Ready: %v, want %q", err, x.want)
			}
			if st := h.Stats(); st.Pending != 1 || st.Dropped != 0 || st.Delivered != 0 {
				t.Errorf("%+v", st)
			}
			if err := h.Close(); !errors.Is(err, delivery.ErrClosed) {
				t.Errorf("Close does not tell the loss: %v", err)
			}
			if st := h.Stats(); st.Accepted != 1 || st.Dropped != 1 || st.Reasons[delivery.ReasonClosed] != 1 {
				t.Errorf("%+v", st)
			}
			if text := o.String(); !strings.Contains(text, x.want) || cause == delivery.CauseTLS && !strings.Contains(text, "TLS handshake: ") || strings.Contains(text, "s3cret") {
				t.Errorf("told: %s", text)
			}
			for _, n := range nodes {
				n.Close()
				if st := n.Stats(); st.Messages > 0 || st.Bytes > 0 || len(n.Rejects()) > 0 {
					t.Errorf("%+v, %v", st, n.Rejects())
				}
			}
		})
	}
}

func certified(c tls.Certificate) *tls.Config { return &tls.Config{Certificates: []tls.Certificate{c}} }

// R33: a receiver that speaks no TLS sees a ClientHello and nothing else, and what it says helps to see why.
func TestR33_NeverPlain(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	first := make(chan []byte, 100)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			b := make([]byte, 4096)
			n, _ := c.Read(b)
			c.Write([]byte("220 not TLS\r\n"))
			c.Close()
			select {
			case first <- b[:n]:
			default:
			}
		}
	})
	o := new(told)
	h := dialled(t, "tls://"+l.Addr().String(), Options{Delivery: quickly(o)})
	slog.New(h).Info("s3cret")
	if err := h.Ready(within(t)); err == nil || !strings.Contains(err.Error(), "TLS handshake: ") {
		t.Error(err)
	}
	h.Close()
	l.Close()
	wg.Wait()
	close(first)
	n := 0
	for b := range first {
		if len(b) == 0 { // Close came first
			continue
		}
		if n++; b[0] != 0x16 || strings.Contains(string(b), "s3cret") { // a record of the handshake (RFC 8446, section 5.1)
			t.Errorf("%.100q", b)
		}
	}
	if st := h.Stats(); n == 0 || st.Delivered != 0 || refusals(h, delivery.CauseTLS) == 0 {
		t.Errorf("%d connections, %+v", n, st)
	}
}

// R33, R34: names and addresses as they stand in the URL are what the certificate must be for, and a name is what SNI says. Close says
// goodbye by close_notify (RFC 5425, section 4.4): without one, a receiver would take the end for an attack, and the fake does.
func TestR33_R34_NamesAndAddresses(t *testing.T) {
	ca := authority.New(t)
	for name, x := range map[string]struct {
		host   string
		names  []string // in the certificate
		client *tls.Config
		sni    string
	}{
		"name":                    {"syslog.example.test", []string{"syslog.example.test"}, &tls.Config{}, "syslog.example.test"},
		"name with a dot":         {"syslog.example.test.", []string{"syslog.example.test"}, &tls.Config{}, "syslog.example.test"},
		"wildcard":                {"syslog.example.test", []string{"*.example.test"}, &tls.Config{}, "syslog.example.test"},
		"IPv4 address":            {"127.0.0.1", []string{"127.0.0.1"}, &tls.Config{}, ""},
		"IPv6 address":            {"[::1]", []string{"::1"}, &tls.Config{}, ""},
		"a name for the address":  {"127.0.0.1", []string{"syslog.example.test"}, &tls.Config{ServerName: "syslog.example.test"}, "syslog.example.test"},
		"TLS 1.2":                 {"syslog.example.test", []string{"syslog.example.test"}, &tls.Config{MaxVersion: tls.VersionTLS12}, "syslog.example.test"},
		"insecure, as it is said": {"syslog.example.test", []string{"other.example.test"}, &tls.Config{InsecureSkipVerify: true}, "syslog.example.test"},
	} {
		t.Run(name, func(t *testing.T) {
			s := new(seen)
			node := s.node(t, certified(ca.Issue(time.Hour, x.names...)))
			x.client.RootCAs = ca.Pool()
			h := dialled(t, "tls://"+x.host+":6514", Options{TLSConfig: x.client, Resolve: over(node)})
			slog.New(h).Info("m")
			if err := h.Flush(within(t)); err != nil {
				t.Fatal(err)
			}
			if err := node.Wait(within(t), 1); err != nil {
				t.Fatal(err)
			}
			if err := h.Close(); err != nil {
				t.Error(err)
			}
			eventually(t, func() bool { c := node.Stats().Conns; return len(c) == 1 && !c[0].Open })
			if c := node.Stats().Conns[0]; c.Err != nil || c.Messages != 1 {
				t.Errorf("no goodbye: %+v", c)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			want := uint16(tls.VersionTLS13)
			if x.client.MaxVersion != 0 {
				want = x.client.MaxVersion
			}
			if !slices.Equal(s.names, []string{x.sni}) || !slices.Equal(s.versions, []uint16{want}) {
				t.Errorf("SNI %q, versions %x", s.names, s.versions)
			}
		})
	}
}

// R36: a receiver that demands a certificate gets it. Without, or with one of another authority, records wait: the refusal is heard
// before they leave, though in TLS 1.3 it comes when the handshake is over for us.
func TestR36_ClientCertificates(t *testing.T) {
	ca, other := authority.New(t), authority.New(t)
	server := certified(ca.Issue(time.Hour, "127.0.0.1"))
	server.ClientAuth, server.ClientCAs = tls.RequireAndVerifyClientCert, ca.Pool()
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for name, x := range map[string]struct {
			certs []tls.Certificate
			good  bool
		}{
			"good":                {[]tls.Certificate{ca.Issue(time.Hour, "client.example.test")}, true},
			"none":                {nil, false},
			"expired":             {[]tls.Certificate{ca.Issue(-time.Hour, "client.example.test")}, false},
			"another authority's": {[]tls.Certificate{other.Issue(time.Hour, "client.example.test")}, false},
		} {
			t.Run(fmt.Sprint(tls.VersionName(version), ", ", name), func(t *testing.T) {
				t.Parallel()
				s, o := new(seen), new(told)
				node := s.node(t, server)
				h := dialled(t, "tls://"+node.Addr(), Options{
					TLSConfig: &tls.Config{RootCAs: ca.Pool(), Certificates: x.certs, MaxVersion: version}, Delivery: quickly(o),
				})
				if x.good || version < tls.VersionTLS13 { // the verdict of TLS 1.3 has its time, which a loaded machine may exceed
					slog.New(h).Info("m")
				}
				if !x.good {
					eventually(t, func() bool {
						_ = h.Ready(within(t)) // a try each
						return refusals(h, delivery.CauseTLS) > 2 && strings.Contains(o.String(), "TLS handshake: remote error: ")
					})
					if st := h.Stats(); st.Pending != st.Accepted || st.Resent != 0 || node.Stats().Messages != 0 {
						t.Errorf("%+v", st)
					}
					return
				}
				if err := errors.Join(h.Flush(within(t)), node.Wait(within(t), 1)); err != nil {
					t.Fatal(err)
				}
				s.mu.Lock()
				defer s.mu.Unlock()
				if !slices.Equal(s.peers, []int{1}) || !slices.Equal(s.versions, []uint16{version}) {
					t.Errorf("%v, %x", s.peers, s.versions)
				}
			})
		}
	}
}

// R33, R39: when the receiver's certificate has been renewed, what waited arrives, with no restart of ours.
func TestR33_R39_CertificateRenewed(t *testing.T) {
	ca := authority.New(t)
	var mu sync.Mutex
	present := ca.Issue(-time.Hour, "syslog.example.test")
	s, o := new(seen), new(told)
	node := s.node(t, &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		mu.Lock()
		defer mu.Unlock()
		c := present
		return &c, nil
	}})
	h := dialled(t, "tls://syslog.example.test:6514", Options{TLSConfig: &tls.Config{RootCAs: ca.Pool()}, Resolve: over(node), Delivery: quickly(o)})
	log := slog.New(h)
	for i := range 10 {
		log.Info("m", "i", i)
	}
	eventually(t, func() bool { return refusals(h, delivery.CauseTLS) > 2 })
	mu.Lock()
	present = ca.Issue(time.Hour, "syslog.example.test")
	mu.Unlock()
	if err := errors.Join(h.Flush(within(t)), node.Wait(within(t), 10)); err != nil {
		t.Fatal(err)
	}
	for i, m := range node.Messages() {
		if got, _ := m.Param("attrs@32473", "i"); got != fmt.Sprint(i) {
			t.Errorf("%d: %s", i, m.Raw)
		}
	}
	if st := h.Stats(); st.Delivered != 10 || st.Resent != 0 || st.Dropped != 0 {
		t.Errorf("%+v", st)
	}
}

// R35: a receiver that accepts and then says nothing costs DialTimeout, and the next address has the records.
func TestR35_HandshakeThatHangs(t *testing.T) {
	deaf, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer deaf.Close() // nobody accepts: the kernel does
	ca := authority.New(t)
	node := new(seen).node(t, certified(ca.Issue(time.Hour, "syslog.example.test")))
	o := new(told)
	d := quickly(o)
	d.DialTimeout = 300 * time.Millisecond
	h := dialled(t, "tls://syslog.example.test:6514", Options{
		TLSConfig: &tls.Config{RootCAs: ca.Pool()}, Delivery: d,
		Resolve: resolve.Options{Resolver: resolve.Static(deaf.Addr().String(), node.Addr())},
	})
	log := slog.New(h)
	n := 0
	eventually(t, func() bool {
		log.Info("m")
		n++
		return refusals(h, delivery.CauseTimeout) > 0 && node.Stats().Messages > 0
	})
	if err := errors.Join(h.Flush(within(t)), node.Wait(within(t), n)); err != nil {
		t.Fatal(err)
	}
	if st := h.Stats(); st.Delivered != uint64(n) || st.Dropped != 0 {
		t.Errorf("%+v", st)
	}
	eventually(t, func() bool { return strings.Contains(o.String(), "syslog: connect to ") })
}

// RFC 5425, section 4.3: receivers over TLS take counted frames only. Lines are for those who ask for them, and such a receiver takes
// none of them.
func TestR27_LinesWhereCountsAre(t *testing.T) {
	ca, o := authority.New(t), new(told)
	node := new(seen).node(t, certified(ca.Issue(time.Hour, "127.0.0.1")))
	h := dialled(t, "tls://"+node.Addr(), Options{Framing: Newline, TLSConfig: &tls.Config{RootCAs: ca.Pool()}, Delivery: quickly(o)})
	slog.New(h).Info("m")
	eventually(t, func() bool { return node.Stats().Rejected[syslogd.BadFrame] > 0 })
	if node.Stats().Messages != 0 {
		t.Errorf("%v", node.Messages())
	}
}
