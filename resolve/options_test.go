package resolve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// fussy is a Resolver with a Validate of its own.
type fussy struct{ err error }

func (f *fussy) Validate() error                         { return f.err }
func (f *fussy) Resolve(context.Context) (Answer, error) { return Answer{}, nil }

// easy is one without.
type easy struct{ secret string }

func (easy) Resolve(context.Context) (Answer, error) { return Answer{}, nil }

// sound is a Check with a Validate of its own.
type sound struct{ err error }

func (s sound) Validate() error                                     { return s.err }
func (sound) Check(context.Context, netip.AddrPort) (Report, error) { return Report{}, nil }

func TestOptionsValidate(t *testing.T) {
	bad := errors.New("fussy: no")
	for name, c := range map[string]struct {
		o    Options
		want string
	}{
		"zero":              {Options{}, ""},
		"all that works":    {Options{Resolver: easy{}, Policy: PerProcess, Refresh: 100 * time.Millisecond, Trace: func(Choice) {}}, ""},
		"content resolver":  {Options{Resolver: &fussy{}}, ""},
		"policy":            {Options{Policy: 2}, "Policy: 2 is not known"},
		"refresh below 0":   {Options{Refresh: -time.Second}, "Refresh: -1s is neither 0 nor at least 100ms"},
		"refresh too small": {Options{Refresh: 100*time.Millisecond - 1}, "Refresh: 99.999999ms is neither 0 nor at least 100ms"},
		"zone":              {Options{Zone: "eu-1a"}, ""},
		"zone of DNS":       {Options{Zone: "eu-1a", Resolver: DNS("x:1", nil)}, ""},
		"zone of IP":        {Options{Zone: "eu-1a", Resolver: DNS("[::1]:1", nil)}, "Zone: the host must be a name, not an IP address"},
		"zone of others":    {Options{Zone: "eu-1a", Resolver: easy{}}, "Zone: it works with Resolver nil or from DNS only"},
		"no zone":           {Options{Zone: "."}, "Zone: a part of the host name is empty or longer than 63 bytes"},
		"odd zone":          {Options{Zone: "a b"}, "Zone: the host name may hold letters, digits, hyphens, underscores and dots only"},
		"long zone":         {Options{Zone: strings.Repeat("a23456789.", 25) + "a", Resolver: DNS("example.com:1", nil)}, "Zone: the host name is longer than 253 bytes"},
		"check below 0":     {Options{CheckEvery: -1}, "CheckEvery: -1ns is neither 0 nor at least 100ms"},
		"check too often":   {Options{CheckEvery: 100*time.Millisecond - 1}, "CheckEvery: 99.999999ms is neither 0 nor at least 100ms"},
		"check":             {Options{Check: sound{}, CheckEvery: 100 * time.Millisecond}, ""},
		"bad check":         {Options{Check: sound{bad}}, "Check: fussy: no"},
		"resolver":          {Options{Resolver: &fussy{bad}}, "Resolver: fussy: no"},
		"panicking":         {Options{Resolver: (*fussy)(nil)}, "Resolver: its Validate panicked: runtime error: invalid memory address or nil pointer dereference"},
		"SRV":               {Options{Resolver: SRV("x y", nil)}, `Resolver: resolve: SRV: "x y": the host name may hold letters, digits, hyphens, underscores and dots only`},
		"DNS":               {Options{Resolver: DNS("x", nil)}, `Resolver: resolve: "x": the port is missing: write host:port`},
	} {
		err := c.o.Validate()
		if got := fmt.Sprint(err); got != c.want && !(err == nil && c.want == "") {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	if err := (Options{Resolver: &fussy{bad}}).Validate(); !errors.Is(err, bad) {
		t.Errorf("the cause is lost: %v", err)
	}
}

func TestNames(t *testing.T) {
	for want, v := range map[string]fmt.Stringer{
		"PerMessage": PerMessage, "PerProcess": PerProcess, "Policy(2)": Policy(2),
		"unknown": Unknown, "up": Up, "degraded": Degraded, "draining": Draining, "down": Down, "maint": Maint, "State(6)": State(6),
	} {
		if got := v.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestOptionsPrintNoSecrets(t *testing.T) {
	o := Options{Resolver: easy{"hunter2"}, Policy: PerProcess, Refresh: time.Minute, Trace: func(Choice) {}}
	const text = "resolve.Options{Resolver: set, Policy: PerProcess, Refresh: 1m0s, Check: unset, Trace: set}"
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if got := fmt.Sprintf(verb, o); got != text {
			t.Errorf("%s: %s\nwant %s", verb, got, text)
		}
	}
	const object = `{"Resolver":"set","Policy":"PerProcess","Refresh":"1m0s","Check":"unset","Trace":"set"}`
	if got, err := json.Marshal(o); err != nil || string(got) != object {
		t.Errorf("%s, %v\nwant %s", got, err, object)
	}
	var logged bytes.Buffer
	slog.New(slog.NewJSONHandler(&logged, nil)).Info("x", "o", o)
	if got := logged.String(); !strings.Contains(got, `"o":`+object) {
		t.Errorf("logged %s", got)
	}
}
