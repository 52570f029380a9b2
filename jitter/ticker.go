package jitter

import (
	"sync"
	"time"
)

// Ticker ticks at its own slot of a period: at the moments that [Next] gives, of the wall clock. It does not drift, and a
// clock that is set takes the ticks with it. Like a [time.Ticker] it drops ticks for a slow receiver.
type Ticker struct {
	C <-chan time.Time // the ticks; never closed

	period, phase time.Duration
	c             chan time.Time // C, for sending

	mu      sync.Mutex // held while sending and stopping, so that no tick follows Stop
	stopped bool
	slot    time.Time // of the coming tick
	timer   *time.Timer
}

// NewTicker returns a Ticker whose slot is [Phase](key, period), or a random one for an empty key. The first tick comes at the
// slot too, after at most one period, so that processes that start together do not tick together. NewTicker panics for
// period ≤ 0, as [time.NewTicker] does. Stop the Ticker to release it; it has no goroutine of its own.
func NewTicker(period time.Duration, key string) *Ticker {
	if period <= 0 {
		panic("jitter: non-positive period for NewTicker")
	}
	phase := Splay(period)
	if key != "" {
		phase = Phase(key, period)
	}
	c := make(chan time.Time, 1)
	t := &Ticker{C: c, c: c, period: period, phase: phase}
	t.mu.Lock() // tick waits until timer is set
	defer t.mu.Unlock()
	t.slot = Next(time.Now(), period, phase)
	t.timer = time.AfterFunc(time.Until(t.slot), t.tick)
	return t
}

func (t *Ticker) tick() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return
	}
	now := time.Now()
	select {
	case t.c <- now:
	default:
	}
	// Timers run by the monotonic clock, slots by the wall clock. When the two differ a little, the timer fires just before
	// its slot, and the next slot is that one again.
	slot := Next(now, t.period, t.phase)
	if slot.Equal(t.slot) {
		slot = slot.Add(t.period)
	}
	t.slot = slot
	t.timer.Reset(time.Until(slot))
}

// Stop ends the ticks. After it returns no tick can be received, not even one that was waiting in C. It may be called more
// than once.
func (t *Ticker) Stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
	t.timer.Stop()
	select {
	case <-t.c:
	default:
	}
}
