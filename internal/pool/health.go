package pool

import (
	"net/netip"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/jitter"
	"github.com/wholelog/wholelog/resolve"
)

const (
	rise = 2 // successes in a row that make an address Up
	fall = 3 // failures in a row that take it out

	// An ejection lasts from ejectLeast to ejectLeast + ejectSpread, whatever came before: long enough for a restart, and short
	// enough that nobody misses an address that is back. The spread keeps a fleet from coming back at one moment.
	ejectLeast  = 10 * time.Second
	ejectSpread = 20 * time.Second

	// forgetAfter is how long a failure counts. Three in a week are no row, and datagrams, whose successes say nothing, have no other
	// way to be forgiven.
	forgetAfter = time.Minute

	// silentLimit is the number of checks without information after which what they said before does not hold any more.
	silentLimit = 10

	fullPercent = 100
	maxPercent  = 100 * fullPercent // of what a Check asks for
	maxText     = 256               // bytes of a Check's text
)

// health is what is known of one address, from two sources.
//
// What sends meet is evidence, and evidence may be wrong: the network here may be down, or one record may upset every receiver. So it
// takes fall failures in a row to take an address out, for one ejection, and never more than half of the addresses are out for it at
// once. After an ejection the address is on trial: the first failure ejects it again, successes make it Up.
//
// What a Check says is a verdict, and holds: it may take out every address. A report acts at once, failing checks after fall of them.
//
//	verdict Draining, Down or Maint    that
//	ejected                            Down
//	verdict Degraded, or busy          Degraded
//	verdict Up, or rise successes      Up
//	nothing of all that                Unknown
type health struct {
	good, bad int       // successes and failures in a row
	badAt     time.Time // of the last failure
	busy      bool      // it asked for less, and has not had rise successes since
	up        bool      // rise successes in a row, and not fall failures since
	doubt     bool      // it fell, and nothing good was heard since
	until     time.Time // end of the ejection; zero: not ejected

	verdict  resolve.State // of the last report that had one
	percent  int           // of the weight
	failures int           // of checks in a row
	silent   int           // checks in a row that told nothing
	text     string        // what the last check said
	textAt   time.Time
	warning  string // what was last told of the check
}

func (h *health) ejected() bool { return !h.until.IsZero() }

// judged is the verdict of the Check; Unknown when it has none.
func (h *health) judged() resolve.State {
	if h.verdict != resolve.Maint && h.failures >= fall {
		return resolve.Down
	}
	return h.verdict
}

func (h *health) state() resolve.State {
	switch v := h.judged(); {
	case v >= resolve.Draining:
		return v
	case h.ejected():
		return resolve.Down
	case v == resolve.Degraded || h.busy:
		return resolve.Degraded
	case v == resolve.Up || h.up:
		return resolve.Up
	}
	return resolve.Unknown
}

// fit says whether the state lets the address be used.
func (h *health) fit() bool { return h.state() < resolve.Draining }

// steady says whether another success would change nothing.
func (h *health) steady() bool { return h.up && h.bad == 0 && !h.busy && !h.doubt || h.ejected() }

// readmit ends an ejection: the next failure starts another one.
func (h *health) readmit(now time.Time) {
	h.until, h.badAt = time.Time{}, now
	h.good, h.bad = 0, fall-1
}

// succeeded counts a success.
func (h *health) succeeded() {
	h.bad, h.doubt = 0, false
	if h.good = min(h.good+1, rise); h.good == rise {
		h.up, h.busy = true, false
	}
}

// Observe tells the pool how a send to addr, or a dial, ended: ok, or a failure with its cause. An address that is not in the snapshot
// is ignored. A transport whose success proves nothing about the peer (datagrams) tells failures only.
//
// After 2 successes in a row the address is Up. After 3 failures in a row, each within a minute of the one before, it is taken out for
// 10 to 30 s and shown as Down, unless half of the addresses already are; then it stays in use, but does not keep addresses of a lower
// Priority out. CauseBusy is no failure: the address works and asks for less, so it is Degraded until the next 2 successes.
//
// A failure also brings the next look-up forward: the address may have moved. Every sender calls this for every batch, so what changes
// nothing costs no lock.
func (p *Pool) Observe(addr netip.AddrPort, ok bool, cause delivery.Cause) {
	s := p.Snapshot()
	i := s.find(addr)
	if i < 0 || ok && s.Endpoints[i].steady {
		return
	}
	p.mu.Lock()
	defer p.unlock()
	m := p.members[addr]
	if m == nil || p.closed {
		return
	}
	now := p.now()
	switch {
	case ok && !m.ejected():
		m.succeeded()
	case !ok && cause == delivery.CauseBusy:
		m.good, m.busy = 0, true
	case !ok:
		p.hurry(now)
		p.failed(m, now)
	}
	p.publish(now)
}

// failed counts a failure. What is under way to an address that was just ejected says nothing new.
func (p *Pool) failed(m *member, now time.Time) {
	if m.ejected() {
		return
	}
	if now.Sub(m.badAt) > forgetAfter {
		m.bad = 0
	}
	m.good, m.badAt = 0, now
	if m.bad++; m.bad < fall {
		return
	}
	m.bad, m.up, m.doubt = fall, false, true
	if p.ejections() < p.mayEject() {
		m.until = now.Add(ejectLeast + jitter.Splay(ejectSpread))
	}
}

// mayEject is how many addresses may be out on evidence at once.
func (p *Pool) mayEject() int { return len(p.members) / 2 }

func (p *Pool) ejections() (n int) {
	for _, m := range p.sorted {
		if m.ejected() {
			n++
		}
	}
	return n
}

// limitEjections ends those that began to be too many when other addresses went, the oldest first.
func (p *Pool) limitEjections(now time.Time) {
	for n := p.ejections() - p.mayEject(); n > 0; n-- {
		var first *member
		for _, m := range p.sorted {
			if m.ejected() && (first == nil || m.until.Before(first.until)) {
				first = m
			}
		}
		first.readmit(now)
	}
}

// expire ends what ends by time: ejections, and doubts about addresses of which nothing bad was heard for long. It notes when it has to
// look again. A clock that was set back cannot say how long anything lasted, so everything ends.
func (p *Pool) expire(now time.Time) {
	back := now.Before(p.seen)
	p.seen = now
	if !back && (p.due.IsZero() || now.Before(p.due)) {
		return
	}
	for _, m := range p.sorted {
		if m.ejected() && (back || !now.Before(m.until)) {
			m.readmit(now)
		} else if m.doubt && !m.ejected() && (back || now.Sub(m.badAt) >= forgetAfter) {
			m.doubt, m.bad = false, 0
		}
	}
	p.publish(now)
}

// nextExpiry is when expire has to look again; zero: not at all.
func (p *Pool) nextExpiry() (due time.Time) {
	for _, m := range p.sorted {
		var at time.Time
		switch {
		case m.ejected():
			at = m.until
		case m.doubt:
			at = m.badAt.Add(forgetAfter)
		default:
			continue
		}
		if due.IsZero() || at.Before(due) {
			due = at
		}
	}
	return due
}
