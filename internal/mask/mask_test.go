package mask

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"
)

type mode uint8

func (m mode) String() string { return [...]string{"Off", "On"}[m] } // panics beyond 1

type brokenText struct{ A int }

func (brokenText) MarshalText() ([]byte, error) { return nil, errors.New("no text at tcp://u:p@h") }

type inner struct {
	Every time.Duration
	Hook  func()
}

// options has one field of each kind that this module's Options have, and of some that they might get.
type options struct {
	Bool     bool
	Int      int
	Uint     uint16
	Float    float64
	Complex  complex64
	Text     string
	Mode     mode
	Duration time.Duration
	Time     time.Time
	Addr     netip.AddrPort
	Broken   brokenText
	Func     func()
	Iface    io.Writer
	Leveler  slog.Leveler
	TLS      *tls.Config
	Chan     chan int
	Header   http.Header
	Fields   map[string]string
	Numbers  map[int]int
	Names    []string
	Inner    inner
	Inners   []inner
	Array    [2]int
	Token    string
	Password []byte
	APIKeys  map[string]string

	hidden string
}

var full = options{
	Bool: true, Int: -3, Uint: 7, Float: 0.25, Complex: 1i, Text: "two words", Mode: 1, Duration: 90 * time.Second,
	Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Addr: netip.MustParseAddrPort("[::1]:12201"), Broken: brokenText{1},
	Func: func() {}, Iface: io.Discard, Leveler: slog.LevelWarn, TLS: &tls.Config{ServerName: "x"}, Chan: make(chan int),
	Header:  http.Header{"X-Team": {"ops"}, "Authorization": {"Bearer abc"}},
	Fields:  map[string]string{"b": "http://u:p@h/", "a": "1", "empty": "", "auth_token": "s3cr3t"},
	Numbers: map[int]int{1: 2}, Names: []string{"x", "", "http://u:p@h"}, Inner: inner{Every: time.Minute},
	Inners: []inner{{Every: 1}, {Hook: func() {}}}, Array: [2]int{0, 1}, Token: "s3cr3t", Password: []byte("s3cr3t"),
	APIKeys: map[string]string{"main": "s3cr3t"}, hidden: "s3cr3t",
}

func TestString(t *testing.T) {
	for _, tt := range []struct {
		name string
		v    any
		want string
	}{
		{
			"full", full, `p.Options{Bool: true, Int: -3, Uint: 7, Float: 0.25, Complex: (0+1i), Text: "two words", Mode: On, Duration: 1m30s, ` +
				`Time: "2026-01-02T03:04:05Z", Addr: "[::1]:12201", Broken: "no text at tcp://***@h", Func: set, Iface: set, Leveler: set, TLS: set, ` +
				`Chan: set, Header: {Authorization: ***, X-Team: ***}, Fields: {a: 1, auth_token: ***, b: "http://***@h/"}, Numbers: {1: 2}, ` +
				`Names: [x, "", "http://***@h"], Inner: {Every: 1m0s, Hook: unset}, Inners: [{Every: 1ns, Hook: unset}, {Hook: set}], ` +
				`Array: [0, 1], Token: ***, Password: ***, APIKeys: ***}`,
		},
		{"zero", options{}, "p.Options{Func: unset, Iface: unset, Leveler: unset, TLS: unset, Chan: unset, Inner: {Hook: unset}}"},
		{"a method panics", options{Mode: 2}, "p.Options{Mode: !PANIC, Func: unset, Iface: unset, Leveler: unset, TLS: unset, Chan: unset, Inner: {Hook: unset}}"},
		{"no struct", 3, "p.Options{}"},
		{"nil", nil, "p.Options{}"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := String("p.Options", tt.v); got != tt.want {
				t.Errorf("\ngot  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestEnum(t *testing.T) {
	for v, want := range map[mode]string{0: "off", 1: "on", 2: "mode(2)", 255: "mode(255)"} {
		if got := Enum(v, "off", "on"); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestJSON(t *testing.T) {
	got, err := JSON(full)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"Bool":true,"Int":-3,"Uint":7,"Float":0.25,"Complex":"(0+1i)","Text":"two words","Mode":"On","Duration":"1m30s",` +
		`"Time":"2026-01-02T03:04:05Z","Addr":"[::1]:12201","Broken":"no text at tcp://***@h","Func":"set","Iface":"set","Leveler":"set","TLS":"set",` +
		`"Chan":"set","Header":{"Authorization":"***","X-Team":"***"},"Fields":{"a":"1","auth_token":"***","b":"http://***@h/"},"Numbers":{"1":2},` +
		`"Names":["x","","http://***@h"],"Inner":{"Every":"1m0s","Hook":"unset"},"Inners":[{"Every":"1ns","Hook":"unset"},{"Hook":"set"}],` +
		`"Array":[0,1],"Token":"***","Password":"***","APIKeys":"***"}`
	if string(got) != want {
		t.Errorf("\ngot  %s\nwant %s", got, want)
	}
	for _, f := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		got, err := JSON(struct{ F float64 }{f})
		if want := fmt.Sprintf(`{"F":"%v"}`, f); err != nil || string(got) != want {
			t.Errorf("got %s and error %v, want %s", got, err, want)
		}
	}
	if got, err := JSON(struct{}{}); err != nil || string(got) != "{}" {
		t.Errorf("empty: %s, %v", got, err)
	}
}

func TestLogValue(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && a.Key != "options" {
			return slog.Attr{}
		}
		return a
	}}))
	log.Info("", "options", LogValue(full))
	want := `options.Bool=true options.Int=-3 options.Uint=7 options.Float=0.25 options.Complex=(0+1i) options.Text="two words" options.Mode=On ` +
		`options.Duration=1m30s options.Time=2026-01-02T03:04:05Z options.Addr=[::1]:12201 options.Broken="no text at tcp://***@h" options.Func=set ` +
		`options.Iface=set options.Leveler=set options.TLS=set options.Chan=set options.Header.Authorization=*** options.Header.X-Team=*** ` +
		`options.Fields.a=1 options.Fields.auth_token=*** options.Fields.b=http://***@h/ options.Numbers.1=2 ` +
		`options.Names="[x, \"\", \"http://***@h\"]" options.Inner.Every=1m0s options.Inner.Hook=unset ` +
		`options.Inners="[{Every: 1ns, Hook: unset}, {Hook: set}]" options.Array="[0, 1]" options.Token=*** options.Password=*** options.APIKeys=***` + "\n"
	if out.String() != want {
		t.Errorf("\ngot  %s\nwant %s", out.String(), want)
	}
}

func TestText(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"", ""},
		{"plain", "plain"},
		{"mail me@example.org", "mail me@example.org"},
		{"udp://host:12201", "udp://host:12201"},
		{"http://user:pass@host:12202/gelf", "http://***@host:12202/gelf"},
		{"hec+https://TOKEN@host:8088?index=main", "hec+https://***@host:8088?index=main"},
		{"http://user:p@ss@host/", "http://***@host/"},
		{"http://user:p/a?s#s@host/", "http://***@host/"},
		{`Post "http://u:p@h/x": refused`, `Post "http://***@h/x": refused`},
		{"a http://u@h, b tls://v:w@i", "a http://***@h, b tls://***@i"},
		{"http://h/ then x@y", "http://h/ then x@y"},
		{"http://h/a@b", "http://***@b"}, // too much rather than too little
		{"://@", "://***@"},
		{"http://u:p@http://v:w@h", "http://***@h"},
		{"://", "://"},
	} {
		if got := Text(tt.in); got != tt.want {
			t.Errorf("Text(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

type panicError struct{ *int }

func (e panicError) Error() string { return fmt.Sprint(*e.int) }

func TestError(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{errors.New("dial tls://u:p@h: refused"), "dial tls://***@h: refused"},
		{panicError{}, "!PANIC"},
	} {
		if got := Error(tt.err); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add("http://", "secret", "host")
	f.Add("x http://a:b@h hec+https://", "u:p", "[::1]:1?x=1")
	f.Fuzz(func(t *testing.T, before, userinfo, after string) {
		if strings.ContainsAny(userinfo, " \t\r\n\"'`<>") || userinfo == "" {
			return // not user-info
		}
		const mark = "S3CR3T"
		got := Text(before + "://" + userinfo + mark + "@" + after)
		if strings.Contains(got, mark) && !strings.Contains(before, mark) && !strings.Contains(after, mark) {
			t.Fatalf("%q", got)
		}
		if again := Text(got); again != got {
			t.Fatalf("%q, masked again, is %q", got, again)
		}
	})
}

func FuzzString(f *testing.F) {
	f.Add("a", 1.5, uint8(2), int64(1))
	f.Fuzz(func(t *testing.T, s string, x float64, m uint8, d int64) {
		o := options{Text: s, Float: x, Mode: mode(m), Duration: time.Duration(d), Fields: map[string]string{s: s}, Names: []string{s}}
		_ = String("o", o)
		j, err := JSON(o)
		if err != nil || !json.Valid(j) {
			t.Fatalf("%s, %v", j, err)
		}
		_ = LogValue(o)
	})
}
