package ship

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/delivery"
)

// DropOldest takes records from the inbox of a link that hangs, too. What such a link was dealt and lost again is not held any more: the
// others could be dealt less and less otherwise.
func TestEvictedFromAnInboxIsNotHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newFakeNet(Limits{Blind: true, BatchBytes: 1 << 10, Window: 1 << 10})
		net.send = func(l *fakeLink, _ *Batch) error { return l.hang() }
		e := newTestEngine(net, delivery.Options{QueueBytes: 512 << 10, Overflow: delivery.DropOldest, CloseTimeout: time.Second}, resolveTo(addrs(2)...))
		for range 60 {
			_ = e.Put(slog.LevelInfo, make([]byte, 400))
		}
		time.Sleep(50 * time.Millisecond) // dealt, and not yet taken back
		e.links.Lock()
		inbox := 0
		for _, s := range e.routes[0].slots {
			inbox += s.inbox.n
		}
		if inbox == 0 {
			t.Error("no link has a record that it was not sent")
		}
		e.mu.Lock()
		for e.evictDeep(slog.LevelInfo, 1) {
		}
		e.mu.Unlock()
		held := 0
		for _, s := range e.routes[0].slots {
			held += s.inbox.cost() + s.sent + s.sentRecs*recCost
		}
		if e.held != held {
			t.Errorf("%d are held, the books say %d", held, e.held)
		}
		e.links.Unlock()
		_ = e.Close()
		if e.held != 0 {
			t.Errorf("%d held after Close", e.held)
		}
		balanced(t, e.Stats())
	})
}

// Where the last record was put back is no place to go on from once that record was evicted, by whichever way.
func TestEvictedRecordsAreNoPlaceToGoOnFrom(t *testing.T) {
	for name, evict := range map[string]func(e *Engine){
		"from the queue": func(e *Engine) { e.evictFor(slog.LevelInfo, make([]byte, 300<<10)) }, // which never fits
		"deep":           func(e *Engine) { e.evictDeep(slog.LevelInfo, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			e := loose(t, 512<<10)
			rt := e.routes[0]
			e.links.Lock()
			defer e.links.Unlock()
			e.mu.Lock()
			defer e.mu.Unlock()
			put := func() *Rec {
				r := e.arena.add(slog.LevelInfo, make([]byte, 10))
				e.admit(r)
				return r
			}
			first, second, third := put(), put(), put()
			rt.putBack(first)
			if evict(e); rt.back.n != 0 {
				t.Fatalf("%d records are left", rt.back.n)
			}
			rt.putBack(third)
			if rt.last == first {
				t.Error("the evicted record is where the next one would be put")
			}
			rt.putBack(second)
			if rt.back.head != second || second.next != third || third.next != nil || rt.back.n != 2 {
				t.Errorf("order %v", rt.back.order(t))
			}
			// With others left in the list it is not emptied by the eviction, and last would stay.
			fourth := put()
			rt.putBack(fourth)
			rt.last = second
			if evict(e); rt.last != nil {
				t.Error("an evicted record is remembered")
			}
			for r := rt.back.pop(); r != nil; r = rt.back.pop() {
				e.finishOne(r, delivery.ReasonRejected)
			}
		})
	}
}

// Delivered records that are not yet counted do not keep compaction from the segments they lie in.
func TestCompactCountsWhatIsDelivered(t *testing.T) {
	e := loose(t, 2<<20)
	a := &e.arena
	e.links.Lock()
	defer e.links.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	for n := 0; a.last == nil || a.used < 10*segmentBytes; n++ {
		r := a.add(slog.LevelInfo, make([]byte, 1000))
		if e.admit(r); n%10 == 0 {
			e.queue.push(r)
			continue
		}
		var f run
		f.add(r)
		e.runs = append(e.runs, f) // as deliver leaves them when a caller has mu
	}
	before := a.used
	if !e.compact() || a.used >= before || len(e.runs) != 0 {
		t.Errorf("%d bytes were used, now %d; %d runs are not counted", before, a.used, len(e.runs))
	}
	for r := e.queue.pop(); r != nil; r = e.queue.pop() {
		e.finishOne(r, delivery.ReasonRejected)
	}
	a.check(t, nil)
}
