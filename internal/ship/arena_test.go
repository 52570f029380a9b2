package ship

import (
	"bytes"
	"log/slog"
	"math/rand/v2"
	"testing"
)

// settle ends a record of an arena that has no engine, and says whether that freed memory.
func (a *arena) settle(r *Rec) bool {
	var f run
	f.add(r)
	return a.settled(&f)
}

// occupied is what a holds, counted one by one.
func (a *arena) occupied() (used, spare int) {
	for s := a.first; s != nil; s = s.next {
		used += cap(s.buf) + segmentCost
	}
	for _, list := range [][]*segment{a.spare, a.giants} {
		for _, s := range list {
			spare += cap(s.buf) + segmentCost
		}
	}
	return used, spare + a.blocks.spare*blockCost
}

// check compares the books of a with what is there, recs being all that are not settled. Full blocks are in no list: they are counted by
// their records.
func (a *arena) check(t *testing.T, recs []*Rec) {
	t.Helper()
	blocks := make(map[*block]int)
	live := make(map[*segment]int)
	open := make(map[*segment]int)
	for _, r := range recs {
		blocks[r.block]++
		live[r.seg] += len(r.data)
		open[r.seg]++
	}
	for b, n := range blocks {
		if b.used != n {
			t.Fatalf("a block of %d records says %d", n, b.used)
		}
	}
	dead := 0
	for s := a.first; s != nil; s = s.next {
		if s.live != live[s] || s.open != open[s] {
			t.Fatalf("a segment of %d records, %d bytes, says %d, %d", open[s], live[s], s.open, s.live)
		}
		dead += len(s.buf) - s.live
	}
	used, spare := a.occupied()
	if used += len(blocks) * blockCost; a.used != used || a.spareCost != spare || a.dead != dead {
		t.Fatalf("charged %d and %d, occupied %d and %d; dead %d, says %d", a.used, a.spareCost, used, spare, dead, a.dead)
	}
	if a.used+a.spareCost > a.budget {
		t.Fatalf("charged %d + %d, budget %d", a.used, a.spareCost, a.budget)
	}
}

// The charge of the arena is what its segments and blocks occupy, in every state, and all of it is repaid.
func TestArenaCharges(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	a := arena{budget: 1 << 20}
	var recs []*Rec
	want := make(map[*Rec]byte)
	for round := range 200 {
		for i := 0; ; i++ {
			fill, size := byte(rnd.Uint32()), rnd.IntN(3000)
			if round%20 == 19 {
				size = rnd.IntN(200_000)
			}
			r := a.add(slog.LevelInfo, bytes.Repeat([]byte{fill}, size))
			if r == nil {
				break
			}
			recs = append(recs, r)
			want[r] = fill
		}
		a.check(t, recs)
		rnd.Shuffle(len(recs), func(i, j int) { recs[i], recs[j] = recs[j], recs[i] })
		keep := rnd.IntN(len(recs) + 1)
		for _, r := range recs[keep:] {
			if !bytes.Equal(r.Bytes(), bytes.Repeat([]byte{want[r]}, len(r.data))) {
				t.Fatal("a record changed")
			}
			a.settle(r)
		}
		recs = recs[:keep]
		a.check(t, recs)
	}
	for _, r := range recs {
		a.settle(r)
	}
	a.rest()
	if a.first != a.last || len(a.last.buf) != 0 || len(a.spare) > 1 || a.blocks.spare > 1 || a.dead != 0 {
		t.Fatalf("not empty: %+v", a)
	}
}

// A record is used again as soon as it is settled, whatever becomes of its neighbours; so one that stays costs no more than its block.
func TestBlocksAreReused(t *testing.T) {
	a := arena{budget: 16 << 20}
	var kept []*Rec
	for range 100 { // of every block one record stays
		var recs []*Rec
		for range 10 * blockRecs {
			recs = append(recs, a.add(slog.LevelInfo, []byte("m")))
		}
		kept = append(kept, recs[0])
		for _, r := range recs[1:] {
			a.settle(r)
		}
		a.check(t, kept)
	}
	if most := 12 * blockCost; a.used+a.spareCost > 2*(segmentBytes+segmentCost)+most {
		t.Errorf("%d records cost %d", len(kept), a.used+a.spareCost)
	}
}

// The arena gives spares back to make room, refuses what its budget does not hold in every way it could grow, and lets an emptied
// segment go rather than keep it beside a giant.
func TestArenaRoom(t *testing.T) {
	const cost = segmentBytes + segmentCost
	a := arena{budget: 4*cost + 4*blockCost}
	var recs []*Rec
	fill := func(size int) {
		for r := a.add(slog.LevelInfo, make([]byte, size)); r != nil; r = a.add(slog.LevelInfo, make([]byte, size)) {
			recs = append(recs, r)
		}
		a.check(t, recs)
	}
	drain := func() {
		for _, r := range recs {
			a.settle(r)
		}
		recs = nil
		a.check(t, recs)
	}
	fill(segmentBytes)
	if len(recs) != 4 {
		t.Fatalf("%d segments", len(recs))
	}
	drain()
	if len(a.spare) != 3 {
		t.Fatalf("%d spares", len(a.spare))
	}
	if r := a.add(slog.LevelInfo, make([]byte, 3*segmentBytes)); r == nil { // needs what spares and the emptied one occupy
		t.Fatal("no room for a giant")
	} else if recs = append(recs, r); len(a.spare) != 1 || a.first != a.last || a.used+a.spareCost > a.budget {
		t.Fatalf("%d spares beside a giant, charged %d of %d", len(a.spare), a.used+a.spareCost, a.budget)
	}
	drain()
	if a.first != nil || a.used != 0 || len(a.spare) != 1 {
		t.Fatalf("not empty: charged %d, %d spares", a.used, len(a.spare))
	}
	fill(1) // the blocks of short records are what the budget has no more room for
	if a.first != a.last || len(a.spare) != 0 || a.used > a.budget || a.used+blockCost <= a.budget {
		t.Fatalf("%d spares, charged %d of %d", len(a.spare), a.used, a.budget)
	}
	drain()
	fill(segmentBytes) // needs what the idle blocks occupy
	if len(recs) != 4 {
		t.Fatalf("%d segments after many blocks", len(recs))
	}
}

// Records below Warn find the arena full where the reserve begins, whichever way it would have to grow: by nothing, by a block, by a
// spare, by a new segment. Warnings do not.
func TestArenaReserve(t *testing.T) {
	for _, tc := range []struct {
		name  string
		size  int                          // of the record that is refused
		begin func(t *testing.T, a *arena) // what was there before
		left  int                          // below the reserve, less than it takes
	}{
		{"nothing", 10, func(_ *testing.T, a *arena) { a.add(slog.LevelInfo, make([]byte, 10)) }, -1},
		{"a block", 1, func(_ *testing.T, a *arena) {
			for range blockRecs {
				a.add(slog.LevelInfo, make([]byte, 1))
			}
		}, blockCost - 1},
		{"an idle block", 1, func(t *testing.T, a *arena) {
			var recs []*Rec
			for range 2 * blockRecs {
				recs = append(recs, a.add(slog.LevelInfo, make([]byte, 1)))
			}
			for _, r := range recs[blockRecs:] {
				a.settle(r)
			}
			if !a.blocks.idle() {
				t.Error("no block is idle")
			}
		}, blockCost - 1},
		{"a segment", 10, func(_ *testing.T, a *arena) { a.add(slog.LevelInfo, make([]byte, segmentBytes)) }, segmentBytes + segmentCost - 1},
		{"a spare", 10, func(t *testing.T, a *arena) {
			r := a.add(slog.LevelInfo, make([]byte, segmentBytes))
			a.add(slog.LevelInfo, make([]byte, segmentBytes))
			if a.settle(r); len(a.spare) != 1 {
				t.Error("no spare")
			}
		}, segmentBytes + segmentCost - 1},
	} {
		a := arena{budget: 1 << 20}
		tc.begin(t, &a)
		a.reserve = a.budget - a.used - tc.left
		before := a.used
		if a.add(slog.LevelInfo, make([]byte, tc.size)) != nil || a.used != before {
			t.Errorf("%s: a record of no urgency took what is reserved", tc.name)
		}
		a.reserve--
		if tc.left >= 0 && a.add(slog.LevelInfo, make([]byte, tc.size)) == nil {
			t.Errorf("%s: refused below the reserve", tc.name)
		}
		a.reserve = a.budget
		if a.add(slog.LevelWarn, make([]byte, tc.size)) == nil {
			t.Errorf("%s: a warning was refused", tc.name)
		}
	}
}
