package resolve_test

import (
	"context"
	"fmt"
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
