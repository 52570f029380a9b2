//go:build linux

package interop

import (
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/leodido/go-syslog/v4/rfc5424"

	"github.com/wholelog/wholelog/internal/fake/syslogd"
	"github.com/wholelog/wholelog/syslog"
)

// hostile are records that senders of syslog get wrong: each has a text and an attribute.
func hostile() [][2]string {
	return [][2]string{
		{"plain", "value"},
		{"12 angry men", `a"b\c]d`},
		{"two\nlines\r\nand more", "\n"},
		{"a\x00b\x1b[31m\x7f", "\t\x00"},
		{"größe 日本 🙂\u2028", "\u0085€"},
		{"\xff\xfe", "\xe2\x82"},
		{"", ""},
		{"[attrs@1 x=\"1\"] looks like structured data", "]"},
		{"@cee:{\"a\":1}", "{"},
		{"<13>1 looks like a header", "<0>"},
		{strings.Repeat("€", 500), strings.Repeat("x]", 100)},
	}
}

// logHostile logs every hostile record, with attributes of all kinds and names that no parameter can have.
func logHostile(t *testing.T, target string, o syslog.Options) int {
	t.Helper()
	o.Hostname, o.AppName, o.ProcID = "host.example", "app", "7"
	if o.Format == syslog.RFC5424 {
		o.MsgID = "id"
	}
	h, err := syslog.NewHandler(target, &o)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(h).With("a b=c]\"", 1).WithGroup("g")
	for i, x := range hostile() {
		log.Info(x[0], "k", x[1], "i", i, "f", math.Inf(1), "größe", true, strings.Repeat("n", 40), 1, "m", map[string]any{"x]": []int{1}}, "d", time.Second)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	return len(hostile())
}

// Another project's strict parser takes everything that the handler sends, in every form, and reads the same out of it as our own.
func TestSyslogStrictParser(t *testing.T) {
	for _, attrs := range []syslog.Attrs{syslog.AttrsStructured, syslog.AttrsJSON, syslog.AttrsText} {
		for _, size := range []int{0, 600} {
			s, err := syslogd.Listen("tcp", "", syslogd.Options{Framing: syslogd.Counted})
			if err != nil {
				t.Fatal(err)
			}
			n := logHostile(t, "tcp://"+s.Addr(), syslog.Options{Attrs: attrs, MaxSize: size, Sequence: true, Origin: true, AppendIP: true})
			until(t, "all messages arrive", func() bool { return s.Stats().Messages == uint64(n) || len(s.Rejects()) > 0 })
			s.Close()
			if r := s.Rejects(); len(r) > 0 {
				t.Error(r)
			}
			for _, m := range s.Messages() {
				parsed, err := rfc5424.NewParser().Parse([]byte(m.Raw))
				if err != nil {
					t.Errorf("%v: %q", err, m.Raw)
					continue
				}
				msg := parsed.(*rfc5424.SyslogMessage)
				text := ""
				if msg.Message != nil {
					text = *msg.Message
				}
				if text != m.Text || int(*msg.Priority) != 134 || *msg.Hostname != m.Hostname || !msg.Timestamp.Equal(m.Time) {
					t.Errorf("read as %q: %q", text, m.Raw)
				}
				for _, e := range m.Elements {
					for _, p := range e.Params {
						if got := (*msg.StructuredData)[e.ID][p.Name]; got != p.Value {
							t.Errorf("%s %s is read as %q: %q", e.ID, p.Name, got, m.Raw)
						}
					}
				}
			}
		}
	}
}
