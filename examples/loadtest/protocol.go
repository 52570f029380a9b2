package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/gelf"
	"github.com/wholelog/wholelog/internal/fake/gelfd"
	"github.com/wholelog/wholelog/internal/fake/syslogd"
	"github.com/wholelog/wholelog/resolve"
	"github.com/wholelog/wholelog/syslog"
)

// handler is what all handlers of the library are.
type handler interface {
	slog.Handler
	Ready(ctx context.Context) error
	Flush(ctx context.Context) error
	Close() error
	Stats() delivery.Stats
}

// receiver is one place that counts.
type receiver struct {
	name   string
	close  func() error
	refuse func() uint64 // messages that a log server would not have kept
}

// protocol is one way to send, and the receiver for it. target is the URL without the family in front: udp://host:port.
type protocol struct {
	open   func(target string, o options) (handler, error)
	listen func(addr string, t *tls.Config, heard func(text string)) (netip.AddrPort, receiver, error)
	secure bool
}

// options are those that every protocol has.
type options struct {
	tls      *tls.Config
	resolve  resolve.Options
	delivery delivery.Options
}

// protocols lists what the library speaks, by the scheme of the target. A new protocol is a line here.
func protocols() map[string]protocol {
	return map[string]protocol{
		"gelf+udp":   {open: openGELF, listen: listenUDP},
		"gelf+tcp":   {open: openGELF, listen: listenTCP},
		"gelf+tls":   {open: openGELF, listen: listenTCP, secure: true},
		"gelf+http":  {open: openGELF, listen: listenHTTP},
		"gelf+https": {open: openGELF, listen: listenHTTP, secure: true},
		"syslog+udp": {open: openSyslog, listen: listenSyslog("udp")},
		"syslog+tcp": {open: openSyslog, listen: listenSyslog("tcp")},
		"syslog+tls": {open: openSyslog, listen: listenSyslog("tcp"), secure: true},
	}
}

func schemes() []string { return slices.Sorted(maps.Keys(protocols())) }

// find takes a URL apart: the protocol, and what it calls the target.
func find(url string) (p protocol, target string, err error) {
	scheme, rest, _ := strings.Cut(url, "://")
	p, ok := protocols()[scheme]
	if !ok {
		return p, "", fmt.Errorf("want SCHEME://host:port, SCHEME one of %s", strings.Join(schemes(), ", "))
	}
	_, way, _ := strings.Cut(scheme, "+")
	return p, way + "://" + rest, nil
}

// shown is a target as it is printed: without user-info, since output is pasted into tickets. An @ in the path takes what is before
// it along, which hides too much and never too little.
func shown(url string) string {
	scheme, rest, _ := strings.Cut(url, "://")
	return scheme + "://" + rest[strings.LastIndexByte(rest, '@')+1:]
}

func openGELF(target string, o options) (handler, error) {
	return gelf.NewHandler(target, &gelf.Options{TLSConfig: o.tls, Resolve: o.resolve, Delivery: o.delivery})
}

func openSyslog(target string, o options) (handler, error) {
	return syslog.NewHandler(target, &syslog.Options{TLSConfig: o.tls, Resolve: o.resolve, Delivery: o.delivery})
}

func gelfOptions(heard func(string)) gelfd.Options {
	return gelfd.Options{Discard: true, OnMessage: func(m gelfd.Message) {
		text, _ := m.Fields["message"].(string)
		heard(text)
	}}
}

func refused(s gelfd.Stats) (n uint64) {
	for _, r := range s.Rejected {
		n += r
	}
	return n
}

func listenUDP(addr string, _ *tls.Config, heard func(string)) (netip.AddrPort, receiver, error) {
	s, err := gelfd.Listen(addr, gelfOptions(heard))
	if err != nil {
		return netip.AddrPort{}, receiver{}, err
	}
	return s.Addr(), receiver{close: s.Close, refuse: func() uint64 { return refused(s.Stats()) }}, nil
}

func listenTCP(addr string, t *tls.Config, heard func(string)) (netip.AddrPort, receiver, error) {
	s, err := gelfd.ListenTCP(addr, gelfd.TCPOptions{Options: gelfOptions(heard), TLS: t})
	if err != nil {
		return netip.AddrPort{}, receiver{}, err
	}
	return s.Addr(), receiver{close: s.Close, refuse: func() uint64 { return refused(s.Stats()) }}, nil
}

func listenHTTP(addr string, t *tls.Config, heard func(string)) (netip.AddrPort, receiver, error) {
	s, err := gelfd.ListenHTTP(addr, gelfd.HTTPOptions{Options: gelfOptions(heard), TLS: t})
	if err != nil {
		return netip.AddrPort{}, receiver{}, err
	}
	return s.Addr(), receiver{close: s.Close, refuse: func() uint64 { return refused(s.Stats()) }}, nil
}

func listenSyslog(network string) func(string, *tls.Config, func(string)) (netip.AddrPort, receiver, error) {
	return func(addr string, t *tls.Config, heard func(string)) (netip.AddrPort, receiver, error) {
		s, err := syslogd.Listen(network, addr, syslogd.Options{TLS: t, Discard: true, OnMessage: func(m syslogd.Message) { heard(m.Text) }})
		if err != nil {
			return netip.AddrPort{}, receiver{}, err
		}
		at, err := netip.ParseAddrPort(s.Addr())
		return at, receiver{close: s.Close, refuse: func() (n uint64) {
			for _, r := range s.Stats().Rejected {
				n += r
			}
			return n
		}}, err
	}
}

// trust returns what a sender verifies certificates by; nil: as the system does.
func trust(ca string) (*tls.Config, error) {
	if ca == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(ca)
	if err != nil {
		return nil, fmt.Errorf("-ca: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("-ca: %s holds no certificate", ca)
	}
	return &tls.Config{RootCAs: roots}, nil
}

// identity returns what a receiver shows.
func identity(cert, key string) (*tls.Config, error) {
	if cert == "" || key == "" {
		return nil, errors.New("receiving over TLS needs -cert and -key")
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("-cert, -key: %w", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}}, nil
}
