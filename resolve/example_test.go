package resolve_test

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/wholelog/wholelog/resolve"
)

// Another client takes one address and never looks it up again. One gives it a different one in every process.
func ExampleOne() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	addr, err := resolve.One(ctx, "[::1]:12201")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("connect to", addr)
	// Output: connect to [::1]:12201
}

func ExampleStatic() {
	r := resolve.Static("192.0.2.1:12201", "192.0.2.2:12201")
	answer, err := r.Resolve(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range answer.Endpoints {
		fmt.Println(e.Addr)
	}
	// Output:
	// 192.0.2.1:12201
	// 192.0.2.2:12201
}

func ExampleDNS() {
	// The final dot saves the queries of the search list.
	options := resolve.Options{
		Resolver: resolve.DNS("logs.example.com.:12201", nil),
		Refresh:  30 * time.Second,
	}
	fmt.Println(options.Validate())
	// Output: <nil>
}

// Graylog is asked over HTTP whether it wants messages, and nodes of the sender's own zone are preferred.
func ExampleHTTPCheck() {
	options := resolve.Options{
		Resolver:   resolve.DNS("logs.example.com.:12201", nil),
		Zone:       "eu-1a",
		Check:      resolve.HTTPCheck("http://logs.example.com:9000/api/system/lbstatus"),
		CheckEvery: 5 * time.Second,
	}
	fmt.Println(options.Validate())
	// Output: <nil>
}

func ExampleSRV() {
	options := resolve.Options{Resolver: resolve.SRV("_gelf._udp.example.com.", nil), Check: resolve.AgentCheck(8081)}
	fmt.Println(options.Validate())
	// Output: <nil>
}

// Datagrams do not tell whether anybody hears them: whether the receiver's API port accepts connections does.
func ExampleTCPCheck() {
	options := resolve.Options{Check: resolve.TCPCheck(9000)}
	fmt.Println(options.Validate())
	// Output: <nil>
}

// The receivers' operator runs an agent that says "up", "drain" or "50%" on port 8081.
func ExampleAgentCheck() {
	options := resolve.Options{Check: resolve.AgentCheck(8081), CheckEvery: 2 * time.Second}
	fmt.Println(options.Validate())
	// Output: <nil>
}

// A Check of one's own: a receiver is degraded when its answer is slow.
func ExampleCheck() {
	options := resolve.Options{Check: slowness{resolve.TCPCheck(9000)}}
	fmt.Println(options.Validate())
	// Output: <nil>
}

type slowness struct{ of resolve.Check }

func (s slowness) Check(ctx context.Context, addr netip.AddrPort) (resolve.Report, error) {
	began := time.Now()
	r, err := s.of.Check(ctx, addr)
	if took := time.Since(began); err == nil && took > 100*time.Millisecond {
		r = resolve.Report{State: resolve.Degraded, Note: "connected after " + took.String()}
	}
	return r, err
}
