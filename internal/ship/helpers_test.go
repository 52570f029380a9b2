package ship

import (
	"context"
	"net/netip"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/pool"
	"github.com/wholelog/wholelog/resolve"
)

// weighted is a resolver whose addresses have weights.
type weighted map[string]uint16

func (w weighted) Resolve(context.Context) (resolve.Answer, error) {
	var a resolve.Answer
	for addr, n := range w {
		a.Endpoints = append(a.Endpoints, resolve.Endpoint{Addr: netip.MustParseAddrPort(addr), Weight: n})
	}
	return a, nil
}

// twoRoutes makes an engine with a fallback.
func twoRoutes(main, fallback Transport, o delivery.Options) *Engine {
	o.OnError = func(error) {}
	return New(Config{
		Name:     "test",
		Main:     Route{main, pool.New(pool.Config{Options: resolveTo(addrs(1)...)})},
		Fallback: Route{fallback, pool.New(pool.Config{Options: resolveTo("192.0.2.99:12201")})},
		Options:  o,
	})
}

func addrPort(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }
