package pool

import "math"

// Stride decides whose turn it is: stride scheduling with virtual time (Waldspurger and Weihl, "Stride Scheduling", 1995). Every
// contender has a pass; the smallest is due, and each use moves it on by 1/weight. That one rule is weighted round robin when all
// keep up and least-loaded when some do not. Nothing about it is random but the order of contenders with the same pass.
//
// It is the state of one picker and not safe for concurrent use. The zero value is ready.
type Stride struct{ now float64 }

// Turn is the place of one contender. Tie decides between equal passes.
type Turn struct {
	pass float64
	Tie  uint64
}

// Enter brings a contender in, or back after it was passed over: from the current virtual time on, so that it does not catch up
// with a burst what it did not get.
func (s *Stride) Enter(t *Turn) { t.pass = math.Max(t.pass, s.now) }

// Before says whether t is due before o.
func (t *Turn) Before(o *Turn) bool {
	return t.pass < o.pass || t.pass == o.pass && t.Tie < o.Tie
}

// Take gives t its turn, with a weight above 0.
func (s *Stride) Take(t *Turn, weight int) {
	s.now = math.Max(s.now, t.pass)
	t.pass += 1 / float64(weight)
}
