package syslog_test

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/wholelog/wholelog/internal/fake/syslogd"
	"github.com/wholelog/wholelog/syslog"
)

// say sends two records with fixed times to a receiver, and prints the lines that it gets.
func say(opts syslog.Options) {
	receiver := listen("tcp", "", syslogd.Options{})
	defer receiver.Close()

	opts.Hostname, opts.AppName, opts.ProcID = "web-1", "shop", "42"
	opts.ReplaceAttr = func(groups []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey && len(groups) == 0 {
			return slog.Time(slog.TimeKey, time.Date(2026, 3, 4, 5, 6, 7, 89_000_000, time.UTC))
		}
		return a
	}
	h, err := syslog.NewHandler("tcp://"+receiver.Addr(), &opts)
	if err != nil {
		fmt.Println(err)
		return
	}
	log := slog.New(h).With("service", "checkout")
	log.Info("order paid", "order", 8731, "by", "A. B.")
	log.Error("lost\tconnection", slog.Group("db", "host", "db-1", "tries", 3))
	if err := h.Close(); err != nil {
		fmt.Println(err)
	}
	for _, m := range received(receiver, 2) {
		fmt.Println(m.Raw)
	}
}

// The default is RFC 5424 with attributes as structured data.
func ExampleOptions() {
	say(syslog.Options{})
	// Output:
	// <134>1 2026-03-04T05:06:07.089000Z web-1 shop 42 - [attrs@32473 service="checkout" order="8731" by="A. B."] order paid
	// <131>1 2026-03-04T05:06:07.089000Z web-1 shop 42 - [attrs@32473 service="checkout" db.host="db-1" db.tries="3"] lost\tconnection
}

// The form that rsyslog's mmjsonparse reads: all attributes as JSON in the message.
func ExampleOptions_json() {
	say(syslog.Options{Attrs: syslog.AttrsJSON})
	// Output:
	// <134>1 2026-03-04T05:06:07.089000Z web-1 shop 42 - - @cee:{"msg":"order paid","level":"INFO","service":"checkout","order":8731,"by":"A. B."}
	// <131>1 2026-03-04T05:06:07.089000Z web-1 shop 42 - - @cee:{"msg":"lost\tconnection","level":"ERROR","service":"checkout","db":{"host":"db-1","tries":3}}
}

// For receivers that show the message only.
func ExampleOptions_text() {
	say(syslog.Options{Attrs: syslog.AttrsText, MsgID: "orders", Facility: syslog.Daemon})
	// Output:
	// <30>1 2026-03-04T05:06:07.089000Z web-1 shop 42 orders - order paid service=checkout order=8731 by="A. B."
	// <27>1 2026-03-04T05:06:07.089000Z web-1 shop 42 orders - lost\tconnection service=checkout db.host=db-1 db.tries=3
}

// What syslog-ng's network() source takes, which knows no octet counting.
func ExampleOptions_newline() {
	say(syslog.Options{Framing: syslog.Newline, SDID: "shop@32473"})
	// Output:
	// <134>1 2026-03-04T05:06:07.089000Z web-1 shop 42 - [shop@32473 service="checkout" order="8731" by="A. B."] order paid
	// <131>1 2026-03-04T05:06:07.089000Z web-1 shop 42 - [shop@32473 service="checkout" db.host="db-1" db.tries="3"] lost\tconnection
}

// RFC 3164 for old receivers. Its time is local, without a year and a zone, and it has no structured data.
func ExampleFormat() {
	receiver := listen("udp", "", syslogd.Options{})
	defer receiver.Close()

	h, err := syslog.NewHandler("udp://"+receiver.Addr(), &syslog.Options{
		Format: syslog.RFC3164, Hostname: "web-1", AppName: "shop", ProcID: "42", Sequence: true,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	slog.New(h).Info("order paid", "order", 8731)
	if err := h.Close(); err != nil {
		fmt.Println(err)
	}
	for _, m := range received(receiver, 1) {
		fmt.Println(m.Format, m.Hostname, m.AppName, m.ProcID)
	}
	// Output: rfc3164 web-1 shop 42
}

// Sequence makes gaps visible; AppendIP and Origin keep this host's address behind relays.
func ExampleOptions_sequence() {
	receiver := listen("tcp", "", syslogd.Options{})
	defer receiver.Close()

	h, err := syslog.NewHandler("tcp://"+receiver.Addr(), &syslog.Options{Sequence: true, Origin: true, AppendIP: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	log := slog.New(h)
	log.Info("one")
	log.Info("two")
	if err := h.Close(); err != nil {
		fmt.Println(err)
	}
	for _, m := range received(receiver, 2) {
		number, _ := m.Param("meta", "sequenceId")
		run, _ := m.Param("attrs@32473", "run") // the same in all messages of a handler
		fmt.Println(m.Text, number, len(run))
	}
	// Output:
	// one 1 16
	// two 2 16
}
