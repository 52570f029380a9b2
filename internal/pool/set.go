package pool

import (
	"errors"
	"fmt"
	"maps"
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

// member is one address and what is known of it. It goes when the address goes, so that a set that changes for days does not grow.
type member struct {
	addr     netip.AddrPort
	weight   uint16
	priority uint16
	missing  int // good answers in a row without the address
	health
	checking
	shown resolve.State // in the snapshot
	since time.Time     // when that began
}

var errNoneFit = errors.New("by its health no address is fit for use, so all are used that are not taken out by their operator")

// tidy gives each address of an answer once, in its plain form and with its weight filled in. The error is about addresses that can
// not be used; they do not spoil the others.
func tidy(found []resolve.Endpoint, local bool) (map[netip.AddrPort]resolve.Endpoint, error) {
	good := make(map[netip.AddrPort]resolve.Endpoint, len(found))
	var bad []netip.AddrPort
	for _, e := range found {
		if !local && (!e.Addr.IsValid() || e.Addr.Port() == 0) {
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
			m = &member{addr: addr, since: now}
			m.percent = fullPercent
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

// sort brings the members into the order of the snapshot.
func (p *Pool) sort() {
	p.sorted = slices.AppendSeq(p.sorted[:0:0], maps.Values(p.members))
	slices.SortFunc(p.sorted, func(a, b *member) int { return a.addr.Compare(b.addr) })
}

// publish makes the members the snapshot, if anything about them changed.
func (p *Pool) publish(now time.Time) {
	p.limitEjections(now)
	p.due = p.nextExpiry()
	usable := p.choice()
	old := p.Snapshot()
	s := &Snapshot{Endpoints: make([]Endpoint, 0, len(p.sorted)), Gen: old.Gen}
	for _, m := range p.sorted {
		state := m.state()
		if state != m.shown {
			m.shown, m.since = state, now
		}
		// Twice what the Check's percentage makes of it, so that half of it is a whole number too.
		share := 2 * int(m.weight) * m.percent
		weight := max((share/2+fullPercent/2)/fullPercent, 1)
		if state == resolve.Degraded {
			share /= 2
		}
		s.Endpoints = append(s.Endpoints, Endpoint{
			Addr: m.addr, Weight: weight, Share: max(share, 1), Priority: m.priority,
			State: state, Since: m.since, Usable: usable(m), steady: m.steady(),
		})
	}
	if slices.Equal(s.Endpoints, old.Endpoints) {
		return
	}
	if !slices.EqualFunc(s.Endpoints, old.Endpoints, sameChoice) {
		s.Gen++
		p.news.changed = true
	}
	p.snapshot.Store(s)
}

// choice says which members may be given records:
//
//   - those whose state allows it, of the best Priority that has one not in doubt, and of all that come before it. One that fell and
//     may not be ejected stays in use, and so does one on trial, but neither keeps the backups out;
//   - when no state allows it, all but those in Maint: perhaps they work after all, and there is nothing to lose;
//   - when all are in Maint, all.
func (p *Pool) choice() func(*member) bool {
	const none = math.MaxUint16 + 1
	best := none
	fit, serviced := false, true
	for _, m := range p.sorted {
		serviced = serviced && m.state() == resolve.Maint
		if m.fit() {
			fit = true
			if !m.doubt {
				best = min(best, int(m.priority))
			}
		}
	}
	forced := !fit && len(p.sorted) > 0
	if forced && !p.forced {
		p.news.tell(CauseHealth, errNoneFit)
	}
	p.forced = forced
	switch {
	case fit:
		return func(m *member) bool { return m.fit() && int(m.priority) <= best }
	case serviced:
		return func(*member) bool { return true }
	}
	return func(m *member) bool { return m.state() != resolve.Maint }
}

// sameChoice says whether b may stand in for a where destinations are chosen.
func sameChoice(a, b Endpoint) bool {
	return a.Addr == b.Addr && a.Share == b.Share && a.Priority == b.Priority && a.Usable == b.Usable
}
