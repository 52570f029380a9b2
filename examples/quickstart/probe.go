package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/wholelog/wholelog/resolve"
)

const (
	probeLookups = 300
	// probeEvery keeps the probe at 200 look-ups a second: cloud resolvers drop what goes beyond a limit per machine (AWS: 1024
	// packets a second), and the probe must not take the look-ups away from the services it shares the machine with.
	probeEvery = 5 * time.Millisecond
)

// runProbe looks name up many times and says what its answers would do to a sender that looks it up for every chunk. It asks for
// IPv4 addresses, in whose order resolvers differ; r should prefer Go's own resolver, because that of the C library may sort the
// answer by nearness and so hide the rotation.
func runProbe(ctx context.Context, out io.Writer, name string, r *net.Resolver) error {
	if host, _, err := net.SplitHostPort(name); err == nil {
		name = host
	}
	answers, err := probe(ctx, probeLookups, probeEvery, func(ctx context.Context) ([]netip.Addr, error) {
		addrs, err := r.LookupNetIP(ctx, "ip4", name)
		for i := range addrs {
			addrs[i] = addrs[i].Unmap() // names from the hosts file come in IPv6 form
		}
		return addrs, err
	})
	if err != nil {
		return err
	}
	// wholelog's view of the same name: it knows the TTL. The port plays no part.
	answer, err := resolve.DNS(net.JoinHostPort(name, "12201"), r).Resolve(ctx)
	if err != nil {
		return err
	}
	renderProbe(out, name, answer.TTL, answers)
	return nil
}

// probe collects n answers, each in the order in which it came. One failed look-up ends it: there is a more basic problem then.
func probe(ctx context.Context, n int, every time.Duration, lookup func(context.Context) ([]netip.Addr, error)) ([][]netip.Addr, error) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	answers := make([][]netip.Addr, 0, n)
	for len(answers) < n {
		addrs, err := lookup(ctx)
		if err != nil {
			return nil, err
		}
		answers = append(answers, addrs)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return answers, nil
}

func renderProbe(out io.Writer, name string, ttl time.Duration, answers [][]netip.Addr) {
	// Addresses that are never first have their line too: 0 % is the sign of a cache or of a resolver that sorts.
	firsts := make([]netip.Addr, len(answers))
	count := map[netip.Addr]int{}
	sizes := map[int]bool{}
	for i, a := range answers {
		firsts[i] = a[0]
		sizes[len(a)] = true
		for _, addr := range a {
			count[addr] += 0
		}
		count[a[0]]++
	}
	fmt.Fprintf(out, "%s: %d look-ups, addresses in all: %d, answers of %v, TTL %s\n\n", name, len(answers), len(count), sorted(sizes), ttlText(ttl))
	if len(count) == 1 {
		fmt.Fprintf(out, "  one address: nothing rotates\n")
		return
	}
	fmt.Fprintf(out, "  %-15s  %s\n", "address", "first in")
	for _, addr := range slices.SortedFunc(maps.Keys(count), netip.Addr.Compare) {
		share := float64(count[addr]) / float64(len(answers))
		fmt.Fprintf(out, "  %-15s  %5.1f %%  %s\n", addr, 100*share, bar(share))
	}
	fmt.Fprintf(out, "\n  order: %s\n", rotation(firsts))
	fmt.Fprintf(out, "\n  whole messages of a sender that looks up per chunk and takes the first address:\n")
	for _, chunks := range []int{2, 3, 4, 6} {
		share := together(firsts, chunks)
		fmt.Fprintf(out, "  %2d chunks  %7.1f %%  %s\n", chunks, 100*share, bar(share))
	}
	fmt.Fprintf(out, "\n  A sender that chooses once per message is not touched by any of this.\n")
}

// rotation names the pattern in the sequence of first addresses. With strict rotation each address has exactly one successor;
// a few exceptions are other clients of the same server, whose look-ups turn the answer as well.
func rotation(firsts []netip.Addr) string {
	next := map[netip.Addr]map[netip.Addr]int{}
	for i, addr := range firsts[1:] {
		if next[firsts[i]] == nil {
			next[firsts[i]] = map[netip.Addr]int{}
		}
		next[firsts[i]][addr]++
	}
	if len(next) == 1 && len(next[firsts[0]]) == 1 {
		return "fixed: the same address is always first (a cache, or a resolver that sorts)"
	}
	// expected counts the steps to each address's usual successor, turned those of them that lead to another address: an answer
	// from a cache is its own usual successor.
	expected, turned := 0, 0
	for addr, successors := range next {
		best := slices.MaxFunc(slices.Collect(maps.Keys(successors)), func(a, b netip.Addr) int { return successors[a] - successors[b] })
		expected += successors[best]
		if best != addr {
			turned += successors[best]
		}
	}
	steps := len(firsts) - 1
	switch share := float64(expected) / float64(steps); {
	case share >= 0.95 && turned == expected:
		return fmt.Sprintf("strict rotation (%.0f %% of the steps go where the last one says)", 100*share)
	case share >= 0.95:
		return "seldom changes: the answers come from a cache"
	default:
		return fmt.Sprintf("random, or several servers that rotate (%.0f %% of the steps go where the last one says)", 100*share)
	}
}

// together is the share of runs of n look-ups in a row that all have the same address first: the messages of n chunks that a
// sender with a look-up per chunk would get whole to one node.
func together(firsts []netip.Addr, n int) float64 {
	whole, runs := 0, len(firsts)-n+1
	for i := range runs {
		if len(slices.Compact(slices.Clone(firsts[i:i+n]))) == 1 {
			whole++
		}
	}
	return float64(whole) / float64(runs)
}

func ttlText(ttl time.Duration) string {
	if ttl == 0 {
		return "unknown (not from DNS: a hosts file, or an address)"
	}
	return ttl.String()
}

func sorted(sizes map[int]bool) []int { return slices.Sorted(maps.Keys(sizes)) }
