//go:build linux

package interop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"net"
	"os"
	"path/filepath"
	"strconv"
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
	o.Hostname, o.AppName, o.ProcID, o.MsgID = "host.example", "app", "7", "id"
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

// received is a message as rsyslog understood it.
type received struct{ PRI, Time, Host, App, ProcID, MsgID, SD, Msg string }

// rsyslog is a running rsyslogd.
type rsyslog struct {
	dir, udp, tcp string
}

func startRsyslog(t *testing.T) *rsyslog {
	t.Helper()
	path := find(t, "rsyslogd")
	version(t, path, "-v")
	r := &rsyslog{dir: workDir(t), udp: strconv.Itoa(freePort(t)), tcp: strconv.Itoa(freePort(t))}
	cmd := command(r.dir, path, "-n", "-f", script(t, r.dir, "rsyslog.conf"), "-i", filepath.Join(r.dir, "pid"))
	cmd.Env = append(cmd.Env, "RX_WORK="+r.dir, "RX_UDP="+r.udp, "RX_TCP="+r.tcp)
	p := run(t, cmd)
	until(t, "rsyslogd listens", func() bool {
		select {
		case <-p.exited:
			t.Fatalf("rsyslogd has ended: %v", p.err)
		default:
		}
		c, err := net.Dial("tcp", "127.0.0.1:"+r.tcp)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return r
}

// messages waits for n messages.
func (r *rsyslog) messages(t *testing.T, n int) (all []received) {
	t.Helper()
	var text []byte
	until(t, fmt.Sprint(n, " messages"), func() bool {
		text, _ = os.ReadFile(filepath.Join(r.dir, "messages"))
		return bytes.Count(text, []byte{'\n'}) >= n
	})
	for line := range bytes.Lines(text) {
		var m received
		if err := json.Unmarshal(line, &m); err != nil {
			t.Errorf("%v: %q", err, line)
		}
		all = append(all, m)
	}
	if len(all) != n {
		t.Errorf("%d messages, want %d", len(all), n)
	}
	return all
}

// rsyslog finds every field of every message where it belongs, whatever the transport and the framing, and splits none.
func TestR25_R26_R28_R29_R83_Rsyslog(t *testing.T) {
	for name, x := range map[string]struct {
		scheme string
		o      syslog.Options
	}{
		"udp":            {"udp", syslog.Options{}},
		"octet counting": {"tcp", syslog.Options{}},
		"newline":        {"tcp", syslog.Options{Framing: syslog.Newline}},
		"json":           {"tcp", syslog.Options{Attrs: syslog.AttrsJSON}},
	} {
		t.Run(name, func(t *testing.T) {
			r := startRsyslog(t)
			port := map[string]string{"udp": r.udp, "tcp": r.tcp}[x.scheme]
			x.o.MaxSize = 8192
			n := logHostile(t, x.scheme+"://127.0.0.1:"+port, x.o)
			for i, m := range r.messages(t, n) {
				if m.PRI != "134" || m.Host != "host.example" || m.App != "app" || m.ProcID != "7" || m.MsgID != "id" {
					t.Errorf("%d: %+v", i, m)
				}
				at, err := time.Parse(time.RFC3339Nano, m.Time)
				if err != nil || time.Since(at).Abs() > time.Hour {
					t.Errorf("%d: %q, %v", i, m.Time, err)
				}
				if doc, ok := strings.CutPrefix(strings.TrimPrefix(m.Msg, " "), "@cee:"); ok && x.o.Attrs == syslog.AttrsJSON {
					var body struct {
						Msg string
						G   struct{ K string }
					}
					want := func(s string) string { return strings.ToValidUTF8(s, "\ufffd") }
					if err := json.Unmarshal([]byte(doc), &body); err != nil || !sameValid(body.Msg, want(hostile()[i][0])) || !sameValid(body.G.K, want(hostile()[i][1])) {
						t.Errorf("%d: %v: %q", i, err, doc)
					}
				} else if x.o.Attrs == syslog.AttrsJSON || !strings.HasPrefix(m.SD, "[attrs@32473 a_b_c__=") {
					t.Errorf("%d: %+v", i, m)
				}
			}
		})
	}
}

// sameValid compares texts whose runs of invalid bytes were replaced one by one, or as one.
func sameValid(a, b string) bool {
	for strings.Contains(a, "\ufffd\ufffd") {
		a = strings.ReplaceAll(a, "\ufffd\ufffd", "\ufffd")
	}
	return a == b
}
