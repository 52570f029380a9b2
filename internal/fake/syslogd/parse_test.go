package syslogd

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

const header = "<134>1 2026-03-01T12:30:45.123456Z h app 7 id "

func TestParse(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 30, 45, 123456000, time.UTC)
	for _, x := range []struct {
		in   string
		want Message
	}{
		{
			header + "- text",
			Message{Format: "rfc5424", Facility: 16, Severity: 6, Time: at, Hostname: "h", AppName: "app", ProcID: "7", MsgID: "id", Text: "text"},
		},
		{
			`<0>1 2026-03-01T13:30:45+01:00 - - - - [a@1 k="v\"\\\]" k=""][b@1] ` + "\uFEFFtext [x]",
			Message{
				Format: "rfc5424", Time: at.Truncate(time.Second), BOM: true, Text: "text [x]",
				Elements: []Element{{"a@1", []Param{{"k", `v"\]`}, {"k", ""}}}, {ID: "b@1"}},
			},
		},
		{
			"<191>Mar  1 12:30:45 h my-app[7]: text",
			Message{
				Format: "rfc3164", Facility: 23, Severity: 7, Time: time.Date(0, 3, 1, 12, 30, 45, 0, time.Local),
				Hostname: "h", AppName: "my-app", ProcID: "7", Text: "text",
			},
		},
		{
			"<13>Dec 31 23:59:59 h app: ",
			Message{Format: "rfc3164", Facility: 1, Severity: 5, Time: time.Date(0, 12, 31, 23, 59, 59, 0, time.Local), Hostname: "h", AppName: "app"},
		},
		{
			"<13>Dec  1 23:59:59 app[7]: two words: three",
			Message{
				Format: "rfc3164", Facility: 1, Severity: 5, Time: time.Date(0, 12, 1, 23, 59, 59, 0, time.Local),
				AppName: "app", ProcID: "7", Text: "two words: three",
			},
		},
	} {
		got, err := Parse(x.in)
		if err != nil || !got.Time.Equal(x.want.Time) {
			t.Errorf("%s: %v, %v", x.in, got.Time, err)
		}
		x.want.Raw, got.Time, x.want.Time = x.in, time.Time{}, time.Time{}
		if !reflect.DeepEqual(got, x.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", x.in, got, x.want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for in, want := range map[string]Reason{
		"":                                BadPRI,
		"<>1 ":                            BadPRI,
		"134>1 ":                          BadPRI,
		"<134 1 ":                         BadPRI,
		"<0134>1 ":                        BadPRI,
		"<192>1 ":                         BadPRI,
		"<-1>1 ":                          BadPRI,
		"<134> 1 2026":                    BadHeader,
		"<134>text":                       BadHeader,
		"<134>1 - h app 7 id - text":      BadTime,
		"<134>1  h app 7 id - text":       BadHeader,
		"<134>Mar 1 12:30:45 h app: text": BadHeader,
		"<134>Mar 99 12:30:45 h app: x":   BadHeader,
		"<134>Mar 10 12:30:45 ::1 app: x": BadHeader,
		"<134>Mar 10 12:30:45 h- app: x":  BadHeader,
		"<134>Mar 10 12:30:45 - app: x":   BadHeader,
		"<134>Mar 39 12:30:45 h app: x":   BadTime,
		"<134>Mar 10 12:30:45 h app text": BadHeader,
		"<134>1 2026-03-01T12:30:45.1234567Z h app 7 id - text":                        BadTime,
		"<134>1 2026-03-01T12:30:60Z h app 7 id - text":                                BadTime,
		"<134>1 2026-03-01t12:30:45z h app 7 id - text":                                BadTime,
		"<134>1 2026-03-01T12:30:45+0530 h app 7 id - text":                            BadTime,
		"<134>1 2026-03-01T12:30:45Z " + strings.Repeat("h", 256) + " app 7 id - text": BadHeader,
		"<134>1 2026-03-01T12:30:45Z h " + strings.Repeat("a", 49) + " 7 id - text":    BadHeader,
		"<134>1 2026-03-01T12:30:45Z h app " + strings.Repeat("7", 129) + " id - text": BadHeader,
		"<134>1 2026-03-01T12:30:45Z h app 7 " + strings.Repeat("i", 33) + " - text":   BadHeader,
		"<134>1 2026-03-01T12:30:45Z hé app 7 id - text":                               BadHeader,
		header + "text":                                   BadStructure,
		header + "-":                                      BadStructure,
		header + "-text":                                  BadStructure,
		header + "[] text":                                BadStructure,
		header + "[a@1 k=v] text":                         BadStructure,
		header + `[a@1 k="v] text`:                        BadStructure,
		header + `[a@1 k="v"x] text`:                      BadStructure,
		header + `[a@1 k="v]"] text`:                      BadStructure,
		header + `[a@1 k="\n"] text`:                      BadStructure,
		header + `[a@1 k="v`:                              BadStructure,
		header + `[a@1 k="\`:                              BadStructure,
		header + `[a@1  k="v"] text`:                      BadStructure,
		header + `[a@1 k="v"] [b@1 k="v"]`:                "",
		header + `[a@1 k="v"][a@1 k="v"] text`:            BadStructure,
		header + `[a@1 k="v"`:                             BadStructure,
		header + "[" + strings.Repeat("a", 33) + "] text": BadStructure,
		header + "[a@1 k=\"\n\"] text":                    BadText,
		header + "- a\nb":                                 BadText,
		header + "- a\x00b":                               BadText,
		header + "- a\x7fb":                               BadText,
		header + "- a\u2028b":                             BadText,
		header + "- a\xffb":                               BadText,
	} {
		_, err := Parse(in)
		var r *Reject
		if want == "" && err == nil {
			continue // the second element is text
		}
		if !errors.As(err, &r) || r.Reason != want {
			t.Errorf("%q: %v, want %s", in, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(header + `[a@1 k="v\"" l=""][b@1] text`)
	f.Add("<13>Mar  1 12:30:45 h app[7]: text")
	f.Fuzz(func(t *testing.T, s string) {
		m, err := Parse(s)
		if err == nil && (m.Raw != s || !strings.HasSuffix(s, m.Text)) {
			t.Fatalf("%q: %+v", s, m)
		}
	})
}
