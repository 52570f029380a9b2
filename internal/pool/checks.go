package pool

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/wholelog/wholelog/jitter"
	"github.com/wholelog/wholelog/resolve"
)

const (
	defaultCheckEvery = 3 * time.Second

	// A check comes 0.8 to 1.0 intervals after the one before, which is within the promised ±20 %, and lets fall of them take no
	// longer than fall intervals. A new address has its first check at a random moment of one interval.
	checkCentre = 0.9
	checkSpread = 1.0 / 9

	// leastSweep keeps thousands of addresses, of which one is always due, from taking the processor.
	leastSweep = 10 * time.Millisecond

	// asleep is the number of intervals without a sweep that show that the process was frozen.
	asleep = 3

	// maxStrays is how many calls may be left running, beside one for each address, when a Check ignores its context and addresses
	// come and go.
	maxStrays = 16
)

var (
	errStrayCheck = errors.New("it has not returned from an earlier call")
	errNoSense    = errors.New("its report makes no sense")
)

// checks belongs to the goroutine of the checks. It is guarded by the pool's mu, but for the first three, which stay as they are.
type checks struct {
	every     time.Duration
	connected bool          // connected addresses are left out
	poke      chan struct{} // wakes the goroutine

	running bool
	swept   time.Time // when the members were last gone through
	resweep time.Time // and when they are to be again
	strays  []<-chan struct{}
}

// checking is where one address is in its checks.
type checking struct {
	turn  time.Time       // when the next check begins; zero: not yet drawn
	under bool            // a check is under way
	stray <-chan struct{} // one that was given up and has not returned
}

func newChecks(o resolve.Options) checks {
	c := checks{every: o.CheckEvery, poke: make(chan struct{}, 1), connected: skipsConnected(o.Check)}
	if c.every == 0 {
		c.every = defaultCheckEvery
	}
	return c
}

// skipsConnected asks a Check, whose code is not ours.
func skipsConnected(c resolve.Check) (yes bool) {
	defer func() {
		if recover() != nil {
			yes = false
		}
	}()
	s, ok := c.(interface{ SkipConnected() bool })
	return ok && s.SkipConnected()
}

// beginChecks starts the goroutine of the checks, after the first look-up that found anything, or tells it of new addresses. The
// caller holds mu.
func (p *Pool) beginChecks() {
	switch {
	case p.c.Options.Check == nil || len(p.sorted) == 0:
	case p.running:
		p.wake()
	default:
		p.running = true
		p.swept = p.now()
		p.wg.Go(p.runChecks)
	}
}

// runChecks starts the checks when they are due, until Close.
func (p *Pool) runChecks() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-p.poke:
		case <-p.ctx.Done():
			return
		}
		timer.Reset(p.sweep())
	}
}

func (p *Pool) wake() {
	select {
	case p.poke <- struct{}{}:
	default:
	}
}

// rouse wakes the goroutine of the checks if it has overslept: its timer stood still while the process was frozen. The caller holds mu.
func (p *Pool) rouse(now time.Time) {
	if p.running && now.After(p.resweep) {
		p.wake()
	}
}

// sweep starts the checks that are due and returns how long until the next one is. After a freeze, or when the clock was set, all
// would be due at once, or none for long: then the turns are drawn anew.
func (p *Pool) sweep() time.Duration {
	p.mu.Lock()
	defer p.unlock()
	if p.closed {
		return p.every
	}
	now := p.now()
	anew := now.Before(p.swept) || now.Sub(p.swept) > asleep*p.every
	p.swept, p.resweep = now, now.Add(p.every)
	for _, m := range p.sorted {
		if m.turn.IsZero() || anew {
			m.turn = now.Add(jitter.Splay(p.every))
		}
		if !now.Before(m.turn) {
			m.turn = now.Add(jitter.Duration(time.Duration(float64(p.every)*checkCentre), checkSpread))
			if !m.under {
				m.under = true
				p.wg.Go(func() { p.check(m) })
			}
		}
		if m.turn.Before(p.resweep) {
			p.resweep = m.turn
		}
	}
	return max(p.resweep.Sub(now), leastSweep)
}

// check makes one check of m, or finds that none is needed. It holds no lock while it asks others.
func (p *Pool) check(m *member) {
	if p.connected && p.hooks.Connected != nil && p.hooks.Connected(m.addr) {
		p.mu.Lock()
		defer p.unlock()
		m.under, m.failures = false, 0 // the connection says as much as another one would
		p.publish(p.now())
		return
	}
	r, err := p.examine(m)
	p.mu.Lock()
	defer p.unlock()
	m.under = false
	if p.members[m.addr] != m || p.closed {
		return
	}
	now := p.now()
	before := m.judged()
	m.judge(r, err, now)
	if now := m.judged(); now != before && now >= resolve.Draining {
		p.news.tell(CauseHealth, fmt.Errorf("check of %s: it is %v (%s)", m.addr, now, m.text))
	}
	if m.warning != r.Warning {
		if m.warning = r.Warning; r.Warning != "" {
			p.news.tell(CauseHealth, fmt.Errorf("check of %s: %s", m.addr, brief(r.Warning)))
		}
	}
	p.publish(now)
}

// examine calls the Check. One that has not returned from an earlier call for this address is not called again before it has.
func (p *Pool) examine(m *member) (resolve.Report, error) {
	if unreturned(m.stray) || !p.room() {
		return resolve.Report{}, errStrayCheck
	}
	ctx, cancel := context.WithTimeout(p.ctx, p.every/2)
	defer cancel()
	r, stray, err := ask(ctx, "it", func(ctx context.Context) (resolve.Report, error) {
		return p.c.Options.Check.Check(ctx, m.addr)
	})
	m.stray = stray // only ever used from the one check under way
	if stray != nil {
		p.mu.Lock()
		p.strays = append(p.strays, stray)
		p.mu.Unlock()
		return resolve.Report{}, fmt.Errorf("no answer within %v: %w", p.every/2, err)
	}
	if err == nil && (r.State > resolve.Maint || r.Weight < 0) {
		err = fmt.Errorf("%w: state %v, weight %d", errNoSense, r.State, r.Weight)
	}
	if err != nil {
		return resolve.Report{}, err
	}
	return r, nil
}

// room says whether another call may be made while earlier ones, of addresses that left perhaps, have not returned.
func (p *Pool) room() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.strays = slices.DeleteFunc(p.strays, func(s <-chan struct{}) bool { return !unreturned(s) })
	return len(p.strays) < len(p.members)+maxStrays
}

// judge takes in what a check found: see health.
func (h *health) judge(r resolve.Report, err error, now time.Time) {
	h.text, h.textAt = brief(r.Note), now
	if r.Warning != "" {
		h.text = brief(r.Warning)
	}
	if err != nil {
		h.failures++
		h.text = brief(fmt.Sprintf("check: %v", err))
	} else {
		h.failures = 0
	}
	if r.State == resolve.Unknown && r.Weight == 0 {
		if h.silent++; h.silent >= silentLimit {
			h.verdict, h.percent = resolve.Unknown, fullPercent
		}
		return
	}
	h.silent = 0
	if r.Weight > 0 {
		h.percent = min(r.Weight, maxPercent)
	}
	switch r.State {
	case resolve.Unknown:
		return
	case resolve.Up, resolve.Degraded: // it works, whatever sends met
		if h.ejected() {
			h.readmit(now)
		}
		h.doubt = false
	}
	h.verdict = r.State
}

// brief is a Check's text in a form that can be shown: one line, valid, and not long.
func brief(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "�")), " ")
	return strings.ToValidUTF8(text[:min(len(text), maxText)], "")
}

// Text returns what the Check last said of addr, and when; "" when it said nothing.
func (p *Pool) Text(addr netip.AddrPort) (text string, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m := p.members[addr]; m != nil {
		return m.text, m.textAt
	}
	return "", time.Time{}
}
