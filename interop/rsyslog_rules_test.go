//go:build linux

package interop

import (
	"cmp"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/wholelog/wholelog/internal/fake/authority"
	"github.com/wholelog/wholelog/syslog"
)

// noon is when most records of these tests are made.
func noon() time.Time { return time.Date(2026, 3, 1, 12, 30, 45, 123456789, time.UTC) }

// log sends records with a handler of their own, and returns what rsyslog made of them. Where the options do not say, the header's
// fields are host.example, app, 7 and id.
func (w way) log(t *testing.T, r *rsyslog, o syslog.Options, records ...slog.Record) []received {
	t.Helper()
	o.Framing, o.TLSConfig = w.o.Framing, w.o.TLSConfig
	o.MaxSize = cmp.Or(o.MaxSize, w.o.MaxSize)
	o.Hostname, o.AppName, o.ProcID = cmp.Or(o.Hostname, "host.example"), cmp.Or(o.AppName, "app"), cmp.Or(o.ProcID, "7")
	if o.Format == syslog.RFC5424 {
		o.MsgID = cmp.Or(o.MsgID, "id")
	}
	h, said := newSyslog(t, w.target, o)
	for _, record := range records {
		if err := h.Handle(t.Context(), record); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Close(); err != nil || len(said.errors) > 0 {
		t.Error(err, said.errors)
	}
	return r.messages(t, len(records))
}

// recordOf is a record of noon.
func recordOf(text string, attrs ...any) slog.Record {
	r := slog.NewRecord(noon(), slog.LevelInfo, text, 0)
	r.Add(attrs...)
	return r
}

// Where the RFCs have a rule that a record or an option could break, what arrives at rsyslog is known to the last byte, and so is what it
// reads out of it. The sections are those of RFC 5424.
func TestR09_R29_R30_R83_RsyslogRules(t *testing.T) {
	ca := authority.New(t)
	r := startRsyslogTLS(t, ca, ca.Issue(time.Hour, "localhost"))
	for _, w := range r.ways(ca) {
		t.Run(w.name, func(t *testing.T) {
			for _, tt := range rules() {
				m := w.log(t, r, tt.o, tt.record)[0]
				want := received{
					PRI: "134", Version: "1", Time: "2026-03-01T12:30:45.123456Z", Host: cmp.Or(tt.host, "host.example"), App: cmp.Or(tt.app, "app"),
					ProcID: cmp.Or(tt.procID, "7"), MsgID: cmp.Or(tt.msgID, "id"), SD: cmp.Or(tt.sd, "-"), Msg: tt.msg, Parsed: m.Parsed,
				}
				want.Raw = fmt.Sprintf("<134>1 2026-03-01T12:30:45.123456Z %s %s %s %s %s %s", want.Host, want.App, want.ProcID, want.MsgID, want.SD, want.Msg)
				want.Parsed.SD = tt.values
				if !reflect.DeepEqual(m, want) {
					t.Errorf("%s:\n got %+v\nwant %+v", tt.what, m, want)
				}
			}
		})
	}
}

// rule is a record that could break one, and what is to arrive.
type rule struct {
	what   string
	o      syslog.Options
	record slog.Record

	host, app, procID, msgID, sd, msg string // "" in a header: what the options say there; in sd: -
	values                            map[string]map[string]string
}

func rules() []rule {
	long := strings.Repeat("0123456789", 30)
	attrs := func(params map[string]string) map[string]map[string]string {
		return map[string]map[string]string{"attrs@32473": params}
	}
	return []rule{
		{what: "nothing but a text", record: recordOf("text"), msg: "text"},
		{what: "6: the space behind STRUCTURED-DATA stands there without a text, too", record: recordOf("")},
		{
			what: "the same behind an element", record: recordOf("", "k", "v"),
			sd: `[attrs@32473 k="v"]`, values: attrs(map[string]string{"k": "v"}),
		},
		{what: "6.2.4 to 6.2.7: NILVALUE", o: syslog.Options{Hostname: "-", AppName: "-", ProcID: "-", MsgID: "-"}, record: recordOf("x"), host: "-", app: "-", procID: "-", msgID: "-", msg: "x"},
		{
			what: "6.2.4 to 6.2.7: the limits of the fields", o: syslog.Options{Hostname: long, AppName: long, ProcID: long, MsgID: long},
			record: recordOf("x"), host: long[:255], app: long[:48], procID: long[:128], msgID: long[:32], msg: "x",
		},
		{
			what: "6: printable ASCII without spaces in the fields", o: syslog.Options{Hostname: "größe host", AppName: "[app]: 1", ProcID: "a\tb", MsgID: "\"]\n\x00"},
			record: recordOf("x"), host: "gr__e_host", app: "[app]:_1", procID: "a_b", msgID: "\"]__", msg: "x",
		},
		{
			what: "6.3.2: names", record: recordOf("x", `a=b]c"d e`, 1, "größe", 2, "", 3, "\n\x00\x7f", 4, long, 5, "a.b", 6, `\`, 7),
			sd: `[attrs@32473 a_b_c_d_e="1" gr__e="2" _="3" ___="4" ` + long[:32] + `="5" a.b="6" \="7"]`, msg: "x",
			values: attrs(map[string]string{"a_b_c_d_e": "1", "gr__e": "2", "_": "3", "___": "4", long[:32]: "5", "a.b": "6", `\`: "7"}),
		},
		{
			what: "6.3.2: the outer groups of a long name go first", record: recordOf("x", slog.Group("outermost", slog.Group("in", slog.Int(long[:28], 1)))),
			sd: `[attrs@32473 in.` + long[:28] + `="1"]`, values: attrs(map[string]string{"in." + long[:28]: "1"}), msg: "x",
		},
		{
			what: "6.3.2: an SD-ID of one's own", o: syslog.Options{SDID: "audit@32473.1"}, record: recordOf("x", "k", "v"),
			sd: `[audit@32473.1 k="v"]`, values: map[string]map[string]string{"audit@32473.1": {"k": "v"}}, msg: "x",
		},
		{
			what: "6.3.3: a name may come again; of such rsyslog's JSON has the last", record: recordOf("x", "k", 1, "k", 2),
			sd: `[attrs@32473 k="1" k="2"]`, values: attrs(map[string]string{"k": "2"}), msg: "x",
		},
		{
			what: "6.3.3: what is escaped in a value, and nothing else", record: recordOf(`"]\`, "k", `"]\[='`, "e", "", "u", "größe 日本 🙂"),
			sd: `[attrs@32473 k="\"\]\\[='" e="" u="größe 日本 🙂"]`, values: attrs(map[string]string{"k": `"]\[='`, "e": "", "u": "größe 日本 🙂"}), msg: `"]\`,
		},
		{
			what: "6.4, 8.2: control characters and line ends", record: recordOf("a\nb\r\n\tc\x00d\x1b[31m\x7f\u0085\u2028", "k", "\n\x00\u2029"),
			sd: `[attrs@32473 k="\\n\\x00\\u2029"]`, values: attrs(map[string]string{"k": `\n\x00\u2029`}), msg: `a\nb\r\n\tc\x00d\x1b[31m\x7f\u0085\u2028`,
		},
		{what: "6.4: the mark in front of UTF-8, where it is asked for", o: syslog.Options{BOM: true}, record: recordOf("größe"), msg: "\uFEFFgröße"},
		{what: "6.4: and only once", o: syslog.Options{BOM: true}, record: recordOf("x", "k", "v"), sd: `[attrs@32473 k="v"]`, values: attrs(map[string]string{"k": "v"}), msg: "\uFEFFx"},
		{what: "a text that begins with a number, as a frame would", record: recordOf("12 angry men"), msg: "12 angry men"},
		{what: "a text that begins as a message would", record: recordOf("<13>1 - - - - - -"), msg: "<13>1 - - - - - -"},
		{what: "a text that begins as structured data would", record: recordOf(`[a@1 k="v"] x`), msg: `[a@1 k="v"] x`},
		{what: "blanks at the ends of a text", record: recordOf(" x "), msg: " x "},
	}
}
