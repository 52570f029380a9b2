package pool

// Stride decides whose turn it is: stride scheduling with virtual time (Waldspurger and Weihl, "Stride Scheduling", 1995). Every
// contender has a pass; the smallest is due, and each use moves it on by 1/weight. That one rule is weighted round robin when all
// keep up and least-loaded when some do not. Nothing about it is random but the order of contenders with the same pass.
//
// It is the state of one picker and not safe for concurrent use. The zero value is ready.
type Stride struct{ now float64 }

// Turn is the place of one contender. Tie decides between equal passes.
type Turn struct {
	pass, step float64
	Tie        uint64
}

// Enter brings a contender in, or back after it was passed over: from the current virtual time on, so that it does not catch up
// with a burst what it did not get.
func (s *Stride) Enter(t *Turn) { t.pass = max(t.pass, s.now) }

// Before says whether t is due before o.
func (t *Turn) Before(o *Turn) bool {
	return t.pass < o.pass || t.pass == o.pass && t.Tie < o.Tie
}

// Weigh sets the weight of t, which must be above 0, from its next turn on.
func (t *Turn) Weigh(weight int) { t.step = 1 / float64(weight) }

// Take gives t its turn.
func (s *Stride) Take(t *Turn) {
	s.now = max(s.now, t.pass)
	t.pass += t.step
}
