package ship

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/wholelog/wholelog/delivery"
)

// The shaper lets a burst of 10 ms go at once, then keeps the rate; a quiet time earns nothing more. Of two rates the lower one rules,
// and a large record is paid for by those behind it.
func TestShaper(t *testing.T) {
	const ms = time.Millisecond
	type step struct {
		at   time.Duration
		size int // taken if wait is not positive
		wait time.Duration
	}
	for _, tc := range []struct {
		name  string
		o     delivery.Options
		steps []step
	}{
		{"none", delivery.Options{}, []step{{0, 1 << 20, 0}, {0, 1 << 20, 0}}},
		{"records", delivery.Options{RecordRate: 200}, []step{
			{0, 1, -10 * ms},
			{0, 1, -5 * ms},
			{0, 1, 0},
			{0, 1, 5 * ms},
			{4 * ms, 1, 1 * ms},
			{5 * ms, 1, 0},
			{5 * ms, 1, 5 * ms},
			{time.Hour, 1, 20*ms - time.Hour - 10*ms},
			{time.Hour, 1, -5 * ms},
			{time.Hour, 1, 0},
			{time.Hour, 1, 5 * ms},
		}},
		{"bytes", delivery.Options{ByteRate: 1000}, []step{{0, 100, -10 * ms}, {0, 1, 90 * ms}, {90 * ms, 1, 0}, {90 * ms, 1, 1 * ms}}},
		{"records are the lower one", delivery.Options{RecordRate: 10, ByteRate: 1000}, []step{{0, 1, -10 * ms}, {0, 1, 90 * ms}}},
		{"bytes are the lower one", delivery.Options{RecordRate: 10, ByteRate: 1}, []step{{0, 1, -10 * ms}, {0, 1, 990 * ms}}},
	} {
		s := newShaper(tc.o)
		for i, st := range tc.steps {
			now := stamp{mono: st.at}
			wait := s.wait(now)
			if wait != st.wait {
				t.Errorf("%s, step %d: wait %v, want %v", tc.name, i, wait, st.wait)
			}
			if wait <= 0 {
				s.take(now, st.size)
			}
		}
	}
}

// swapOut spares a record at Warn or above and gives the next one below instead, in whatever place that stands; it does not look for
// one for ever.
func TestSwapOut(t *testing.T) {
	many := make([]slog.Level, 300)
	for i := range many {
		many[i] = slog.LevelWarn
	}
	late := append(slices.Clone(many), slog.LevelInfo)
	for _, tc := range []struct {
		name   string
		behind []slog.Level // records 2, 3, … behind the spared one
		out    uint64
	}{
		{"alone", nil, 0},
		{"the next, the last of all", []slog.Level{slog.LevelInfo}, 2},
		{"the next", []slog.Level{slog.LevelDebug, slog.LevelInfo}, 2},
		{"one in the middle", []slog.Level{slog.LevelWarn, slog.LevelInfo, slog.LevelError}, 3},
		{"the last", []slog.Level{slog.LevelWarn, slog.LevelError, slog.LevelInfo}, 4},
		{"none", []slog.Level{slog.LevelWarn, slog.LevelError}, 0},
		{"none among many", many, 0},
		{"one too far away", late, 0},
	} {
		var l list
		want := []uint64{1}
		for i, level := range tc.behind {
			seq := uint64(i + 2)
			l.push(&Rec{seq: seq, level: level, data: make([]byte, i+1)})
			if seq != tc.out {
				want = append(want, seq)
			}
		}
		var got uint64
		if out := l.swapOut(&Rec{seq: 1, level: slog.LevelWarn, data: make([]byte, 7)}); out != nil {
			if got = out.seq; out.next != nil {
				t.Errorf("%s: what was taken out still points into the list", tc.name)
			}
		}
		if got != tc.out || !slices.Equal(l.order(t), want) {
			t.Errorf("%s: took out %d, left %v", tc.name, got, l.order(t))
		}
		l.push(&Rec{seq: 1000}) // the tail is where it should be
		if !slices.Equal(l.order(t), append(want, 1000)) {
			t.Errorf("%s: then %v", tc.name, l.order(t))
		}
	}
}

// An emptied segment is as good as a new one, but for the blocks of records that it keeps: as many as it had, 8 at most. Its charge
// says so.
func TestEmptySegment(t *testing.T) {
	for _, size := range []int{1, 50, 200, 1000, 60_000} {
		a := arena{budget: 16 << 20}
		var recs []*Rec
		for {
			r := a.add(slog.LevelInfo, make([]byte, size))
			if r == nil || r.seg != a.first {
				break
			}
			recs = append(recs, r)
		}
		s := a.first
		blocks := len(s.blocks)
		if want := (len(recs) + blockRecs - 1) / blockRecs; blocks != want || s.charge != segmentBytes+segmentCost+blocks*blockCost {
			t.Fatalf("%d records of %d bytes: %d blocks, charge %d", len(recs), size, blocks, s.charge)
		}
		a.settled(s, len(recs)-1)
		before, charge := a.used, s.charge
		if !a.settled(s, 1) {
			t.Fatal("not freed")
		}
		kept := min(blocks, keptBlocks)
		if s.n != 0 || len(s.buf) != 0 || len(s.blocks) != kept || s.charge != segmentBytes+segmentCost+kept*blockCost {
			t.Errorf("records of %d bytes: %d of %d blocks kept, charge %d", size, len(s.blocks), blocks, s.charge)
		}
		if a.used != before-charge || a.spareCost != s.charge { // it was not the last one: now a spare
			t.Errorf("charged %d and %d, %d before", a.used, a.spareCost, before)
		}
		last := a.last
		blocks, before = len(last.blocks), a.used
		if a.settled(last, last.open); a.last != last || a.used != before-(blocks-min(blocks, keptBlocks))*blockCost {
			t.Errorf("the last segment was not emptied in place")
		}
	}
}

// The arena gives spares back to make room, refuses what its budget does not hold in every way it could grow, and lets an emptied
// segment go rather than keep it beside a giant.
func TestArenaRoom(t *testing.T) {
	const cost = segmentBytes + segmentCost + blockCost
	a := arena{budget: 4*cost + 3*blockCost}
	var recs []*Rec
	fill := func(size int) {
		for r := a.add(slog.LevelInfo, make([]byte, size)); r != nil; r = a.add(slog.LevelInfo, make([]byte, size)) {
			recs = append(recs, r)
		}
	}
	drain := func() {
		for _, r := range recs {
			r.flags |= done
			a.settled(r.seg, 1)
		}
		recs = nil
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
}

// Records below Warn find the arena full where the reserve begins, whichever way it would have to grow: by nothing, by a block, by a
// spare, by a new segment. Warnings do not.
func TestArenaReserve(t *testing.T) {
	for _, tc := range []struct {
		name        string
		first, size int  // of the record before, and of the one that is refused
		spare       bool // there is one
		left        int  // below the reserve, less than it takes
	}{
		{"nothing", 10, 10, false, -1},
		{"a block", 1, 1, false, blockCost - 1},
		{"a segment", segmentBytes, 10, false, segmentBytes + segmentCost + blockCost - 1},
		{"a spare", segmentBytes, 10, true, segmentBytes + segmentCost + blockCost - 1},
	} {
		a := arena{budget: 1 << 20}
		if tc.spare {
			r := a.add(slog.LevelInfo, make([]byte, segmentBytes))
			a.add(slog.LevelInfo, make([]byte, segmentBytes))
			a.settled(r.seg, 1)
		}
		n := 1
		if tc.name == "a block" {
			n = blockRecs
		}
		for range n {
			a.add(slog.LevelInfo, make([]byte, tc.first))
		}
		if tc.spare && len(a.spare) == 0 { // the record before took it
			a.settled(a.first, 1)
		}
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
