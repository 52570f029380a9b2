package pool

import "testing"

// due returns the contender whose turn it is.
func due(turns []*Turn) int {
	best := 0
	for i, t := range turns {
		if t.Before(turns[best]) {
			best = i
		}
	}
	return best
}

func TestStrideSharesByWeight(t *testing.T) {
	for _, tc := range []struct {
		weights []int
		rounds  int
		want    []int
	}{
		{[]int{100, 100, 100}, 3134, []int{1045, 1045, 1044}},
		{[]int{300, 200, 100}, 600, []int{300, 200, 100}},
		{[]int{1, 99}, 1000, []int{10, 990}},
		{[]int{100}, 10, []int{10}},
	} {
		var s Stride
		turns := make([]*Turn, len(tc.weights))
		for i := range turns {
			turns[i] = &Turn{Tie: uint64(i)}
			turns[i].Weigh(tc.weights[i])
			s.Enter(turns[i])
		}
		got := make([]int, len(turns))
		for range tc.rounds {
			i := due(turns)
			got[i]++
			s.Take(turns[i])
		}
		for i, want := range tc.want {
			if d := got[i] - want; d < -1 || d > 1 {
				t.Errorf("weights %v: shares %v, want %v", tc.weights, got, tc.want)
				break
			}
		}
	}
}

// Whoever comes back after it was passed over gets its share from then on, and no burst for the past.
func TestStrideReentryDoesNotCatchUp(t *testing.T) {
	var s Stride
	a, b := &Turn{Tie: 1}, &Turn{Tie: 2}
	a.Weigh(100)
	b.Weigh(100)
	s.Enter(a)
	s.Enter(b)
	for range 1000 {
		s.Take(a) // b was passed over
	}
	s.Enter(b)
	got := 0
	for range 100 {
		if i := due([]*Turn{a, b}); i == 1 {
			got++
			s.Take(b)
		} else {
			s.Take(a)
		}
	}
	if got < 50 || got > 51 {
		t.Errorf("got %d of 100 after coming back", got)
	}
}
