package ship

// epochs lets Flush wait for everything that was accepted before it, though records are settled in any order: every record belongs
// to the epoch that was current when it came, a Flush closes that epoch, and it is over when it and all older ones have no open
// record. Guarded by the engine's mu.
type epochs struct {
	base    uint64 // number of open[0]
	open    []int  // unsettled records of each epoch, oldest first; the last is current
	waiters []flushWaiter
}

type flushWaiter struct {
	epoch uint64
	over  chan struct{}
}

// enter counts a record into the current epoch and returns its number.
func (s *epochs) enter() uint64 {
	if len(s.open) == 0 {
		s.open = append(s.open, 0)
	}
	last := len(s.open) - 1
	s.open[last]++
	return s.base + uint64(last)
}

// leave counts n records out, and ends the waits that these were the last of.
func (s *epochs) leave(epoch uint64, n int) {
	s.open[epoch-s.base] -= n
	if s.open[0] > 0 {
		return
	}
	gone := 0
	for gone < len(s.open)-1 && s.open[gone] == 0 { // the current epoch stays
		gone++
	}
	if gone > 0 {
		s.open = s.open[:copy(s.open, s.open[gone:])]
		s.base += uint64(gone)
	}
	keep := s.waiters[:0]
	for _, w := range s.waiters {
		if s.reached(w.epoch) {
			close(w.over)
		} else {
			keep = append(keep, w)
		}
	}
	clear(s.waiters[len(keep):])
	s.waiters = keep
}

// reached says whether epoch and all older ones have no open record.
func (s *epochs) reached(epoch uint64) bool {
	return epoch < s.base || epoch == s.base && (len(s.open) == 0 || s.open[0] == 0)
}

// close ends the current epoch and returns a channel that is closed when it is over, or nil when it is over already.
func (s *epochs) close() chan struct{} {
	if len(s.open) == 0 || len(s.open) == 1 && s.open[0] == 0 {
		return nil
	}
	last := len(s.open) - 1
	if s.open[last] > 0 {
		s.open = append(s.open, 0)
	} else {
		last-- // nothing came since the last close: wait for that one
	}
	w := flushWaiter{s.base + uint64(last), make(chan struct{})}
	s.waiters = append(s.waiters, w)
	return w.over
}

// drop forgets a wait that ended by its context.
func (s *epochs) drop(over chan struct{}) {
	for i, w := range s.waiters {
		if w.over == over {
			s.waiters = append(s.waiters[:i], s.waiters[i+1:]...)
			return
		}
	}
}
