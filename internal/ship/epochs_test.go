package ship

import "testing"

func isOver(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// A wait ends when all that came before it has left, in whatever order that happens, and not before; what comes after it is not its
// business.
func TestR56_Epochs(t *testing.T) {
	var s epochs
	if s.close() != nil {
		t.Fatal("a wait for nothing")
	}
	first := s.enter()
	s.enter()
	a := s.close()
	again := s.close() // nothing came since: the same wait
	second := s.enter()
	b := s.close()
	third := s.enter()
	if first == second || second == third || len(s.open) != 3 {
		t.Fatalf("%d, %d, %d, %+v", first, second, third, s)
	}
	s.leave(second, 1)
	if isOver(a) || isOver(b) {
		t.Fatal("over while older ones are open")
	}
	s.leave(first, 1)
	if isOver(a) {
		t.Fatal("over with one of two open")
	}
	s.leave(first, 1)
	if !isOver(a) || !isOver(again) || !isOver(b) {
		t.Fatal("not over, though all before have left")
	}
	if len(s.open) != 1 || s.base != third || len(s.waiters) != 0 {
		t.Fatalf("%+v", s)
	}
	s.leave(third, 1)
	if s.close() != nil || len(s.open) != 1 {
		t.Fatalf("empty again, but %+v", s)
	}
}

// A wait that ended by its context is forgotten; others go on, and one that is unknown changes nothing.
func TestR56_EpochsForgetAWait(t *testing.T) {
	var s epochs
	n := s.enter()
	a, b := s.close(), s.close()
	s.drop(a)
	s.drop(a)
	s.drop(make(chan struct{}))
	if len(s.waiters) != 1 {
		t.Fatalf("%d waits", len(s.waiters))
	}
	m := s.enter()
	c := s.close()
	s.leave(n, 1)
	if isOver(a) || !isOver(b) || isOver(c) || len(s.waiters) != 1 {
		t.Fatalf("forgotten %v, first %v, second %v, %d waits", isOver(a), isOver(b), isOver(c), len(s.waiters))
	}
	s.leave(m, 1)
	if !isOver(c) || len(s.waiters) != 0 {
		t.Fatalf("%+v", s)
	}
}
