package main

import (
	"context"
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/wholelog/wholelog/internal/fake/dnsd"
	"github.com/wholelog/wholelog/resolve"
)

// names is the service's name as both ways see it: each look-up gives all three nodes, every time another one first.
type names struct {
	service  string                                              // host:port, for a URL
	resolver resolve.Resolver                                    // for wholelog
	lookup   func(ctx context.Context) ([]netip.AddrPort, error) // one look-up in the order of the answer, for the control
	close    func() error
}

// byDNS is a DNS server that rotates strictly, as AWS's and dnsmasq do. Both ways ask it through package net's resolver.
func byDNS(addrs [nodes]netip.AddrPort) (names, error) {
	server, err := dnsd.Start()
	if err != nil {
		return names{}, err
	}
	answer := dnsd.Answer{TTL: time.Minute} // what AWS gives its load balancers' names
	for _, a := range addrs {
		answer.Addrs = append(answer.Addrs, a.Addr())
	}
	server.Set("graylog.test", answer)
	const host = "graylog.test." // with the final dot no search list multiplies the queries
	port := addrs[0].Port()
	service := fmt.Sprintf("%s:%d", host, port)
	return names{
		service:  service,
		resolver: resolve.DNS(service, server.Resolver()),
		// One question for every look-up, so that the order turns by one place; asking for IPv6 as well would turn it by two on
		// servers that count questions and not names. Go does not sort IPv4 addresses: the first is the server's first.
		lookup: func(ctx context.Context) ([]netip.AddrPort, error) {
			found, err := server.Resolver().LookupNetIP(ctx, "ip4", host)
			addrs := make([]netip.AddrPort, len(found))
			for i, a := range found {
				addrs[i] = netip.AddrPortFrom(a.Unmap(), port)
			}
			return addrs, err
		},
		close: server.Close,
	}, nil
}

// byPort stands in for the DNS server on systems with a single loopback address: nodes that differ by port cannot be told apart by
// a name, so the rotating answer comes from a resolver of our own.
func byPort(addrs [nodes]netip.AddrPort) names {
	t := &turning{addrs: addrs}
	return names{
		service:  "graylog.test:12201",
		resolver: t,
		lookup:   func(context.Context) ([]netip.AddrPort, error) { return t.next(), nil },
		close:    func() error { return nil },
	}
}

// turning is a resolve.Resolver whose answer turns by one place with every look-up.
type turning struct {
	addrs [nodes]netip.AddrPort
	count atomic.Int64
}

// Resolve implements resolve.Resolver.
func (t *turning) Resolve(context.Context) (resolve.Answer, error) {
	var a resolve.Answer
	for _, addr := range t.next() {
		a.Endpoints = append(a.Endpoints, resolve.Endpoint{Addr: addr})
	}
	return a, nil
}

func (t *turning) next() []netip.AddrPort {
	first := int(t.count.Add(1) % nodes)
	return append(append([]netip.AddrPort(nil), t.addrs[first:]...), t.addrs[:first]...)
}
