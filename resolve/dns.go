package resolve

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
)

// DNS looks up the A and AAAA records of a name. The hostport is "name:port", with a numeric port; "192.0.2.1:port" and
// "[2001:db8::1]:port" need no look-up. A final dot ("logs.example.com.:12201") saves the queries of the search list.
//
// An answer is the whole set, both families, each address once. IPv4 addresses in IPv6 form are given as IPv4. Addresses that this
// host has no route to are left out, unless that would leave nothing. A look-up takes at most 2 s.
//
// A nil r is a resolver of DNS's own with PreferGo. The answer's TTL is known when r is nil or has PreferGo set, in which case DNS
// listens on the connections that r's Dial makes; names from the hosts file have none.
func DNS(hostport string, r *net.Resolver) Resolver {
	t, err := parseTarget(hostport)
	return &dns{hostport: hostport, target: t, err: err, asker: asker{resolver: r}}
}

type dns struct {
	hostport string
	target   target
	err      error // what is wrong with hostport
	asker
}

// String returns the hostport, for error texts.
func (d *dns) String() string { return d.hostport }

// Validate says what is wrong with the hostport.
func (d *dns) Validate() error { return d.err }

// Resolve implements [Resolver].
func (d *dns) Resolve(ctx context.Context) (a Answer, err error) {
	if d.err != nil {
		return Answer{}, d.err
	}
	if d.target.addr.IsValid() {
		return Answer{Endpoints: d.endpoints([]netip.Addr{d.target.addr})}, nil
	}
	a.TTL, err = d.ask(ctx, func(ctx context.Context, r *net.Resolver) error {
		addrs, err := r.LookupNetIP(ctx, "ip", d.target.host)
		a.Endpoints = reachable(d.endpoints(addrs), connect)
		return d.plain(err)
	})
	return a, err
}

// endpoints gives addrs the port, each once. Names from the hosts file come as IPv4-mapped IPv6 addresses.
func (d *dns) endpoints(addrs []netip.Addr) []Endpoint {
	out := make([]Endpoint, 0, len(addrs))
	for _, addr := range addrs {
		out = append(out, Endpoint{Addr: netip.AddrPortFrom(addr.Unmap(), d.target.port)})
	}
	return unique(out)
}

// unique sorts endpoints by address and leaves each address once. All have the default weight and priority.
func unique(e []Endpoint) []Endpoint {
	slices.SortFunc(e, func(a, b Endpoint) int { return a.Addr.Compare(b.Addr) })
	return slices.CompactFunc(e, func(a, b Endpoint) bool { return a.Addr == b.Addr })
}

// reachable leaves out what the host has no route to, typically every IPv6 address of a host that has IPv4 only. When nothing would
// be left, the network as a whole is away, which says nothing about the addresses: all stay.
func reachable(all []Endpoint, connect func(netip.AddrPort) error) []Endpoint {
	var some []Endpoint
	for _, e := range all {
		if connect(e.Addr) == nil {
			some = append(some, e)
		}
	}
	if len(some) == 0 {
		return all
	}
	return some
}

// connect asks the kernel for a route. Connecting a UDP socket sends no packet.
func connect(addr netip.AddrPort) error {
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(addr))
	if err != nil {
		return err
	}
	return c.Close()
}

// Static is a fixed list of addresses, each "192.0.2.1:port", "[2001:db8::1]:port" or "name:port". Names are looked up like those of
// [DNS], all at once, and everything found is one set. When some names cannot be looked up, the answer holds the rest beside the
// error.
func Static(hostports ...string) Resolver {
	s := &static{}
	for _, h := range hostports {
		s.parts = append(s.parts, DNS(h, nil).(*dns))
	}
	return s
}

type static struct{ parts []*dns }

// String returns the hostports, for error texts.
func (s *static) String() string {
	names := make([]string, len(s.parts))
	for i, p := range s.parts {
		names[i] = p.String()
	}
	return strings.Join(names, ", ")
}

// Validate says what is wrong with the first of the hostports that is wrong.
func (s *static) Validate() error {
	if len(s.parts) == 0 {
		return errors.New("resolve: Static needs at least one host:port")
	}
	for _, p := range s.parts {
		if p.err != nil {
			return p.err
		}
	}
	return nil
}

// Resolve implements [Resolver].
func (s *static) Resolve(ctx context.Context) (Answer, error) {
	if err := s.Validate(); err != nil {
		return Answer{}, err
	}
	answers := make([]Answer, len(s.parts))
	errs := make([]error, len(s.parts))
	var wg sync.WaitGroup
	for i, p := range s.parts {
		wg.Go(func() { answers[i], errs[i] = p.Resolve(ctx) })
	}
	wg.Wait()
	var all Answer
	var failed error
	for i, a := range answers {
		all.Endpoints = append(all.Endpoints, a.Endpoints...)
		all.TTL = shorter(all.TTL, a.TTL)
		switch {
		case failed == nil:
			failed = errs[i]
		case errs[i] != nil:
			failed = fmt.Errorf("%w; %w", failed, errs[i]) // in one line, unlike errors.Join
		}
	}
	all.Endpoints = unique(all.Endpoints)
	return all, failed
}

// One looks hostport up as [DNS] does and returns one of the addresses at random. It is for code that takes a single address, such as
// the start of another client; a handler of this module finds and chooses its addresses itself.
func One(ctx context.Context, hostport string) (netip.AddrPort, error) {
	a, err := DNS(hostport, nil).Resolve(ctx)
	if err != nil {
		return netip.AddrPort{}, err
	}
	return a.Endpoints[rand.IntN(len(a.Endpoints))].Addr, nil
}
