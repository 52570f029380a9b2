package resolve_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/wholelog/wholelog/internal/fake/dnsd"
	"github.com/wholelog/wholelog/resolve"
)

// nameserver starts a name server of package dnsd, which knows what the examples look up.
func nameserver() *dnsd.Server {
	s, err := dnsd.Start()
	if err != nil {
		panic(err)
	}
	node1, node2, spare := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("192.0.2.9")
	s.Set("logs.example.com", dnsd.Answer{Addrs: []netip.Addr{node1, node2}, TTL: 20 * time.Second})
	s.Set("spare.example.com", dnsd.Answer{Addrs: []netip.Addr{spare}, TTL: 20 * time.Second})
	s.Set("_gelf._udp.example.com", dnsd.Answer{TTL: 5 * time.Minute, SRV: []dnsd.SRV{
		{Priority: 10, Weight: 60, Port: 12201, Target: "logs.example.com"},
		{Priority: 20, Weight: 40, Port: 12202, Target: "spare.example.com"},
	}})
	return s
}

// show prints what a resolver found.
func show(r resolve.Resolver) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	answer, err := r.Resolve(ctx)
	if err != nil {
		fmt.Println(err)
	}
	for _, e := range answer.Endpoints {
		fmt.Println(e.Addr, "weight", e.Weight, "priority", e.Priority)
	}
	fmt.Println("TTL", answer.TTL)
}

// Every address of the name, however the answer is ordered. The final dot saves the queries of the search list. A nil resolver is the
// host's; here it asks a name server of the example's own.
func ExampleDNS() {
	s := nameserver()
	defer s.Close()
	r := resolve.DNS("logs.example.com.:12201", &net.Resolver{PreferGo: true, Dial: s.Dial})
	show(r)
	// Output:
	// 192.0.2.1:12201 weight 0 priority 0
	// 192.0.2.2:12201 weight 0 priority 0
	// TTL 20s
}

// Hosts of the lowest priority share the traffic by weight, and those of one host share its weight. The others stand by.
func ExampleSRV() {
	s := nameserver()
	defer s.Close()
	r := resolve.SRV("_gelf._udp.example.com.", &net.Resolver{PreferGo: true, Dial: s.Dial})
	show(r)
	// Output:
	// 192.0.2.1:12201 weight 30 priority 10
	// 192.0.2.2:12201 weight 30 priority 10
	// 192.0.2.9:12202 weight 40 priority 20
	// TTL 20s
}

// A list, where there is no DNS. It may hold names.
func ExampleStatic() {
	show(resolve.Static("192.0.2.1:12201", "[2001:db8::1]:12201"))
	// Output:
	// 192.0.2.1:12201 weight 0 priority 0
	// [2001:db8::1]:12201 weight 0 priority 0
	// TTL 0s
}

// Another client takes one address and never looks it up again. One gives it a different one in every process.
func ExampleOne() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	addr, err := resolve.One(ctx, "[::1]:12201")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("connect to", addr)
	// Output: connect to [::1]:12201
}

// Nodes of the sender's own zone are preferred, each is asked whether it wants messages, and a changed name is followed within 30 s.
func ExampleOptions() {
	options := resolve.Options{
		Refresh:    30 * time.Second,
		Zone:       "eu-1a", // eu-1a.logs.example.com, while that has a usable address
		Check:      resolve.HTTPCheck("http://logs.example.com:9000/api/system/lbstatus"),
		CheckEvery: 5 * time.Second,
	}
	fmt.Println(options)
	fmt.Println(options.Validate())
	// Output:
	// resolve.Options{Resolver: unset, Refresh: 30s, Zone: eu-1a, Check: set, CheckEvery: 5s, Trace: unset}
	// <nil>
}
