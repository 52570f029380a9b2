package ship

import (
	"context"
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"sync"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/pool"
	"github.com/wholelog/wholelog/resolve"
)

// addrs returns n addresses.
func addrs(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("192.0.2.%d:12201", i+1)
	}
	return out
}

// answer is a resolver whose answer tests can change.
type answer struct {
	mu  sync.Mutex
	set []string
	err error
}

func (a *answer) Resolve(context.Context) (resolve.Answer, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out resolve.Answer
	if a.err != nil {
		return out, a.err
	}
	for _, s := range a.set {
		out.Endpoints = append(out.Endpoints, resolve.Endpoint{Addr: netip.MustParseAddrPort(s)})
	}
	return out, nil
}

func (a *answer) change(err error, set ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.set, a.err = set, err
}

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

// inBubble counts the goroutines of the caller's synctest bubble. runtime.NumGoroutine would also count what an earlier test has
// not quite ended.
func inBubble() int {
	buf := make([]byte, 1<<20)
	stacks := strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")
	_, bubble, _ := strings.Cut(strings.SplitN(stacks[0], "\n", 2)[0], "synctest bubble ")
	count := 0
	for _, stack := range stacks {
		if head, _, _ := strings.Cut(stack, "\n"); strings.HasSuffix(head, "synctest bubble "+bubble) {
			count++
		}
	}
	return count
}
