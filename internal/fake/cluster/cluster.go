// Package cluster is GELF nodes on loopback behind one name whose DNS answer rotates strictly, as a load balancer's does.
package cluster

import (
	"context"
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/wholelog/wholelog/internal/fake/dnsd"
	"github.com/wholelog/wholelog/internal/fake/gelfd"
	"github.com/wholelog/wholelog/internal/fake/loopback"
	"github.com/wholelog/wholelog/resolve"
)

// Host is the cluster's name. With the final dot no search list multiplies the queries.
const Host = "graylog.test."

// Cluster is a number of nodes and their common name: each look-up gives all of them, every time another one first.
type Cluster struct {
	Nodes    []*gelfd.Server
	Service  string           // host:port, for a URL
	Resolver resolve.Resolver // for a handler
	DNS      *dnsd.Server     // nil where the nodes differ by port
	turning  *turning
}

// Start starts n nodes, 250 at most. They have an address each and the same port, as in real life. Systems other than Linux and
// Windows have one loopback address unless somebody adds more: there the nodes differ by port, and the rotating answer comes from a
// resolver of our own, since a name stands for addresses and not for ports.
func Start(n int, o gelfd.Options) (*Cluster, error) {
	if c, err := start(n, o, func(i int) netip.Addr { return netip.AddrFrom4([4]byte{127, 0, 0, byte(1 + i)}) }); err == nil {
		return c, nil
	}
	return StartByPort(n, o)
}

// StartByPort is Start for systems with one loopback address; tests use it to see that the same holds there.
func StartByPort(n int, o gelfd.Options) (*Cluster, error) {
	return start(n, o, func(int) netip.Addr { return netip.AddrFrom4([4]byte{127, 0, 0, 1}) })
}

// start starts n nodes on the addresses given. When these differ, all nodes have the port that was free on the first.
func start(n int, o gelfd.Options, at func(i int) netip.Addr) (*Cluster, error) {
	c := &Cluster{}
	same := n > 1 && at(0) == at(1)
	port := uint16(0)
	for i := range n {
		if same || i == 0 { // nodes go away and come back
			free, err := loopback.Addr()
			if err != nil {
				_ = c.Close()
				return nil, err
			}
			port = netip.MustParseAddrPort(free).Port()
		}
		node, err := gelfd.Listen(netip.AddrPortFrom(at(i), port).String(), o)
		if err != nil {
			_ = c.Close()
			return nil, err
		}
		c.Nodes = append(c.Nodes, node)
	}
	if same {
		c.turning = &turning{}
		for _, node := range c.Nodes {
			c.turning.addrs = append(c.turning.addrs, node.Addr())
		}
		c.Service, c.Resolver = Host+":12201", c.turning
		return c, nil
	}
	return c, c.serveName(port)
}

// serveName starts the DNS server, which rotates strictly as AWS's and dnsmasq do.
func (c *Cluster) serveName(port uint16) (err error) {
	if c.DNS, err = dnsd.Start(); err != nil {
		_ = c.Close()
		return err
	}
	answer := dnsd.Answer{TTL: time.Minute} // what AWS gives its load balancers' names
	for _, node := range c.Nodes {
		answer.Addrs = append(answer.Addrs, node.Addr().Addr())
	}
	c.DNS.Set(Host, answer)
	c.Service = fmt.Sprintf("%s:%d", Host, port)
	c.Resolver = resolve.DNS(c.Service, c.DNS.Resolver())
	return nil
}

// Lookup makes one look-up and returns the addresses in the order of the answer. It asks one question, so that the order turns by
// one place: asking for IPv6 as well would turn it by two on servers that count questions and not names. Go does not sort IPv4
// addresses, so the first is the server's first.
func (c *Cluster) Lookup(ctx context.Context) ([]netip.AddrPort, error) {
	if c.turning != nil {
		return c.turning.next(), nil
	}
	found, err := c.DNS.Resolver().LookupNetIP(ctx, "ip4", Host)
	addrs := make([]netip.AddrPort, len(found))
	for i, a := range found {
		addrs[i] = netip.AddrPortFrom(a.Unmap(), c.Nodes[0].Addr().Port())
	}
	return addrs, err
}

// Close ends what was started.
func (c *Cluster) Close() error {
	for _, node := range c.Nodes {
		_ = node.Close() // a socket that is not needed any more tells nobody anything
	}
	if c.DNS != nil {
		return c.DNS.Close()
	}
	return nil
}

// turning is a resolve.Resolver whose answer turns by one place with every look-up.
type turning struct {
	addrs []netip.AddrPort
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
	first := int(t.count.Add(1) % int64(len(t.addrs)))
	return append(append([]netip.AddrPort(nil), t.addrs[first:]...), t.addrs[:first]...)
}
