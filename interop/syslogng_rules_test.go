//go:build linux

package interop

import (
	"fmt"
	"log/slog"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wholelog/wholelog/syslog"
)

// ng is a source of syslog-ng that rules are tried with.
type ng struct {
	*syslogNG
	source string
	bsd    bool // it reads RFC 3164
}

// log sends a record with a handler of its own, and returns what syslog-ng made of it.
func (n ng) log(t *testing.T, o syslog.Options, r slog.Record, attrs ...any) parsed {
	t.Helper()
	if o.Hostname == "" {
		o.Hostname = "host.example"
	}
	h := n.open(t, n.source, o)
	r.Add(attrs...)
	if err := h.Handle(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	return n.next(t, 1)[0]
}

// text is a record with a text alone.
func text(s string) slog.Record { return slog.NewRecord(time.Now(), slog.LevelInfo, s, 0) }

// Where the RFCs have a rule that a record or an option could break, syslog-ng reads what was meant, and never says that it could not
// process a message.
func TestR09_R29_R30_R31_R32_R80_SyslogNGRules(t *testing.T) {
	t.Parallel()
	s := startSyslogNG(t)
	for _, source := range []string{"syslog_tcp", "syslog_udp", "network_5424"} {
		n := ng{s, source, false}
		t.Run(source, func(t *testing.T) {
			t.Run("PRI", n.pri)
			t.Run("TIMESTAMP", n.timestamp)
			t.Run("header", n.header)
			t.Run("SD-NAME", n.names)
			t.Run("PARAM-VALUE", n.values)
			t.Run("elements", n.elements)
			t.Run("MSG", n.msg)
			t.Run("size", n.size)
		})
	}
	for _, source := range []string{"network_tcp", "network_udp"} {
		n := ng{s, source, true}
		t.Run(source, func(t *testing.T) {
			t.Run("PRI", n.pri)
			t.Run("TAG", n.tag)
			t.Run("MSG", n.msg)
			t.Run("size", n.size)
		})
	}
}

// RFC 5424, section 6.2.1.
func (n ng) pri(t *testing.T) {
	for level, severity := range map[slog.Level]int{-8: 7, -4: 7, 0: 6, 2: 5, 4: 4, 8: 3, 12: 2, 16: 1, 20: 0} {
		for facility, code := range map[syslog.Facility]int{syslog.Kern: 0, syslog.Local0: 16, syslog.Local7: 23} {
			m := n.log(t, syslog.Options{Facility: facility, Level: level}, slog.NewRecord(time.Now(), level, "x", 0))
			if m.PRI != strconv.Itoa(8*code+severity) || m.Host != "host.example" || m.Msg != "x" {
				t.Errorf("%v, level %d: %+v", facility, level, m)
			}
		}
	}
}

// RFC 5424, section 6.2.3.
func (n ng) timestamp(t *testing.T) {
	for in, want := range map[string]string{
		"2026-03-01T12:30:45Z":                "2026-03-01T12:30:45.000000+00:00",
		"2026-03-01T12:30:45.999999999Z":      "2026-03-01T12:30:45.999999+00:00",
		"2026-03-01T12:30:45.000000001+05:30": "2026-03-01T12:30:45.000000+05:30",
		"2024-02-29T23:59:59.1-03:30":         "2024-02-29T23:59:59.100000-03:30",
		"2038-01-19T03:14:08.000001+14:00":    "2038-01-19T03:14:08.000001+14:00",
		"1999-12-31T23:59:59.5-12:00":         "1999-12-31T23:59:59.500000-12:00",
	} {
		at, err := time.Parse(time.RFC3339Nano, in)
		if err != nil {
			t.Fatal(err)
		}
		if m := n.log(t, syslog.Options{}, slog.NewRecord(at, slog.LevelInfo, "x", 0)); m.Time != want {
			t.Errorf("%s: %s", in, m.Time)
		}
	}
}

// RFC 5424, sections 6.2.4 to 6.2.7: the limits of the fields, and the characters in them.
func (n ng) header(t *testing.T) {
	long := strings.Repeat("0123456789", 30)
	for _, x := range []struct{ set, want syslog.Options }{
		{
			syslog.Options{Hostname: long, AppName: long, ProcID: long, MsgID: long},
			syslog.Options{Hostname: long[:255], AppName: long[:48], ProcID: long[:128], MsgID: long[:32]},
		},
		{
			syslog.Options{Hostname: "größe host", AppName: "[app]: 1", ProcID: "a\tb", MsgID: "\"]\n\x00"},
			syslog.Options{Hostname: "gr__e_host", AppName: "[app]:_1", ProcID: "a_b", MsgID: "\"]__"},
		},
		{
			syslog.Options{Hostname: "2001:db8::1", AppName: "<13>1", ProcID: "0"},
			syslog.Options{Hostname: "2001:db8::1", AppName: "<13>1", ProcID: "0"},
		},
	} {
		m := n.log(t, x.set, text("x"))
		if got := (syslog.Options{Hostname: m.Host, AppName: m.App, ProcID: m.ProcID, MsgID: m.MsgID}); got.String() != x.want.String() || m.Msg != "x" {
			t.Errorf("%v:\n got %v, text %q\nwant %v", x.set, got, m.Msg, x.want)
		}
	}
}

// RFC 5424, sections 6.3.2 and 6.3.3. syslog-ng takes dots in names for levels, but keeps what stands between them.
func (n ng) names(t *testing.T) {
	for name, want := range map[string]string{
		"plain":                  "plain",
		`a=b]c"d e`:              "a_b_c_d_e",
		"größe":                  "gr__e",
		"\n\x00\x7f":             "___",
		"":                       "_",
		strings.Repeat("x", 99):  strings.Repeat("x", 32),
		"\\":                     "\\",
		"[":                      "[",
		"a.b":                    "a.b",
		strings.Repeat("é", 40):  strings.Repeat("_", 32),
		"@cee:":                  "@cee:",
		"a/b,c;d'e`f$g{h}i(j)k*": "a/b,c;d'e`f$g{h}i(j)k*",
	} {
		m := n.log(t, syslog.Options{SDID: "audit@32473.1"}, text("x"), name, "value")
		if got := m.params(); len(got) != 1 || got["audit@32473.1."+want] != "value" || m.Msg != "x" {
			t.Errorf("%q: %q, text %q in %q", name, got, m.Msg, m.SD)
		}
	}
}

// RFC 5424, section 6.3.3.
func (n ng) values(t *testing.T) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for _, s := range []string{
		`"`, `\`, `]`, `\]`, `\\`, `"]`, `] x="y"`, `]]`, `[`, `\n`, "a\\\nb", "", " ", "ends in \\", string(all), "\ufeff\ufeff", "€\u2029\u0085",
		strings.Repeat("]", 3000),
	} {
		m := n.log(t, syslog.Options{MaxSize: 8192}, text("x"), "before", "1", "k", s, "behind", "2")
		got := m.params()
		if got["attrs@32473.k"] != oneLine(s) || got["attrs@32473.before"] != "1" || got["attrs@32473.behind"] != "2" || len(got) != 3 || m.Msg != "x" {
			t.Errorf("%q: %q, text %q", s, got, m.Msg)
		}
	}
}

// RFC 5424, sections 6.3.1 and 7: elements stand back to back, each once. In one, the last parameter of a name counts for syslog-ng.
func (n ng) elements(t *testing.T) {
	h := n.open(t, n.source, syslog.Options{Sequence: true, Origin: true, AppendIP: true, Hostname: "host.example"})
	log := slog.New(h)
	log.Info("x")
	log.Info("x", "k", 1, "k", 2)
	log.WithGroup("meta").Info("x", "sequenceId", 7)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	for i, m := range n.next(t, 3) {
		got := m.params()
		host, ip, _ := strings.Cut(m.Host, ",")
		if _, err := netip.ParseAddr(ip); ip != "" && err != nil || host != "host.example" || got["origin.ip"] != ip || m.Msg != "x" {
			t.Errorf("%d: %+v", i, m)
		}
		if got["meta.sequenceId"] != strconv.Itoa(i+1) || len(got["attrs@32473.run"]) != 16 {
			t.Errorf("%d: %q", i, got)
		}
		if i == 1 && got["attrs@32473.k"] != "2" || i == 2 && got["attrs@32473.meta.sequenceId"] != "7" {
			t.Errorf("%d: %q", i, got)
		}
	}
}

// RFC 5424, section 6.4, and RFC 6587, section 3.4: whatever a text looks like, it stays a text.
func (n ng) msg(t *testing.T) {
	for _, s := range []string{
		"12 angry men", "0", "5 <13>1 - - - - - - x", "<13>", "- - -", "[a@1 b=\"c\"] x", "@cee: {}", "a: b[1]: c", "Mar  1 12:30:45 host app: x",
		"a\nb", "a\r\n", "\x00", "a\x00b", "\x7f\x1b[0m", "trailing\n\n", "größe 日本 🙂", "\xff\xc3", strings.Repeat("\n", 600),
		"", " ", "  leading", "trailing  ", "x\ufeff", ": x", "[7]: x",
	} {
		if m := n.log(t, syslog.Options{MaxSize: 8192}, text(s)); m.Msg != oneLine(s) {
			t.Errorf("%q: %q", s, m.Msg)
		}
		if !n.bsd {
			if m := n.log(t, syslog.Options{MaxSize: 8192, BOM: true}, text(s)); m.Msg != oneLine(s) {
				t.Errorf("with a byte order mark, %q: %q", s, m.Msg)
			}
		}
	}
	want := `\ufeffx` // as it is, it would be taken for the byte order mark of MSG, and away
	if n.bsd {
		want = "\ufeffx"
	}
	if m := n.log(t, syslog.Options{}, text("\ufeffx")); m.Msg != want {
		t.Errorf("%q", m.Msg)
	}
}

// RFC 5424, sections 6.1 and 8.1: every size up to what syslog-ng takes arrives whole, and what is longer is cut between characters
// and says so.
func (n ng) size(t *testing.T) {
	const most = 65000 // syslog-ng takes 65536 bytes, and a datagram holds 65507
	for _, size := range []int{480, 1432, 8192, most} {
		for _, s := range []string{strings.Repeat("x", 2*size), strings.Repeat("日本🙂", size/4), "\n" + strings.Repeat("€", size)} {
			m := n.log(t, syslog.Options{MaxSize: size, AppName: "app", ProcID: "7"}, text(s), "k", "v")
			kept, mark, ok := strings.Cut(m.Msg, "…[truncated ")
			var cut int
			_, err := fmt.Sscanf(mark, "%d bytes]", &cut)
			whole, found := strings.CutPrefix(oneLine(s), kept)
			if !ok || err != nil || !found || len(whole) != cut || len(kept) < size-220 {
				t.Errorf("%d: %.40q…, %d bytes, says %q", size, kept, len(kept), mark)
			}
		}
		s := strings.Repeat("日", (size-200)/3)
		if m := n.log(t, syslog.Options{MaxSize: size, AppName: "app", ProcID: "7"}, text(s)); m.Msg != s {
			t.Errorf("%d: %d bytes of %d", size, len(m.Msg), len(s))
		}
	}
}

// RFC 3164, sections 4.1.2 and 4.1.3: the time of the host, in seconds; no domain; a TAG that ends where it should.
func (n ng) tag(t *testing.T) {
	long := strings.Repeat("0123456789", 30)
	for _, x := range []struct{ set, want syslog.Options }{
		{syslog.Options{Hostname: "h", AppName: long, ProcID: "7"}, syslog.Options{Hostname: "h", AppName: long[:32], ProcID: "7"}},
		{syslog.Options{Hostname: "größe h", AppName: "[a]: b/c", ProcID: "[7]: x"}, syslog.Options{Hostname: "gr__e_h", AppName: "_a___b/c", ProcID: "_7___x"}},
		{syslog.Options{Hostname: "192.0.2.1", AppName: "a-b_c.d", ProcID: "-"}, syslog.Options{Hostname: "192.0.2.1", AppName: "a-b_c.d"}},
	} {
		at := time.Now()
		m := n.log(t, x.set, slog.NewRecord(at, slog.LevelInfo, "x", 0), "k", "v w")
		if got := (syslog.Options{Hostname: m.Host, AppName: m.App, ProcID: m.ProcID}); got.String() != x.want.String() || m.Msg != `x k="v w"` {
			t.Errorf("%v:\n got %v, text %q\nwant %v", x.set, got, m.Msg, x.want)
		}
		if got, err := time.Parse(time.RFC3339, m.Time); err != nil || !got.Equal(at.Truncate(time.Second)) {
			t.Errorf("%v: %v, %v", at, m.Time, err)
		}
	}
}
