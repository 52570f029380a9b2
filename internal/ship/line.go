package ship

// line holds slots as a binary heap: the first is due before all others. A pick among thousands of addresses then costs little more
// than one among three.
type line []*slot

// init makes a heap of slots in any order.
func (l line) init() {
	for i := len(l)/2 - 1; i >= 0; i-- {
		l.sink(i)
	}
}

// sink moves the slot at i to its place behind those that are due before it, after its turn was moved on.
func (l line) sink(i int) {
	s := l[i]
	for {
		child := 2*i + 1
		if child >= len(l) {
			break
		}
		if other := child + 1; other < len(l) && l[other].turn.Before(&l[child].turn) {
			child = other
		}
		if !l[child].turn.Before(&s.turn) {
			break
		}
		l[i] = l[child]
		i = child
	}
	l[i] = s
}

// due returns the place of the slot whose turn it is, at another address than avoid if there is one; -1 when the line is empty.
func (l line) due(avoid *endpoint) int {
	if len(l) == 0 {
		return -1
	}
	if avoid == nil || l[0].ep != avoid {
		return 0
	}
	best := 0
	for i, s := range l {
		if s.ep != avoid && (best == 0 || s.turn.Before(&l[best].turn)) {
			best = i
		}
	}
	return best
}

// remove takes the slot at i out of line. The heap is made anew: that is rare, and the place may be any.
func (l *line) remove(i int) {
	last := len(*l) - 1
	(*l)[i] = (*l)[last]
	(*l)[last] = nil
	*l = (*l)[:last]
	l.init()
}
