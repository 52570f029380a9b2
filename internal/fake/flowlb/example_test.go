package flowlb_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/wholelog/wholelog/internal/fake/flowlb"
	"github.com/wholelog/wholelog/internal/fake/gelfd"
)

// Two messages from one socket are one flow, and reach one of the three nodes.
func ExampleListen() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	arrived := make(chan int, 2)
	var targets []netip.AddrPort
	for i := range 3 {
		node, err := gelfd.Listen("", gelfd.Options{OnMessage: func(gelfd.Message) { arrived <- i }})
		if err != nil {
			fmt.Println(err)
			return
		}
		defer func() { _ = node.Close() }()
		targets = append(targets, node.Addr())
	}
	lb, err := flowlb.Listen([]string{"127.0.0.1:0"}, targets, flowlb.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = lb.Close() }()

	conn, err := net.Dial("udp", lb.VIPs()[0].String())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = conn.Close() }()
	var nodes [2]int
	for i := range nodes {
		if _, err := conn.Write([]byte(`{"host":"web-1","short_message":"hello"}`)); err != nil {
			fmt.Println(err)
		}
		select {
		case nodes[i] = <-arrived:
		case <-ctx.Done():
			fmt.Println(ctx.Err())
		}
	}
	fmt.Println(nodes[0] == nodes[1], len(lb.Stats().UDPFlows))
	// Output: true 1
}
