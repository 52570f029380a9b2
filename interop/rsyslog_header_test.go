//go:build linux

package interop

import (
	"cmp"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/wholelog/wholelog/internal/fake/authority"
	"github.com/wholelog/wholelog/syslog"
)

// Section 6.2.1: every facility with every severity.
func TestR31_R32_RsyslogPRI(t *testing.T) {
	r := startRsyslog(t)
	levels := []slog.Level{20, 16, 12, slog.LevelError, slog.LevelWarn, 2, slog.LevelInfo, slog.LevelDebug}
	for facility := syslog.Kern; facility <= syslog.Local7; facility++ {
		h, _ := newSyslog(t, "tcp://127.0.0.1:"+r.tcp, syslog.Options{Facility: facility, Level: slog.LevelDebug})
		for severity, level := range levels {
			logAt(t, h, level, strconv.Itoa(severity))
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		for severity, m := range r.messages(t, len(levels)) {
			want := strconv.Itoa(8*int(facility-syslog.Kern) + severity)
			if m.PRI != want || m.Msg != strconv.Itoa(severity) || !strings.HasPrefix(m.Raw, "<"+want+">1 ") {
				t.Errorf("%v, severity %d: %+v", facility, severity, m)
			}
		}
	}
}

// Section 6.2.3: six digits at most, any zone, and the instant that was logged.
func TestR02_R80_RsyslogTimestamps(t *testing.T) {
	r := startRsyslog(t)
	w := way{target: "tcp://127.0.0.1:" + r.tcp}
	zone := func(name string, seconds int) *time.Location { return time.FixedZone(name, seconds) }
	for _, tt := range []struct {
		at   time.Time
		want string
	}{
		{time.Date(2026, 3, 1, 12, 30, 45, 0, time.UTC), "2026-03-01T12:30:45.000000Z"},
		{time.Date(2026, 3, 1, 12, 30, 45, 1000, time.UTC), "2026-03-01T12:30:45.000001Z"},
		{time.Date(2026, 3, 1, 12, 30, 45, 999_999_999, time.UTC), "2026-03-01T12:30:45.999999Z"},
		{time.Date(2026, 3, 1, 12, 30, 45, 12_345_678, zone("IST", 5*3600+1800)), "2026-03-01T12:30:45.012345+05:30"},
		{time.Date(2024, 2, 29, 23, 59, 59, 1e8, zone("", -(3*3600+1800))), "2024-02-29T23:59:59.100000-03:30"},
		{time.Date(1999, 12, 31, 23, 59, 59, 5e8, zone("", -12*3600)), "1999-12-31T23:59:59.500000-12:00"},
		{time.Date(2038, 1, 19, 3, 14, 8, 0, zone("", 14*3600)), "2038-01-19T03:14:08.000000+14:00"},
		{time.Date(1970, 1, 1, 0, 0, 0, 0, zone("LMT", 17*60+30)), "1969-12-31T23:42:30.000000Z"}, // a zone with seconds has no form
	} {
		m := w.log(t, r, syslog.Options{}, slog.NewRecord(tt.at, slog.LevelInfo, "x", 0))[0]
		if m.Time != tt.want || !strings.HasPrefix(m.Raw, "<134>1 "+tt.want+" host.example ") {
			t.Errorf("%v: %q, %q", tt.at, m.Time, m.Raw)
		}
	}
}

// What is not said about a sender, the system says: HOSTNAME, APP-NAME and PROCID. Sequence numbers, the run, the address as an element
// and behind the name stand where the RFC wants them.
func TestR30_RsyslogElements(t *testing.T) {
	r := startRsyslog(t)
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	ip := ownAddress(t)
	origin, behind := "", ""
	if ip != "" {
		origin, behind = `\[origin ip="`+regexp.QuoteMeta(ip)+`"\]`, ","+ip
	}
	h, _ := newSyslog(t, "tcp://127.0.0.1:"+r.tcp, syslog.Options{Sequence: true, Origin: true, AppendIP: true})
	const records = 120
	for i := range records {
		logAt(t, h, slog.LevelInfo, "x", slog.Int("i", i))
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	runs := map[string]bool{}
	for i, m := range r.messages(t, records) {
		sd := regexp.MustCompile(fmt.Sprintf(`^\[meta sequenceId="%d"\]%s\[attrs@32473 run="[0-9a-f]{16}" i="%d"\]$`, i+1, origin, i))
		values := m.Parsed.SD["attrs@32473"]
		runs[values["run"]] = true
		if !sd.MatchString(m.SD) || m.Parsed.SD["meta"]["sequenceId"] != strconv.Itoa(i+1) || m.Parsed.SD["origin"]["ip"] != ip || values["i"] != strconv.Itoa(i) {
			t.Errorf("%d: %s, %v", i, m.SD, m.Parsed.SD)
		}
		if m.Host != host+behind || m.App != filepath.Base(os.Args[0]) || m.ProcID != strconv.Itoa(os.Getpid()) || m.MsgID != "-" {
			t.Errorf("%d: %+v", i, m)
		}
	}
	if len(runs) != 1 {
		t.Errorf("one run of the program has the names %v", runs)
	}
}

// ownAddress is the first address of this host that others may know it by, IPv4 first; "" when there is none.
func ownAddress(t *testing.T) (first string) {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, v4 := range []bool{true, false} {
		for _, a := range all {
			p, err := netip.ParsePrefix(a.String())
			if err == nil && p.Addr().IsGlobalUnicast() && p.Addr().Is4() == v4 {
				return p.Addr().String()
			}
		}
	}
	return ""
}

// RFC 3164, section 4.1: local time, its day padded with a space, a TAG of 32 characters at most that nothing ends too early, and the
// number of the process. What has no place there stands in the text.
func TestR28_R31_RsyslogRFC3164(t *testing.T) {
	ca := authority.New(t)
	r := startRsyslogTLS(t, ca, ca.Issue(time.Hour, "localhost"))
	year := time.Now().Year() // rsyslog adds its own, and takes what is far in the future for last year's
	day := func(month time.Month, d int) time.Time { return time.Date(year, month, d, 2, 3, 4, 999e6, time.Local) }
	for _, w := range r.ways(ca) {
		t.Run(w.name, func(t *testing.T) {
			for _, tt := range []struct {
				o                            syslog.Options
				at                           time.Time
				text                         string
				raw                          string
				pri, host, app, procID, msgs string
			}{
				{syslog.Options{}, day(1, 1), "x", "<134>Jan  1 02:03:04 host.example app[7]: x", "134", "host.example", "app", "7", "x"},
				{syslog.Options{}, day(1, 11), "x", "<134>Jan 11 02:03:04 host.example app[7]: x", "134", "host.example", "app", "7", "x"},
				{syslog.Options{Facility: syslog.Kern}, day(1, 9), "", "<6>Jan  9 02:03:04 host.example app[7]: ", "6", "host.example", "app", "7", ""},
				{syslog.Options{ProcID: "-"}, day(1, 9), "x", "<134>Jan  9 02:03:04 host.example app: x", "134", "host.example", "app", "-", "x"},
				{
					syslog.Options{AppName: "a b:c[d]" + strings.Repeat("e", 40), ProcID: "1]: 2"},
					day(1, 9), "12 angry\nmen\x00",
					"<134>Jan  9 02:03:04 host.example a_b_c_d_" + strings.Repeat("e", 24) + `[1___2]: 12 angry\nmen\x00`,
					"134", "host.example", "a_b_c_d_" + strings.Repeat("e", 24), "1___2", `12 angry\nmen\x00`,
				},
			} {
				tt.o.Format = syslog.RFC3164
				m := w.log(t, r, tt.o, slog.NewRecord(tt.at, slog.LevelInfo, tt.text, 0))[0]
				at, err := time.Parse(time.RFC3339, m.Time)
				if err != nil || !at.Equal(tt.at.Truncate(time.Second)) {
					t.Errorf("%v: %s, %v", tt.at, m.Time, err)
				}
				if m.Raw != tt.raw || m.PRI != tt.pri || m.Host != tt.host || m.App != tt.app || m.ProcID != tt.procID || strings.TrimPrefix(m.Msg, " ") != tt.msgs {
					t.Errorf("%+v, want %q", m, tt.raw)
				}
			}
		})
	}
}

// Left to itself rsyslog expects on a local socket what the C library sends: RFC 3164 without a HOSTNAME. So that is what RFC 3164 is
// there, unless a name is asked for.
func TestRsyslogLocalSocket(t *testing.T) {
	r := startRsyslog(t)
	h, _ := newSyslog(t, "unix://"+r.path("bare"), syslog.Options{Format: syslog.RFC3164, AppName: "app", ProcID: "7", Facility: syslog.Daemon})
	logAt(t, h, slog.LevelWarn, "two words: three", slog.String("k", "v 2"))
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	for _, m := range r.messages(t, 1) {
		if m.PRI != "28" || m.App != "app" || m.ProcID != "7" || m.Msg != ` two words: three k="v 2"` {
			t.Errorf("%+v", m)
		}
	}
}

// Section 8.3, RFC 5425, section 4.3.1, RFC 5426, section 3.2: a text that is too long is cut between two characters and says how much is
// missing, and the next message is whole. The default is what rsyslog takes by default, to the byte.
func TestR19_R20_RsyslogMaxSize(t *testing.T) {
	ca := authority.New(t)
	r := startRsyslogTLS(t, ca, ca.Issue(time.Hour, "localhost"))
	for _, w := range r.ways(ca) {
		t.Run(w.name, func(t *testing.T) {
			for _, size := range []int{0, 480, 481, 482, 483, 1432, 8191, 8192} {
				most := cmp.Or(size, w.o.MaxSize, 8192)
				var texts []string
				var records []slog.Record
				for _, char := range []string{"x", "ß", "€", "🙂"} {
					texts = append(texts, strings.Repeat(char, 9000/len(char)))
					records = append(records, recordOf(texts[len(texts)-1], "k", "v"))
				}
				for i, m := range w.log(t, r, syslog.Options{MaxSize: size}, append(records, recordOf("whole", "k", "v"))...) {
					if i == len(texts) {
						if m.Msg != "whole" {
							t.Errorf("behind what was cut: %+v", m)
						}
						break
					}
					kept, mark, _ := strings.Cut(m.Msg, "…[truncated ")
					if !strings.HasPrefix(texts[i], kept) || !utf8.ValidString(kept) || mark != fmt.Sprintf("%d bytes]", len(texts[i])-len(kept)) {
						t.Errorf("%d bytes of %.4s: %d are kept, then %q", most, texts[i], len(kept), mark)
					}
					// The mark's room is that of the longest number.
					if least := most - len("18446744073709551615") - utf8.UTFMax; len(m.Raw) > most || len(m.Raw) < least || m.Parsed.SD["attrs@32473"]["k"] != "v" {
						t.Errorf("%d bytes of %.4s: %d arrive, %v", most, texts[i], len(m.Raw), m.Parsed.SD)
					}
				}
			}
		})
	}
}
