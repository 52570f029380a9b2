package resolve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/wholelog/wholelog/internal/fake/dnsd"
)

// shown is an answer in one line: address, priority and weight of each endpoint.
func shown(a Answer) string {
	var out []string
	for _, e := range a.Endpoints {
		out = append(out, fmt.Sprintf("%s p%d w%d", e.Addr, e.Priority, e.Weight))
	}
	return strings.Join(out, ", ")
}

// srvs reads records as a zone file has them: priority, weight, port, target.
func srvs(lines ...string) (records []dnsd.SRV) {
	for _, line := range lines {
		var r dnsd.SRV
		if _, err := fmt.Sscan(line, &r.Priority, &r.Weight, &r.Port, &r.Target); err != nil {
			panic(err)
		}
		records = append(records, r)
	}
	return records
}

const service = "_gelf._udp.logs.test."

func TestSRV(t *testing.T) {
	s := serve(t)
	s.Set("a.test", dnsd.Answer{Addrs: addrs("127.0.0.1"), TTL: time.Minute})
	s.Set("b.test", dnsd.Answer{Addrs: addrs("127.0.0.2"), TTL: time.Minute})
	s.Set("two.test", dnsd.Answer{Addrs: addrs("127.0.0.3", "127.0.0.4"), TTL: 7 * time.Second})
	s.Set("three.test", dnsd.Answer{Addrs: addrs("127.0.0.5", "127.0.0.6", "127.0.0.7"), TTL: time.Minute})
	s.Set("broken.test", dnsd.Answer{RCode: dnsd.ServFail})
	for name, c := range map[string]struct {
		records []dnsd.SRV
		want    string
		err     string
		ttl     time.Duration
	}{
		"priorities and weights": {
			srvs("10 3 12201 a.test", "20 5 12202 b.test"),
			"127.0.0.1:12201 p10 w3, 127.0.0.2:12202 p20 w5", "", 30 * time.Second,
		},
		"the smallest TTL": {srvs("1 2 1 two.test"), "127.0.0.3:1 p1 w1, 127.0.0.4:1 p1 w1", "", 7 * time.Second},
		"no weights":       {srvs("1 0 1 a.test", "1 0 1 b.test"), "127.0.0.1:1 p1 w100, 127.0.0.2:1 p1 w100", "", 30 * time.Second},
		"a very small chance": {
			srvs("1 0 1 a.test", "1 200 1 b.test", "2 0 2 b.test"),
			"127.0.0.1:1 p1 w2, 127.0.0.2:1 p1 w200, 127.0.0.2:2 p2 w100", "", 30 * time.Second,
		},
		"part of a weight": {
			srvs("1 0 1 a.test", "1 1 1 b.test"),
			"127.0.0.1:1 p1 w10, 127.0.0.2:1 p1 w1000", "", 30 * time.Second,
		},
		"addresses share the weight of their target": {
			srvs("1 1 1 a.test", "1 1 1 three.test"),
			"127.0.0.1:1 p1 w1000, 127.0.0.5:1 p1 w333, 127.0.0.6:1 p1 w333, 127.0.0.7:1 p1 w333", "", 30 * time.Second,
		},
		"large weights": {
			srvs("1 65535 1 three.test", "1 1 1 two.test"),
			"127.0.0.3:1 p1 w2, 127.0.0.4:1 p1 w2, 127.0.0.5:1 p1 w65535, 127.0.0.6:1 p1 w65535, 127.0.0.7:1 p1 w65535", "", 7 * time.Second,
		},
		"two ports of a target": {srvs("1 1 1 a.test", "1 1 2 a.test"), "127.0.0.1:1 p1 w1, 127.0.0.1:2 p1 w1", "", 30 * time.Second},
		"a target that cannot be looked up": {
			srvs("1 1 1 a.test", "1 1 1 broken.test"), "127.0.0.1:1 p1 w1",
			"resolve: target of _gelf._udp.logs.test.: lookup broken.test.: server misbehaving", 30 * time.Second,
		},
		"none can":        {srvs("1 1 1 gone.test"), "", "resolve: target of _gelf._udp.logs.test.: lookup gone.test.: no such host", 30 * time.Second},
		"not offered":     {srvs("0 0 0 ."), "", "resolve: _gelf._udp.logs.test.: the name says that the service is not available here", 30 * time.Second},
		"no such records": {nil, "", "resolve: lookup _gelf._udp.logs.test.: no such host", 0},
	} {
		t.Run(name, func(t *testing.T) {
			s.Set(service, dnsd.Answer{SRV: c.records, TTL: 30 * time.Second})
			r := SRV(service, s.Resolver())
			a, err := r.Resolve(t.Context())
			if got := shown(a); got != c.want || a.TTL != c.ttl {
				t.Errorf("%s, TTL %v\nwant %s, TTL %v", got, a.TTL, c.want, c.ttl)
			}
			if got := fmt.Sprint(err); got != c.err && (err != nil || c.err != "") {
				t.Errorf("%s\nwant %s", got, c.err)
			}
		})
	}
}

func TestSRVShowsItsName(t *testing.T) {
	if got := fmt.Sprint(SRV(service, nil)); got != service {
		t.Error(got)
	}
	a, err := SRV("x y", nil).Resolve(t.Context())
	if len(a.Endpoints) > 0 || err == nil {
		t.Errorf("%+v, %v", a, err)
	}
}

// A target with many names is looked up a few at a time, and each name once.
func TestSRVManyTargets(t *testing.T) {
	s := serve(t)
	var records []dnsd.SRV
	for i := range 100 {
		name := fmt.Sprintf("n%d.test", i%50)
		s.Set(name, dnsd.Answer{Addrs: addrs(fmt.Sprintf("127.0.1.%d", i%50+1))})
		records = append(records, dnsd.SRV{Priority: 1, Weight: 1, Port: uint16(1 + i/50), Target: name})
	}
	s.Set(service, dnsd.Answer{SRV: records})
	a, err := SRV(service, s.Resolver()).Resolve(t.Context())
	if err != nil || len(a.Endpoints) != 100 {
		t.Fatalf("%d endpoints, %v", len(a.Endpoints), err)
	}
	for i := range 50 {
		if n := s.Queries(fmt.Sprintf("n%d.test", i), dnsd.TypeA); n != 1 {
			t.Errorf("target %d was asked for %d times", i, n)
		}
	}
}

func TestSRVEndsWithItsContext(t *testing.T) {
	s := serve(t)
	s.Set(service, dnsd.Answer{Silent: true})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := SRV(service, s.Resolver()).Resolve(ctx)
	var failed *net.DNSError
	if !errors.As(err, &failed) {
		t.Errorf("%v", err)
	}
}

// IPv6 targets count on a host that has IPv6, and are left out on others.
func TestSRVBothFamilies(t *testing.T) {
	s := serve(t)
	s.Set("a.test", dnsd.Answer{Addrs: addrs("127.0.0.1", "::1")})
	s.Set(service, dnsd.Answer{SRV: srvs("1 4 514 a.test")})
	a, err := SRV(service, s.Resolver()).Resolve(t.Context())
	want := "127.0.0.1:514 p1 w2, [::1]:514 p1 w2"
	if connect(a.Endpoints[0].Addr) == nil && len(a.Endpoints) == 1 {
		want = "127.0.0.1:514 p1 w4"
	}
	if got := shown(a); got != want || err != nil {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
}
