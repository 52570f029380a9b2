package jitter

import (
	"math"
	"strconv"
	"time"
)

// Defaults of [Backoff].
const (
	defaultBase   = 250 * time.Millisecond
	defaultMax    = 30 * time.Second
	defaultFactor = 2
)

// Backoff says how long to wait between attempts. It is a value without state: the caller counts the attempts. The zero value
// is ready.
type Backoff struct {
	Base   time.Duration // the delay after the first failure, before noise; zero or negative: 250 ms
	Max    time.Duration // no delay is longer, whatever Base and Factor say; zero or negative: 30 s
	Factor float64       // each delay is Factor times the one before; zero, negative or NaN: 2; below 1 delays shrink
	Mode   Mode          // how much of a delay is random; zero: Full
}

// Mode says how much of a delay is random.
type Mode uint8

// The modes of a [Backoff]. A value that is none of these acts as Full.
const (
	// Full: uniform in [0, delay). Clients that failed together spread best.
	Full Mode = iota
	// Equal: uniform in [delay/2, delay). Never returns at once.
	Equal
	// None: the delay itself. Clients that failed together return together.
	None
)

// String returns the name of the mode.
func (m Mode) String() string {
	switch m {
	case Full:
		return "Full"
	case Equal:
		return "Equal"
	case None:
		return "None"
	}
	return "Mode(" + strconv.Itoa(int(m)) + ")"
}

// Delay returns how long to wait after a failed attempt. attempt counts from 0; negative ones count as 0. No attempt is too
// large: the delay stays at Max. It is never negative.
func (b Backoff) Delay(attempt int) time.Duration {
	base, limit, factor := b.Base, b.Max, b.Factor
	if base <= 0 {
		base = defaultBase
	}
	if limit <= 0 {
		limit = defaultMax
	}
	if !(factor > 0) { // also true for NaN
		factor = defaultFactor
	}
	d := fromFloat(float64(base)*math.Pow(factor, float64(max(attempt, 0))), limit)
	switch b.Mode {
	case None:
		return d
	case Equal:
		return d/2 + Splay(d-d/2)
	default:
		return Splay(d)
	}
}
