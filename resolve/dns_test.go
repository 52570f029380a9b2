package resolve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wholelog/wholelog/internal/fake/dnsd"
)

func TestDNSFindsTheWholeSet(t *testing.T) {
	s := serve(t)
	s.Set("logs.test", dnsd.Answer{Addrs: addrs("127.0.0.3", "127.0.0.1", "127.0.0.2", "127.0.0.1"), TTL: time.Minute})
	r := DNS("logs.test.:12201", s.Resolver())
	for range 5 { // the server turns the set; the answer stays the same
		a, err := r.Resolve(t.Context())
		if err != nil || !holds(a, "127.0.0.1:12201", "127.0.0.2:12201", "127.0.0.3:12201") || a.TTL != time.Minute {
			t.Fatalf("%+v, %v", a, err)
		}
	}
	if a, aaaa := s.Queries("logs.test", dnsd.TypeA), s.Queries("logs.test", dnsd.TypeAAAA); a != 5 || aaaa != 5 {
		t.Errorf("%d questions for A and %d for AAAA", a, aaaa)
	}
}

func TestDNSBothFamilies(t *testing.T) {
	s := serve(t)
	want := []string{"127.0.0.1:514", "[::1]:514"}
	if connect(netip.MustParseAddrPort("[::1]:514")) != nil {
		want = want[:1] // a host without IPv6
	}
	s.Set("logs.test", dnsd.Answer{Addrs: addrs("::1", "127.0.0.1")})
	a, err := DNS("logs.test.:514", s.Resolver()).Resolve(t.Context())
	if err != nil || !holds(a, want...) {
		t.Errorf("%+v, %v, want %v", a, err, want)
	}
}

func TestDNSTTL(t *testing.T) {
	s := serve(t)
	one := addrs("127.0.0.1")
	var many []netip.Addr
	for i := range 200 {
		many = append(many, netip.AddrFrom4([4]byte{127, 0, 1, byte(i)}))
	}
	s.Set("zero.test", dnsd.Answer{Addrs: one})
	s.Set("alias.test", dnsd.Answer{CNAME: "minute.test", TTL: 5 * time.Minute})
	s.Set("minute.test", dnsd.Answer{Addrs: one, TTL: time.Minute})
	s.Set("short.test", dnsd.Answer{CNAME: "minute.test", TTL: 7 * time.Second})
	s.Set("tcp.test", dnsd.Answer{Addrs: one, TTL: 30 * time.Second, Truncated: true})
	s.Set("many.test", dnsd.Answer{Addrs: many, TTL: 20 * time.Second})
	s.Set("mixed.test", dnsd.Answer{Addrs: one, TTL: time.Minute})
	s.SetType("mixed.test", dnsd.TypeAAAA, dnsd.Answer{Addrs: addrs("::1"), TTL: 10 * time.Second})

	userDial := &net.Resolver{PreferGo: true, Dial: s.Dial, StrictErrors: true}
	for name, want := range map[string]time.Duration{
		"zero.test":   time.Second,
		"minute.test": time.Minute,
		"alias.test":  time.Minute,
		"short.test":  7 * time.Second,
		"tcp.test":    30 * time.Second,
		"many.test":   20 * time.Second,
		"mixed.test":  10 * time.Second,
	} {
		a, err := DNS(name+".:514", userDial).Resolve(t.Context())
		if err != nil || a.TTL != want {
			t.Errorf("%s: TTL %v, %v, want %v", name, a.TTL, err, want)
		}
		if name == "many.test" && len(a.Endpoints) != len(many) {
			t.Errorf("%d of %d addresses", len(a.Endpoints), len(many))
		}
	}
	if !userDial.PreferGo || !userDial.StrictErrors {
		t.Error("the user's resolver was changed")
	}
}

func TestDNSFailures(t *testing.T) {
	s := serve(t)
	s.Set("servfail.test", dnsd.Answer{RCode: dnsd.ServFail})
	s.Set("refused.test", dnsd.Answer{RCode: dnsd.Refused})
	s.Set("empty.test", dnsd.Answer{})
	for name, notFound := range map[string]bool{"servfail.test": false, "refused.test": false, "empty.test": true, "nxdomain.test": true} {
		a, err := DNS(name+".:514", s.Resolver()).Resolve(t.Context())
		var failed *net.DNSError
		if !errors.As(err, &failed) || failed.IsNotFound != notFound || len(a.Endpoints) != 0 {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
		if err != nil && (!strings.HasPrefix(err.Error(), "resolve: ") || !strings.Contains(err.Error(), name)) {
			t.Errorf("%s: %q", name, err)
		}
	}
}

// Here and below the time of look-ups runs in a bubble: in real time a tenth of a second decides, which a loaded machine has not.
func TestDNSPartOfTheQuestionsFail(t *testing.T) {
	for name, other := range map[string]dnsd.Answer{
		"servfail.test":  {RCode: dnsd.ServFail},
		"swallowed.test": {Silent: true},
	} {
		inBubble(t, name, func(t *testing.T, s *dnsd.Server) {
			s.Set(name, dnsd.Answer{Addrs: addrs("127.0.0.1")})
			s.SetType(name, dnsd.TypeAAAA, other)
			a, err := DNS(name+".:514", s.Resolver()).Resolve(t.Context())
			if err != nil || !holds(a, "127.0.0.1:514") {
				t.Errorf("%+v, %v", a, err)
			}
		})
	}
}

func TestDNSSilenceEndsInTime(t *testing.T) {
	for limit, ctx := range map[time.Duration]time.Duration{lookupLimit: time.Hour, 20 * time.Millisecond: 20 * time.Millisecond} {
		inBubble(t, fmt.Sprint(limit), func(t *testing.T, s *dnsd.Server) {
			s.Set("silent.test", dnsd.Answer{Silent: true})
			ctx, cancel := context.WithTimeout(t.Context(), ctx)
			defer cancel()
			began := time.Now()
			_, err := DNS("silent.test.:514", s.Resolver()).Resolve(ctx)
			var failed *net.DNSError
			if !errors.As(err, &failed) || !failed.IsTimeout {
				t.Errorf("%v", err)
			}
			if took := time.Since(began); took < limit*9/10 || took > limit { // package net alone would take 10 s
				t.Errorf("took %v", took)
			}
		})
	}
}

// lossy is a Dial whose first connections of each question go nowhere, like datagrams that are lost or a server that is dead.
type lossy struct {
	server, dead *dnsd.Server
	mu           sync.Mutex
	lose         int
}

func (l *lossy) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lose--; l.lose >= 0 {
		return l.dead.Dial(ctx, network, address)
	}
	return l.server.Dial(ctx, network, address)
}

func TestDNSAsksAgainAfterALostQuery(t *testing.T) {
	inBubble(t, "A and AAAA", func(t *testing.T, s *dnsd.Server) {
		s.Set("logs.test", dnsd.Answer{Addrs: addrs("127.0.0.1")})
		dead := dnsd.InMemory()
		defer dead.Close()
		dead.Set("logs.test", dnsd.Answer{Silent: true})
		l := &lossy{server: s, dead: dead, lose: 2}
		a, err := DNS("logs.test.:514", &net.Resolver{PreferGo: true, Dial: l.Dial}).Resolve(t.Context())
		if err != nil || !holds(a, "127.0.0.1:514") {
			t.Errorf("%+v, %v", a, err)
		}
		if lost := dead.Queries("logs.test", dnsd.TypeA) + dead.Queries("logs.test", dnsd.TypeAAAA); lost != 2 {
			t.Errorf("%d questions were lost", lost)
		}
	})
}

func TestDNSWaitsForASlowServerTheSecondTime(t *testing.T) {
	inBubble(t, "1.3 s", func(t *testing.T, s *dnsd.Server) {
		s.Set("slow.test", dnsd.Answer{Addrs: addrs("127.0.0.1"), Delay: 1300 * time.Millisecond})
		r := DNS("slow.test.:514", s.Resolver())
		if _, err := r.Resolve(t.Context()); err == nil {
			t.Error("a query that takes 1.3 s leaves no time for a second one")
		}
		for range 2 {
			if a, err := r.Resolve(t.Context()); err != nil || !holds(a, "127.0.0.1:514") {
				t.Errorf("%+v, %v", a, err)
			}
		}
	})
}

func TestDNSWithAResolverOfItsOwnKind(t *testing.T) {
	// No PreferGo: the resolver may be the system's, whose connections cannot be listened to. localhost is in the hosts file.
	for name, r := range map[string]*net.Resolver{"system": {}, "go": {PreferGo: true}, "ours": nil} {
		a, err := DNS("localhost:514", r).Resolve(t.Context())
		if err != nil || len(a.Endpoints) == 0 || a.TTL != 0 {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
		for _, e := range a.Endpoints {
			if !e.Addr.Addr().IsLoopback() || e.Addr.Addr().Is4In6() || e.Addr.Port() != 514 {
				t.Errorf("%s: %v", name, e.Addr)
			}
		}
	}
}

func TestR44_LiteralsNeedNoLookup(t *testing.T) {
	forbidden := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		t.Error("a literal was looked up")
		return nil, errors.New("no")
	}}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for in, want := range map[string]string{
		"[::1]:12201":            "[::1]:12201",
		"192.0.2.1:514":          "192.0.2.1:514",
		"[::ffff:192.0.2.1]:514": "192.0.2.1:514",
		"[fe80::1%eth0]:514":     "[fe80::1%eth0]:514",
	} {
		for name, r := range map[string]Resolver{"DNS": DNS(in, forbidden), "Static": Static(in)} {
			if a, err := r.Resolve(ended); err != nil || !holds(a, want) || a.TTL != 0 {
				t.Errorf("%s(%q): %+v, %v", name, in, a, err)
			}
		}
		if got, err := One(ended, in); err != nil || got.String() != want {
			t.Errorf("One(%q): %v, %v", in, got, err)
		}
	}
}

func TestReachable(t *testing.T) {
	all := DNS("[::1]:1", nil).(*dns).endpoints(addrs("192.0.2.1", "2001:db8::1", "192.0.2.2", "::ffff:192.0.2.1"))
	refuse := errors.New("no route")
	for name, c := range map[string]struct {
		connect func(netip.AddrPort) error
		want    []string
	}{
		"all":          {func(netip.AddrPort) error { return nil }, []string{"192.0.2.1:1", "192.0.2.2:1", "[2001:db8::1]:1"}},
		"IPv4 only":    {func(a netip.AddrPort) error { return errors.Join(map[bool]error{true: refuse}[a.Addr().Is6()]) }, []string{"192.0.2.1:1", "192.0.2.2:1"}},
		"IPv6 only":    {func(a netip.AddrPort) error { return errors.Join(map[bool]error{true: refuse}[a.Addr().Is4()]) }, []string{"[2001:db8::1]:1"}},
		"nothing left": {func(netip.AddrPort) error { return refuse }, []string{"192.0.2.1:1", "192.0.2.2:1", "[2001:db8::1]:1"}},
	} {
		if got := (Answer{Endpoints: reachable(all, c.connect)}); !holds(got, c.want...) {
			t.Errorf("%s: %v", name, got.Endpoints)
		}
	}
	if err := connect(netip.MustParseAddrPort("127.0.0.1:9")); err != nil {
		t.Errorf("loopback: %v", err)
	}
	if err := connect(netip.MustParseAddrPort("[fe80::1%no-such-link]:9")); err == nil {
		t.Error("an address on a link that does not exist is taken for reachable")
	}
}

func TestStatic(t *testing.T) {
	s := serve(t)
	s.Set("one.test", dnsd.Answer{Addrs: addrs("127.0.0.1"), TTL: time.Minute})
	s.Set("two.test", dnsd.Answer{Addrs: addrs("127.0.0.2", "127.0.0.1"), TTL: 20 * time.Second})
	s.Set("broken.test", dnsd.Answer{RCode: dnsd.ServFail})
	// Static looks names up with a resolver of its own; here it is told the server.
	static := func(hostports ...string) Resolver {
		st := Static(hostports...).(*static)
		for _, p := range st.parts {
			p.resolver = s.Resolver()
		}
		return st
	}
	for name, c := range map[string]struct {
		hostports []string
		want      []string
		ttl       time.Duration
		errs      int
	}{
		"literals": {[]string{"[::1]:2", "127.0.0.9:1", "[::1]:2", "127.0.0.9:2"}, []string{"127.0.0.9:1", "127.0.0.9:2", "[::1]:2"}, 0, 0},
		"names":    {[]string{"one.test.:1", "two.test.:1"}, []string{"127.0.0.1:1", "127.0.0.2:1"}, 20 * time.Second, 0},
		"mixed":    {[]string{"one.test.:1", "127.0.0.1:1", "127.0.0.1:2"}, []string{"127.0.0.1:1", "127.0.0.1:2"}, time.Minute, 0},
		"partial":  {[]string{"broken.test.:1", "two.test.:1", "gone.test.:1"}, []string{"127.0.0.1:1", "127.0.0.2:1"}, 20 * time.Second, 2},
		"nothing":  {[]string{"broken.test.:1"}, nil, 0, 1},
	} {
		a, err := static(c.hostports...).Resolve(t.Context())
		if !holds(a, c.want...) || a.TTL != c.ttl || (err != nil) != (c.errs > 0) {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
		if err != nil && (strings.Count(err.Error(), "resolve: ") != c.errs || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: %q", name, err)
		}
	}
}

func TestValidate(t *testing.T) {
	for want, r := range map[string]Resolver{
		"": DNS("logs.test:514", nil),
		`resolve: "logs.test": the port is missing: write host:port`:                        DNS("logs.test", nil),
		"resolve: Static needs at least one host:port":                                      Static(),
		`resolve: "b:x": the port must be a number from 1 to 65535`:                         Static("a:1", "b:x", "c"),
		`resolve: SRV: "_gelf..": a part of the host name is empty or longer than 63 bytes`: SRV("_gelf..", nil),
		`resolve: ":0": the port must be a number from 1 to 65535`:                          DNS(":0", nil),
		`resolve: "[::1]": the port is missing: write host:port`:                            Static("[::1]"),
		"resolve: host:port must not hold user-info":                                        DNS("me:secret@logs.test:1", nil),
	} {
		err := r.(interface{ Validate() error }).Validate()
		if want == "" && err == nil {
			continue
		}
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
			continue
		}
		if a, rerr := r.Resolve(t.Context()); rerr == nil || rerr.Error() != want || len(a.Endpoints) != 0 {
			t.Errorf("Resolve: %+v, %v, want %s", a, rerr, want)
		}
	}
}

func TestOne(t *testing.T) {
	if _, err := One(t.Context(), "logs.test"); err == nil || !strings.HasPrefix(err.Error(), "resolve: ") {
		t.Errorf("%v", err)
	}
	got, err := One(t.Context(), "localhost:514")
	if err != nil || !got.Addr().IsLoopback() || got.Port() != 514 {
		t.Errorf("%v, %v", got, err)
	}
}

func TestResolversAreSafeForConcurrentUse(t *testing.T) {
	s := serve(t)
	s.Set("logs.test", dnsd.Answer{Addrs: addrs("127.0.0.1", "127.0.0.2"), TTL: 9 * time.Second})
	r := DNS("logs.test.:514", s.Resolver())
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if a, err := r.Resolve(t.Context()); err != nil || len(a.Endpoints) != 2 || a.TTL != 9*time.Second {
				t.Errorf("%+v, %v", a, err)
			}
		})
	}
	wg.Wait()
}

func TestNamesForErrors(t *testing.T) {
	for want, r := range map[string]any{"logs.test:514": DNS("logs.test:514", nil), "a:1, [::1]:2": Static("a:1", "[::1]:2")} {
		if got := r.(interface{ String() string }).String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The error of a look-up does not name a server that was never asked.
func TestErrorNamesNoServerThatWasNotAsked(t *testing.T) {
	s := serve(t)
	s.Set("fail.test.", dnsd.Answer{RCode: dnsd.ServFail})
	_, err := DNS("fail.test.:1", s.Resolver()).Resolve(t.Context())
	var failed *net.DNSError
	if !errors.As(err, &failed) || failed.Server != "" || strings.Contains(err.Error(), " on ") || !strings.Contains(err.Error(), "fail.test.") {
		t.Errorf("%v", err)
	}
}
