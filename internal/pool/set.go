package pool

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"time"

	"github.com/wholelog/wholelog/resolve"
)

const (
	defaultWeight = 100

	// missingLimit is how many good answers in a row an address must be missing from before it is given up: a name server that is
	// just being reloaded, or one of several that lags behind, answers with a part of the set.
	missingLimit = 2
)

// member is what is known of one address. It goes when the address goes, so that a set that changes for days does not grow.
type member struct {
	weight   uint16
	priority uint16
	missing  int // good answers in a row without the address
	state    resolve.State
	since    time.Time
}

// tidy gives each address of an answer once, in its plain form and with its weight filled in. The error is about addresses that can
// not be used; they do not spoil the others.
func tidy(found []resolve.Endpoint) (map[netip.AddrPort]resolve.Endpoint, error) {
	good := make(map[netip.AddrPort]resolve.Endpoint, len(found))
	var bad []netip.AddrPort
	for _, e := range found {
		if !e.Addr.IsValid() || e.Addr.Port() == 0 {
			bad = append(bad, e.Addr)
			continue
		}
		e.Addr = netip.AddrPortFrom(e.Addr.Addr().Unmap(), e.Addr.Port())
		if e.Weight == 0 {
			e.Weight = defaultWeight
		}
		if twin, twice := good[e.Addr]; twice {
			// Listed twice, the address counts once, as the better of the two.
			e.Weight = max(e.Weight, twin.Weight)
			e.Priority = min(e.Priority, twin.Priority)
		}
		good[e.Addr] = e
	}
	if len(bad) == 0 {
		return good, nil
	}
	return good, fmt.Errorf("%d of the addresses found cannot be used, the first is %q", len(bad), bad[0])
}

// add makes every address of found a member.
func (p *Pool) add(found map[netip.AddrPort]resolve.Endpoint, now time.Time) {
	for addr, e := range found {
		m := p.members[addr]
		if m == nil {
			m = &member{since: now}
			p.members[addr] = m
		}
		m.weight, m.priority, m.missing = e.Weight, e.Priority, 0
	}
}

// giveUp removes the members that have been missing often enough, found being the newest good answer, and says whether others are
// missing but stay for now.
func (p *Pool) giveUp(found map[netip.AddrPort]resolve.Endpoint) (missing bool) {
	for addr, m := range p.members {
		if _, ok := found[addr]; ok {
			continue
		}
		m.missing++
		if m.missing < missingLimit {
			missing = true
			continue
		}
		delete(p.members, addr)
	}
	return missing
}

// publish makes the members the snapshot, if anything about them changed.
func (p *Pool) publish() {
	old := p.Snapshot()
	s := &Snapshot{Endpoints: make([]Endpoint, 0, len(p.members)), Gen: old.Gen}
	best := uint16(math.MaxUint16)
	for _, m := range p.members {
		best = min(best, m.priority)
	}
	for addr, m := range p.members {
		s.Endpoints = append(s.Endpoints, Endpoint{
			Addr: addr, Weight: int(m.weight), Priority: m.priority,
			State: m.state, Since: m.since,
			// Health has no say yet: the best priority is usable, the others wait for the day that none of it is.
			Usable: m.priority == best,
		})
	}
	slices.SortFunc(s.Endpoints, func(a, b Endpoint) int { return a.Addr.Compare(b.Addr) })
	if slices.Equal(s.Endpoints, old.Endpoints) {
		return
	}
	if !slices.EqualFunc(s.Endpoints, old.Endpoints, sameChoice) {
		s.Gen++
	}
	p.snapshot.Store(s)
}

// sameChoice says whether b may stand in for a where destinations are chosen.
func sameChoice(a, b Endpoint) bool {
	return a.Addr == b.Addr && a.Weight == b.Weight && a.Priority == b.Priority && a.Usable == b.Usable
}
