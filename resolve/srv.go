package resolve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"slices"
	"sync"
)

const (
	// defaultWeight is what an Endpoint's weight of 0 means.
	defaultWeight = 100

	// srvAtOnce is how many targets are looked up at the same time.
	srvAtOnce = 8

	// RFC 2782 gives records of weight 0 beside others "a very small chance of being selected".
	srvSmall = 0.01

	// srvScale is by how much weights are multiplied at most, where a part of one would be lost.
	srvScale = 1000
)

var errNotOffered = errors.New("the name says that the service is not available here")

// SRV looks up the targets of an SRV name (RFC 2782), such as "_gelf._udp.example.com", and the addresses of each target as [DNS] does,
// all within 2 s. The port is the one in each record.
//
// Priorities are those of the records. So are weights, and a target with several addresses shares its own among them; where that needs
// fractions, all weights of a priority are multiplied by the same number. A weight of 0 beside others is a hundredth of the smallest.
//
// A target of "." means that the service is not available: that is an error, which like any failed look-up leaves the last good answer
// in use. When some targets cannot be looked up, the answer holds the rest beside the error. About r see [DNS]; the TTL is the smallest
// of all records on the way.
func SRV(name string, r *net.Resolver) Resolver {
	s := &srv{name: name, asker: asker{resolver: r}}
	if err := checkName(name); err != nil {
		s.err = fmt.Errorf("resolve: SRV: %.100q: %w", name, err)
	}
	return s
}

type srv struct {
	name string
	err  error // what is wrong with name
	asker
}

// String returns the name, for error texts.
func (s *srv) String() string { return s.name }

// Validate says what is wrong with the name.
func (s *srv) Validate() error { return s.err }

// Resolve implements [Resolver].
func (s *srv) Resolve(ctx context.Context) (a Answer, err error) {
	if s.err != nil {
		return Answer{}, s.err
	}
	a.TTL, err = s.ask(ctx, func(ctx context.Context, r *net.Resolver) error {
		// An error beside records is about others, whose names are not valid.
		_, records, failed := r.LookupSRV(ctx, "", "", s.name)
		if len(records) == 1 && records[0].Target == "." {
			return fmt.Errorf("%s: %w", s.name, errNotOffered)
		}
		found, err := s.lookUp(ctx, r, records)
		a.Endpoints = spread(targets(records, found))
		if failed != nil {
			err = s.plain(failed)
		}
		return err
	})
	return a, err
}

// lookUp finds the addresses of all targets, each name once. The error is that of one of those that failed.
func (s *srv) lookUp(ctx context.Context, r *net.Resolver, records []*net.SRV) (map[string][]netip.Addr, error) {
	var (
		wg     sync.WaitGroup
		mu     sync.Mutex
		failed error
		places = make(chan struct{}, srvAtOnce)
		found  = make(map[string][]netip.Addr)
		seen   = make(map[string]bool)
	)
	for _, record := range records {
		name := record.Target
		if seen[name] {
			continue
		}
		seen[name] = true
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			addrs, err := r.LookupNetIP(ctx, "ip", name)
			mu.Lock()
			defer mu.Unlock()
			if found[name] = addrs; err != nil {
				failed = fmt.Errorf("target of %s: %w", s.name, s.plain(err))
			}
		})
	}
	wg.Wait()
	return found, failed
}

// srvTarget is one SRV record with the addresses that it stands for.
type srvTarget struct {
	priority, weight uint16
	addrs            []netip.AddrPort
}

// targets brings records and addresses together and leaves out what the host has no route to.
func targets(records []*net.SRV, found map[string][]netip.Addr) []srvTarget {
	var all []Endpoint
	for _, r := range records {
		for _, addr := range found[r.Target] {
			all = append(all, Endpoint{Addr: netip.AddrPortFrom(addr.Unmap(), r.Port)})
		}
	}
	reached := make(map[netip.AddrPort]bool)
	for _, e := range reachable(all, connect) {
		reached[e.Addr] = true
	}
	var out []srvTarget
	for _, r := range records {
		t := srvTarget{priority: r.Priority, weight: r.Weight}
		for _, addr := range found[r.Target] {
			if a := netip.AddrPortFrom(addr.Unmap(), r.Port); reached[a] {
				t.addrs = append(t.addrs, a)
			}
		}
		if len(t.addrs) > 0 {
			out = append(out, t)
		}
	}
	return out
}

// spread makes endpoints of targets, with the weights that their priority asks for.
func spread(all []srvTarget) (out []Endpoint) {
	groups := make(map[uint16][]srvTarget)
	for _, t := range all {
		groups[t.priority] = append(groups[t.priority], t)
	}
	for priority, group := range groups {
		for i, w := range weigh(group) {
			for _, a := range group[i].addrs {
				out = append(out, Endpoint{Addr: a, Priority: priority, Weight: w})
			}
		}
	}
	slices.SortFunc(out, func(a, b Endpoint) int {
		return cmp.Or(a.Addr.Compare(b.Addr), cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Weight, b.Weight))
	})
	return out
}

// weigh gives the weight of one address of each target of a priority.
func weigh(group []srvTarget) []uint16 {
	smallest := math.Inf(1) // that is not 0
	for _, t := range group {
		if t.weight > 0 {
			smallest = min(smallest, float64(t.weight))
		}
	}
	share, largest, exact := make([]float64, len(group)), 0.0, true
	for i, t := range group {
		w := float64(t.weight)
		switch {
		case math.IsInf(smallest, 1): // none has a weight, so all are equal
			w = defaultWeight
		case w == 0:
			w = smallest * srvSmall
		}
		share[i] = w / float64(len(t.addrs))
		largest = max(largest, share[i])
		exact = exact && share[i] == math.Trunc(share[i])
	}
	factor := 1.0
	if !exact {
		factor = min(srvScale, math.MaxUint16/largest)
	}
	out := make([]uint16, len(group))
	for i, w := range share {
		out[i] = uint16(max(math.Round(w*factor), 1))
	}
	return out
}
