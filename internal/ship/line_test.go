package ship

import (
	"testing"

	"github.com/wholelog/wholelog/internal/pool"
)

// A heap of links deals in the same order as a look at each of them.
func TestLineKeepsTheOrder(t *testing.T) {
	var s pool.Stride
	var l line
	for i := range 1000 {
		sl := &slot{ep: &endpoint{}}
		sl.turn.Tie = uint64(i*7919) % 1000
		sl.turn.Weigh(1 + i%5)
		s.Enter(&sl.turn)
		l = append(l, sl)
	}
	l.init()
	for range 20_000 {
		i := l.due(nil)
		for _, other := range l {
			if other.turn.Before(&l[i].turn) {
				t.Fatal("another one was due")
			}
		}
		s.Take(&l[i].turn)
		l.sink(i)
	}
	first := l[0]
	if i := l.due(first.ep); l[i] == first || l[i].turn.Before(&first.turn) {
		t.Errorf("place %d instead of the first", i)
	}
	for len(l) > 1 {
		l.remove(len(l) / 2)
	}
	if l.due(l[0].ep) != 0 || line(nil).due(nil) != -1 {
		t.Error("the last one, and none")
	}
}
