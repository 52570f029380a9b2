//go:build linux

package interop

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wholelog/wholelog/syslog"
)

// Whatever the source and the form, syslog-ng reads the very values that were logged, of records that senders of syslog get wrong, and
// as many messages as there were records.
func TestR25_R26_R27_R28_R29_R83_SyslogNG(t *testing.T) {
	t.Parallel()
	s := startSyslogNG(t)
	for _, x := range []struct {
		source string
		attrs  syslog.Attrs
		judge  func(parsed, [2]string, int) string
	}{
		{"syslog_tcp", syslog.AttrsStructured, ngStructured},
		{"syslog_udp", syslog.AttrsStructured, ngStructured},
		{"syslog_tls", syslog.AttrsStructured, ngStructured},
		{"syslog_tcp", syslog.AttrsJSON, ngJSON},
		{"syslog_tcp", syslog.AttrsText, ngText},
		{"network_tcp", syslog.AttrsText, ngText},
		{"network_udp", syslog.AttrsText, ngText},
		{"network_tcp", syslog.AttrsJSON, ngJSON},
		{"network_5424", syslog.AttrsStructured, ngStructured},
		{"unix_stream", syslog.AttrsStructured, ngStructured},
		{"unix_dgram", syslog.AttrsStructured, ngStructured},
	} {
		t.Run(fmt.Sprint(x.source, " ", x.attrs), func(t *testing.T) {
			target, o := s.profile(x.source, syslog.Options{Attrs: x.attrs, MaxSize: 8192})
			n := logHostile(t, target, o)
			for i, m := range s.next(t, n) {
				if m.Source != x.source || m.PRI != "134" || m.Host != "host.example" || m.App != "app" || m.ProcID != "7" {
					t.Errorf("%d: %+v", i, m)
				}
				if at, err := time.Parse(time.RFC3339Nano, m.Time); err != nil || time.Since(at).Abs() > time.Hour {
					t.Errorf("%d: %q, %v", i, m.Time, err)
				}
				if bad := x.judge(m, hostile()[i], i); bad != "" {
					t.Errorf("%d: %s: %+v", i, bad, m)
				}
			}
		})
	}
}

// ngStructured says what is wrong with the i-th hostile record, which has its attributes as structured data; "": nothing.
func ngStructured(m parsed, x [2]string, i int) string {
	want := map[string]string{
		"a_b_c__": "1", "g.k": oneLine(x[1]), "g.i": strconv.Itoa(i), "g.f": "+Inf", "g.gr__e": "true", strings.Repeat("n", 32): "1",
		"g.m": `{"x]":[1]}`, "g.d": "1000000000",
	}
	got := m.params()
	for name, value := range want {
		if v, ok := got["attrs@32473."+name]; !ok || v != value {
			return fmt.Sprintf("%s is %q, want %q", name, v, value)
		}
	}
	switch {
	case len(got) != len(want):
		return "there are other parameters too"
	case m.MsgID != "id":
		return "MSGID is " + m.MsgID
	case m.Msg != oneLine(x[0]):
		return "MSG is " + m.Msg
	}
	return ""
}

// ngJSON is ngStructured for the document behind @cee:. syslog-ng's own parser of JSON reads the same text in it.
func ngJSON(m parsed, x [2]string, i int) string {
	doc, ok := strings.CutPrefix(m.Msg, "@cee:")
	r := received{SD: "-"}
	if err := json.Unmarshal([]byte(doc), &r.Parsed.CEE); err != nil || !ok {
		return fmt.Sprint("no document: ", err)
	}
	if m.Cee["msg"] != inJSON(x[0]) {
		return fmt.Sprintf("syslog-ng reads %q", m.Cee["msg"])
	}
	return judgeJSON(r, x, i)
}

// ngText is ngStructured for attributes behind the text.
func ngText(m parsed, x [2]string, i int) string {
	return judgeText(received{SD: "-", Msg: m.Msg}, x, i)
}
