package resolve

import (
	"fmt"
	"testing"
	"time"

	"github.com/wholelog/wholelog/internal/fake/dnsd"
)

func zonalRig(t *testing.T) (*dnsd.Server, Resolver) {
	t.Helper()
	s := serve(t)
	return s, preferring(t, s)
}

// preferring is a resolver of a name on s that prefers a zone.
func preferring(t *testing.T, s *dnsd.Server) Resolver {
	t.Helper()
	d := DNS("logs.test.:1", s.Resolver())
	if err := (Options{Resolver: d, Zone: "eu-1a"}).Validate(); err != nil {
		t.Fatal(err)
	}
	return d.(*dns).Zonal("eu-1a")
}

// The zone's addresses come first, the others stand by.
func TestZone(t *testing.T) {
	const (
		zone     = "eu-1a.logs.test"
		host     = "logs.test"
		both     = "127.0.0.1:1 p0 w0, 127.0.0.2:1 p1 w0, 127.0.0.3:1 p1 w0"
		hostOnly = "127.0.0.1:1 p1 w0, 127.0.0.2:1 p1 w0, 127.0.0.3:1 p1 w0"
	)
	s, r := zonalRig(t)
	good := dnsd.Answer{Addrs: addrs("127.0.0.1"), TTL: 20 * time.Second}
	region := dnsd.Answer{Addrs: addrs("127.0.0.1", "127.0.0.2", "127.0.0.3"), TTL: time.Minute}
	fails := dnsd.Answer{RCode: dnsd.ServFail}
	for i, step := range []struct {
		zone, host dnsd.Answer
		want, err  string
		ttl        time.Duration
	}{
		{fails, region, hostOnly, "resolve: lookup eu-1a.logs.test.: server misbehaving", time.Minute},
		{good, region, both, "", 20 * time.Second},
		{fails, region, both, "resolve: lookup eu-1a.logs.test.: server misbehaving", time.Minute}, // what it had serves
		{dnsd.Answer{Addrs: addrs("127.0.0.2"), TTL: time.Hour}, region, "127.0.0.2:1 p0 w0, 127.0.0.1:1 p1 w0, 127.0.0.3:1 p1 w0", "", time.Minute},
		{good, dnsd.Answer{RCode: dnsd.NXDomain}, "127.0.0.1:1 p0 w0", "", 20 * time.Second},
		{good, fails, "127.0.0.1:1 p0 w0", "resolve: lookup logs.test.: server misbehaving", 20 * time.Second},
		{dnsd.Answer{}, region, hostOnly, "", time.Minute}, // empty
		{fails, region, hostOnly, "resolve: lookup eu-1a.logs.test.: server misbehaving", time.Minute},
		{good, region, both, "", 20 * time.Second},
		{dnsd.Answer{RCode: dnsd.NXDomain}, region, hostOnly, "", time.Minute}, // absent
		{dnsd.Answer{RCode: dnsd.NXDomain}, dnsd.Answer{RCode: dnsd.NXDomain}, "", "resolve: lookup logs.test.: no such host", 0},
		{fails, fails, "", "resolve: lookup eu-1a.logs.test.: server misbehaving; resolve: lookup logs.test.: server misbehaving", 0},
	} {
		s.Set(zone, step.zone)
		s.Set(host, step.host)
		a, err := r.Resolve(t.Context())
		if got := shown(a); got != step.want || a.TTL != step.ttl {
			t.Errorf("step %d: %s, TTL %v\nwant %s, TTL %v", i, got, a.TTL, step.want, step.ttl)
		}
		if got := fmt.Sprint(err); got != step.err && (err != nil || step.err != "") {
			t.Errorf("step %d: %s\nwant %s", i, got, step.err)
		}
	}
	if got := fmt.Sprint(r); got != "eu-1a.logs.test.:1 or logs.test.:1" {
		t.Error(got)
	}
}

// A name server that is silent about the zone takes nothing from the host.
func TestSilentZone(t *testing.T) {
	inBubble(t, "silent", func(t *testing.T, s *dnsd.Server) {
		r := preferring(t, s)
		s.Set("eu-1a.logs.test", dnsd.Answer{Silent: true})
		s.Set("logs.test", dnsd.Answer{Addrs: addrs("127.0.0.2")})
		a, err := r.Resolve(t.Context())
		if shown(a) != "127.0.0.2:1 p1 w0" || err == nil {
			t.Errorf("%s, %v", shown(a), err)
		}
	})
}
