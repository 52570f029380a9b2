//go:build linux

package interop

import (
	"crypto/tls"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/wholelog/wholelog/internal/fake/authority"
	"github.com/wholelog/wholelog/syslog"
)

// way is a transport with its framing.
type way struct {
	name, target string
	o            syslog.Options
}

// ways are all that lead to a receiver that has a certificate for localhost.
func (r *rsyslog) ways(a *authority.Authority) []way {
	trust := &tls.Config{RootCAs: a.Pool()}
	return []way{
		{"udp", "udp://127.0.0.1:" + r.udp, syslog.Options{MaxSize: 8192}},
		{"tcp", "tcp://127.0.0.1:" + r.tcp, syslog.Options{}},
		{"tcp newline", "tcp://127.0.0.1:" + r.tcp, syslog.Options{Framing: syslog.Newline}},
		{"tls", "tls://localhost:" + r.tls, syslog.Options{TLSConfig: trust}},
		{"tls newline", "tls://localhost:" + r.tls, syslog.Options{TLSConfig: trust, Framing: syslog.Newline}},
		{"unix datagram", "unix://" + r.path("datagram"), syslog.Options{}},
		{"unix stream", "unix://" + r.path("stream"), syslog.Options{}},
		{"unix stream counted", "unix://" + r.path("stream"), syslog.Options{Framing: syslog.OctetCounting}},
	}
}

// Whatever the transport, the framing, the format and the form of the attributes: rsyslog finds every field where it belongs, splits no
// message, escapes nothing itself because nothing is left to escape, and what it takes out of a message are the very values that were
// logged.
func TestR25_R26_R28_R29_R83_Rsyslog(t *testing.T) {
	ca := authority.New(t)
	r := startRsyslogTLS(t, ca, ca.Issue(time.Hour, "localhost"))
	for _, w := range r.ways(ca) {
		for _, form := range []struct {
			format syslog.Format
			attrs  syslog.Attrs
			judge  func(received, [2]string, int) string
		}{
			{syslog.RFC5424, syslog.AttrsStructured, judgeStructured},
			{syslog.RFC5424, syslog.AttrsJSON, judgeJSON},
			{syslog.RFC5424, syslog.AttrsText, judgeText},
			{syslog.RFC3164, syslog.AttrsJSON, judgeJSON},
			{syslog.RFC3164, syslog.AttrsText, judgeText},
		} {
			t.Run(fmt.Sprintf("%s %v %v", w.name, form.format, form.attrs), func(t *testing.T) {
				o := w.o
				o.Format, o.Attrs = form.format, form.attrs
				version, msgID := "1", "id"
				if o.Format == syslog.RFC3164 {
					version, msgID = "0", "-"
				}
				n := logHostile(t, w.target, o)
				for i, m := range r.messages(t, n) {
					if m.PRI != "134" || m.Version != version || m.Host != "host.example" || m.App != "app" || m.ProcID != "7" || m.MsgID != msgID {
						t.Errorf("%d: %+v", i, m)
					}
					if at, err := time.Parse(time.RFC3339Nano, m.Time); err != nil || time.Since(at).Abs() > time.Hour {
						t.Errorf("%d: %q, %v", i, m.Time, err)
					}
					if o.Format == syslog.RFC3164 { // the space behind the colon of the TAG counts as text for rsyslog
						m.Msg = strings.TrimPrefix(m.Msg, " ")
					}
					if bad := form.judge(m, hostile()[i], i); bad != "" {
						t.Errorf("%d: %s: %q", i, bad, m.Raw)
					}
				}
			})
		}
	}
}

// oneLine is how a text is to arrive: on one line, without a control character, and otherwise as it was.
func oneLine(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		i += size
		switch {
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r >= 0x80 && r < 0xa0 || r == '\u2028' || r == '\u2029':
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r) // of invalid bytes each is U+FFFD
		}
	}
	return b.String()
}

// inJSON is how a text is to arrive in a document: U+FFFD for each byte that is not valid, and NULs, at which rsyslog's JSON ends a
// text, by their number.
func inJSON(s string) string { return strings.ReplaceAll(string([]rune(s)), "\x00", `\x00`) }

// quoted is a PARAM-VALUE.
func quoted(s string) string {
	return `"` + strings.NewReplacer(`"`, `\"`, `\`, `\\`, `]`, `\]`).Replace(s) + `"`
}

// judgeStructured says what is wrong with the i-th hostile record, which has its attributes as structured data; "": nothing.
func judgeStructured(m received, x [2]string, i int) string {
	params := [][2]string{
		{"a_b_c__", "1"},
		{"g.k", oneLine(x[1])},
		{"g.i", strconv.Itoa(i)},
		{"g.f", "+Inf"},
		{"g.gr__e", "true"},
		{strings.Repeat("n", 32), "1"},
		{"g.m", `{"x]":[1]}`},
		{"g.d", "1000000000"},
	}
	whole, values := "[attrs@32473", map[string]string{}
	for _, p := range params {
		whole += " " + p[0] + "=" + quoted(p[1])
		values[p[0]] = p[1]
	}
	switch {
	case m.SD != whole+"]":
		return "STRUCTURED-DATA is " + m.SD
	case !reflect.DeepEqual(m.Parsed.SD, map[string]map[string]string{"attrs@32473": values}):
		return fmt.Sprintf("the values are %q", m.Parsed.SD)
	case m.Msg != oneLine(x[0]):
		return "MSG is " + m.Msg
	}
	return ""
}

// judgeJSON is judgeStructured for the document behind @cee:.
func judgeJSON(m received, x [2]string, i int) string {
	want := map[string]any{
		"msg": inJSON(x[0]), "level": "INFO", `a b=c]"`: 1.0,
		"g": map[string]any{
			"k": inJSON(x[1]), "i": float64(i), "f": "+Inf", "größe": true, strings.Repeat("n", 40): 1.0,
			"m": map[string]any{"x]": []any{1.0}}, "d": 1e9,
		},
	}
	switch {
	case m.SD != "-":
		return "STRUCTURED-DATA is " + m.SD
	case !reflect.DeepEqual(m.Parsed.CEE, want):
		return fmt.Sprintf("the document is %q, want %q", m.Parsed.CEE, want)
	}
	return ""
}

// judgeText is judgeStructured for attributes behind the text.
func judgeText(m received, x [2]string, i int) string {
	want := [][2]string{
		{`a b=c]"`, "1"},
		{"g.k", x[1]},
		{"g.i", strconv.Itoa(i)},
		{"g.f", "+Inf"},
		{"g.größe", "true"},
		{"g." + strings.Repeat("n", 40), "1"},
		{"g.m", `{"x]":[1]}`},
		{"g.d", "1000000000"},
	}
	rest, ok := strings.CutPrefix(m.Msg, oneLine(x[0]))
	switch got := pairs(rest); {
	case m.SD != "-":
		return "STRUCTURED-DATA is " + m.SD
	case !ok:
		return "MSG is " + m.Msg
	case !reflect.DeepEqual(got, want):
		return fmt.Sprintf("the attributes are %q, want %q", got, want)
	}
	return ""
}

// pairs reads ` k=v k2="v 2"`, names and values quoted where slog quotes them.
func pairs(s string) (out [][2]string) {
	word := func(end string) string {
		if q, err := strconv.QuotedPrefix(s); err == nil {
			s = s[len(q):]
			text, _ := strconv.Unquote(q) // it is a quoted string
			return text
		}
		n := len(s)
		if i := strings.Index(s, end); i >= 0 {
			n = i
		}
		text := s[:n]
		s = s[n:]
		return text
	}
	for strings.HasPrefix(s, " ") {
		s = s[1:]
		name := word("=")
		s = strings.TrimPrefix(s, "=")
		out = append(out, [2]string{name, word(" ")})
	}
	if s != "" {
		out = append(out, [2]string{"left over", s})
	}
	return out
}
