package ship

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/wholelog/wholelog/delivery"
)

// A record larger than a segment leaves room in its memory. No other goes there: it would keep the giant's memory, and a giant is never
// compacted.
func TestGiantsLieAlone(t *testing.T) {
	a := arena{budget: 4 << 20}
	var recs, small []*Rec
	for range 10 {
		giant, r := a.add(slog.LevelInfo, make([]byte, segmentBytes+1)), a.add(slog.LevelWarn, make([]byte, 1000))
		if giant.seg == r.seg {
			t.Fatal("a record lies in a giant's segment")
		}
		recs, small = append(recs, giant), append(small, r)
	}
	a.check(t, append(append([]*Rec(nil), recs...), small...))
	for _, r := range recs {
		a.settle(r)
	}
	a.check(t, small)
	if most := segmentBytes + segmentCost + blockCost; a.used > most {
		t.Errorf("ten records of 1000 bytes occupy %d, more than %d", a.used, most)
	}
}

// When the budget has room for a giant's bytes but none for its record, both are given back.
func TestGiantWithoutARecord(t *testing.T) {
	a := arena{budget: 2*segmentBytes + segmentCost + blockCost/2}
	if a.add(slog.LevelInfo, make([]byte, segmentBytes+1)) != nil {
		t.Fatal("admitted beyond the budget")
	}
	a.check(t, nil)
	if a.used != 0 {
		t.Errorf("%d bytes charged for nothing", a.used)
	}
}

// Warnings that stay between large records that go keep little: the large ones find room again, at a destination that never answers.
func TestDropOldestAmongGiants(t *testing.T) {
	e := loose(t, 4<<20)
	e.state = running // without a dispatcher: nothing is sent
	for n := range 200 {
		if err := e.Put(slog.LevelInfo, make([]byte, segmentBytes+1)); err != nil {
			t.Fatalf("record %d: %v", n, err)
		}
		if err := e.Put(slog.LevelWarn, make([]byte, 1000)); err != nil {
			t.Fatalf("warning %d: %v", n, err)
		}
	}
	e.wg.Go(e.dispatch)
}

// What a link gets may be more than a segment. Moved together it lies in segments of the usual size, so that what comes back from the
// link can be moved again, and callers hear of the room that was won.
func TestGatherInSegments(t *testing.T) {
	const size = 1000
	e := loose(t, 4<<20)
	a := &e.arena
	var b Batch
	e.mu.Lock()
	for n := range uint32(2000) {
		r := a.add(slog.LevelInfo, numbered(n, size))
		if e.admit(r); n%10 == 0 {
			b.recs = append(b.recs, r)
		} else {
			e.finishOne(r, delivery.ReasonRejected)
		}
	}
	a.check(t, b.recs)
	e.refuse = true
	roomy := make(chan struct{})
	e.roomy = roomy
	e.mu.Unlock()

	e.links.Lock()
	e.pin(&b)
	e.links.Unlock()

	e.mu.Lock()
	defer e.mu.Unlock()
	a.check(t, b.recs)
	for i, r := range b.recs {
		if r.seg.alone() || !bytes.Equal(r.Bytes(), numbered(uint32(10*i), size)) || r.batch != &b {
			t.Fatalf("record %d was not moved well: segment of %d", i, cap(r.seg.buf))
		}
	}
	select {
	case <-roomy:
	default:
		t.Error("who waits for room was not told")
	}
	if e.refuse {
		t.Errorf("refuses with %d of %d used", a.used, a.budget)
	}
	for _, r := range b.recs {
		e.unpin(r)
		e.finishOne(r, delivery.ReasonRejected)
	}
	if e.pinned != 0 {
		t.Errorf("%d pinned", e.pinned)
	}
	a.check(t, nil)
}
