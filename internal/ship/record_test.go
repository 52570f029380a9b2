package ship

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// order returns the sequence numbers of l, having checked its book-keeping.
func (l *list) order(t *testing.T) []uint64 {
	t.Helper()
	var seqs []uint64
	bytes := 0
	var last *Rec
	for r := l.head; r != nil; r = r.next {
		seqs = append(seqs, r.seq)
		bytes += len(r.data)
		last = r
	}
	if len(seqs) != l.n || bytes != l.bytes || last != l.tail {
		t.Fatalf("%d records of %d bytes, counted %d of %d; tail %v, last %v", len(seqs), bytes, l.n, l.bytes, l.tail, last)
	}
	return seqs
}

// Records come back in any order and stand in order of Seq; a list drawn from another keeps both in order.
func TestList(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for round := range 200 {
		var back list
		var at *Rec
		perm := rnd.Perm(1 + round%40)
		for _, i := range perm {
			at = back.insert(at, &Rec{seq: uint64(i), data: make([]byte, 10)})
		}
		if got := back.order(t); !slices.IsSorted(got) || len(got) != len(perm) {
			t.Fatalf("%v became %v", perm, got)
		}
		var hand list
		for limit := range 5 {
			const one = 10 + recCost
			most := limit*7*one - 1
			hand.draw(&back, most)
			if got := append(hand.order(t), back.order(t)...); !slices.IsSorted(got) || len(got) != len(perm) {
				t.Fatalf("drawn up to %d: %v", most, got)
			}
			if hand.cost() > max(most, one) || hand.cost() != hand.n*one {
				t.Fatalf("%d records cost %d in a hand of %d", hand.n, hand.cost(), most)
			}
			if hand.n < min(len(perm), max(limit*7-1, 1)) {
				t.Fatalf("%d records of %d in a hand of %d", hand.n, len(perm), most)
			}
		}
	}
}
