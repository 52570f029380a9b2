package syslog_test

import (
	"crypto/tls"
	"fmt"
	"log/slog"

	"github.com/wholelog/wholelog/internal/fake/syslogd"
	"github.com/wholelog/wholelog/syslog"
)

// Over TCP messages are octet-counted, and a record counts as delivered when the receiver's kernel has it. Line ends never go out
// raw: they would end the message for many a receiver.
func ExampleNewHandler() {
	receiver := listen("tcp", "", syslogd.Options{})
	defer receiver.Close()

	h, err := syslog.NewHandler("tcp://"+receiver.Addr(), &syslog.Options{Facility: syslog.Local3})
	if err != nil {
		fmt.Println(err) // the target or an option is wrong
		return
	}
	log := slog.New(h)
	log.Warn("disk is\nnearly full", "free", 0.03, slog.Group("disk", "name", "sda1"))
	if err := h.Close(); err != nil { // delivers what is pending
		fmt.Println(err)
	}

	for _, m := range received(receiver, 1) {
		fmt.Println(m.Facility, m.Severity, m.Elements, m.Text)
	}
	// Output: 19 4 [{attrs@32473 [{free 0.03} {disk.name sda1}]}] disk is\nnearly full
}

// Over UDP each message is one datagram, cut to what an Ethernet frame holds.
func ExampleNewHandler_udp() {
	receiver := listen("udp", "", syslogd.Options{})
	defer receiver.Close()

	h, err := syslog.NewHandler("udp://"+receiver.Addr(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	slog.New(h).Info("order paid", "order", 8731)
	if err := h.Close(); err != nil {
		fmt.Println(err)
	}

	for _, m := range received(receiver, 1) {
		fmt.Println(m.Format, m.Elements, m.Text)
	}
	// Output: rfc5424 [{attrs@32473 [{order 8731}]}] order paid
}

// With a private authority. Certificates are verified always, for the name in the target.
func ExampleNewHandler_tls() {
	server, roots := certificate()
	receiver := listen("tcp", "", syslogd.Options{TLS: server})
	defer receiver.Close()

	h, err := syslog.NewHandler("tls://"+receiver.Addr(), &syslog.Options{TLSConfig: &tls.Config{RootCAs: roots}})
	if err != nil {
		fmt.Println(err)
		return
	}
	slog.New(h).Info("order paid", "order", 8731)
	if err := h.Close(); err != nil {
		fmt.Println(err)
	}

	for _, m := range received(receiver, 1) {
		fmt.Println(m.Elements, m.Text)
	}
	// Output: [{attrs@32473 [{order 8731}]}] order paid
}

// A wrong target or option is an error at once, and names what is wrong. A name that cannot be looked up, or a socket that is not
// there, is none: records wait for it.
func ExampleNewHandler_errors() {
	_, err := syslog.NewHandler("tls://logs.example.org", nil)
	fmt.Println(err)
	_, err = syslog.NewHandler("unix:/dev/log", nil)
	fmt.Println(err)
	_, err = syslog.NewHandler("udp://logs.example.org:514", &syslog.Options{Framing: syslog.Newline})
	fmt.Println(err)
	_, err = syslog.NewHandler("tcp://logs.example.org:601", &syslog.Options{SDID: "shop"})
	fmt.Println(err)
	// Output:
	// syslog: target: no port; it is always required
	// syslog: target: unix wants an absolute path: unix:///path
	// syslog: option Framing: does not apply to udp
	// syslog: option SDID: is not name@number of at most 32 characters
}
