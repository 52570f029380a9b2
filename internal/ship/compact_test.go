package ship

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/delivery"
)

// loose puts an engine together whose queue holds these records, without a dispatcher.
func loose(t *testing.T, budget int) *Engine {
	t.Helper()
	e := newTestEngine(sink{}, delivery.Options{QueueBytes: budget, Overflow: delivery.DropOldest}, resolveTo(addrs(1)...))
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// numbered is a record of size bytes that says which one it is.
func numbered(n uint32, size int) []byte {
	b := bytes.Repeat([]byte{byte(n)}, size)
	binary.BigEndian.PutUint32(b, n)
	return b
}

// Of ten segments one record in ten is left: they come to lie in one or two, whole and in their order, and the rest is free.
func TestCompact(t *testing.T) {
	const size = 1000
	e := loose(t, 2<<20)
	a := &e.arena
	e.links.Lock()
	defer e.links.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	var kept []*Rec
	for n := uint32(0); a.last == nil || a.used < 10*segmentBytes; n++ {
		r := a.add(slog.LevelInfo, numbered(n, size))
		if e.admit(r); n%10 == 0 {
			e.queue.push(r)
			kept = append(kept, r)
		} else {
			e.finishOne(r, delivery.ReasonRejected)
		}
	}
	a.check(t, kept)
	if !a.worthy() {
		t.Fatalf("%d bytes are dead, and it is not worth it", a.dead)
	}
	before := a.used
	for e.compact() {
		a.check(t, kept)
	}
	if a.used > before-6*segmentBytes {
		t.Errorf("%d bytes were used, now %d", before, a.used)
	}
	for i, r := range kept {
		if !bytes.Equal(r.Bytes(), numbered(uint32(10*i), size)) {
			t.Fatalf("record %d changed", i)
		}
	}
	if a.worthy() {
		t.Error("worth it again at once")
	}
	for r := e.queue.pop(); r != nil; r = e.queue.pop() {
		e.finishOne(r, delivery.ReasonRejected)
	}
	a.check(t, nil)
}

// What a link has seen stays where it is: the link may be reading it.
func TestCompactLeavesTheLinksAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newFakeNet(Limits{BatchBytes: 1 << 10, Window: 1 << 10})
		var batch *Batch
		var was [][]byte
		net.send = func(l *fakeLink, b *Batch) error {
			net.mu.Lock()
			if batch == nil {
				batch = b
				for i := range b.Len() {
					was = append(was, b.At(i).Bytes())
				}
			}
			net.mu.Unlock()
			return l.hang()
		}
		e := newTestEngine(net, delivery.Options{QueueBytes: 512 << 10, Overflow: delivery.DropOldest, CloseTimeout: time.Second}, resolveTo(addrs(1)...))
		for n := range uint32(10_000) {
			if err := e.Put(slog.LevelInfo, numbered(n, 900)); err != nil {
				t.Fatal(err)
			}
			if n == 0 {
				synctest.Wait()
			}
		}
		net.mu.Lock()
		if batch == nil || !bytes.Equal(was[0], numbered(0, 900)) || &was[0][0] != &batch.At(0).Bytes()[0] {
			t.Error("a record moved, or changed, under the eyes of its link")
		}
		net.mu.Unlock()
		_ = e.Close()
		balanced(t, e.Stats())
	})
}

// A link that hangs holds a record here and there in every segment. DropOldest evicts for each record about as much as it needs, and
// never refuses one.
func TestDropOldestNeverRefuses(t *testing.T) {
	for _, size := range []int{20, 100, 1000, 10 << 10, 100 << 10} {
		for _, addresses := range []int{1, 5, 64} {
			for _, budget := range []int{512 << 10, 1 << 20, 16 << 20} {
				if budget > 1<<20 && size < 1000 {
					continue // the same as ever, with a hundred thousand records
				}
				t.Run(fmt.Sprintf("%d bytes, %d addresses, budget %d", size, addresses, budget), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						net := newFakeNet(Limits{Blind: true})
						net.send = func(l *fakeLink, _ *Batch) error { return l.hang() }
						e := newTestEngine(net, delivery.Options{QueueBytes: budget, Overflow: delivery.DropOldest, CloseTimeout: time.Second}, resolveTo(addrs(addresses)...))
						defer e.Close()
						rec := make([]byte, size)
						cost := size + recCost
						n := 3 * budget / cost
						for i := range n {
							if err := e.Put(slog.LevelInfo, rec); err != nil {
								t.Fatalf("record %d: %v", i, err)
							}
							if i%(n/100+1) == 0 {
								time.Sleep(300 * time.Millisecond)
							}
						}
						s := e.Stats()
						if s.Reasons[delivery.ReasonEvicted] == 0 {
							t.Errorf("nothing was evicted: %+v", s)
						}
						// A good part of the budget holds records, or it is not used for what it is there.
						if kept := int(s.Pending) * cost; kept < budget/3 {
							t.Errorf("%d records pending, that is %d of %d", s.Pending, kept, budget)
						}
					})
				})
			}
		}
	}
}

// One of a hundred addresses hangs. The few records it has do not take the budget away from the others, whatever the policy.
func TestOneHangingLinkPinsLittle(t *testing.T) {
	for _, policy := range []delivery.Overflow{delivery.Block, delivery.DropNewest, delivery.DropOldest} {
		t.Run(policy.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := newFakeNet(Limits{})
				a := addrs(100)
				net.send = hangAt(a[0])
				e := newTestEngine(net, delivery.Options{QueueBytes: 512 << 10, Overflow: policy, CloseTimeout: time.Second}, resolveTo(a...))
				for range 4000 {
					_ = e.Put(slog.LevelInfo, make([]byte, 1000))
					time.Sleep(time.Millisecond)
				}
				if s := e.Stats(); s.Dropped > 0 || s.Waits > 0 {
					t.Errorf("delivered %d, pending %d, lost %v, %d waits", s.Delivered, s.Pending, s.Reasons, s.Waits)
				}
				_ = e.Close()
				balanced(t, e.Stats())
			})
		})
	}
}

// A caller that waits for room is let in when enough records died, though every segment has a live one.
func TestWaitingCallersGetWhatCompactionFrees(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newTestEngine(newFakeNet(Limits{}), delivery.Options{QueueBytes: 512 << 10, MaxBlock: time.Hour}, resolveTo(addrs(1)...))
		e.state = running // without a dispatcher: the test looks after the queue
		var late sync.WaitGroup
		for e.arena.used < e.arena.limit(slog.LevelInfo)-segmentBytes {
			_ = e.Put(slog.LevelInfo, make([]byte, 1000))
		}
		began := time.Now()
		late.Go(func() {
			for range 65 { // more than what is left of the last segment
				if err := e.Put(slog.LevelInfo, make([]byte, 1000)); err != nil {
					t.Error(err)
				}
			}
		})
		synctest.Wait()
		e.mu.Lock()
		if e.roomy == nil {
			t.Error("nobody waits")
		}
		before, n := (*Rec)(nil), 0
		for r := e.queue.head; r != nil; n++ {
			next := r.next
			if n%4 == 0 {
				before = r
			} else {
				e.queue.remove(before, r)
				e.finishOne(r, delivery.ReasonRejected)
			}
			r = next
		}
		e.mu.Unlock()
		e.links.Lock()
		e.take(e.clock.stamp())
		e.links.Unlock()
		late.Wait()
		if took := time.Since(began); took != 0 {
			t.Errorf("after %v", took)
		}
		e.wg.Go(e.dispatch)
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		balanced(t, e.Stats())
	})
}
