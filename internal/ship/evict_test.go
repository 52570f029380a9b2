package ship

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/delivery"
)

// DropOldest finds something to evict in every state: never is so much with the links that a log call fails.
func TestDropOldestAlwaysTakesTheRecord(t *testing.T) {
	for _, size := range []int{50 << 10, 100 << 10, 128 << 10} { // the last is the largest legal one
		for _, addresses := range []int{1, 5} {
			t.Run(fmt.Sprintf("%d bytes, %d addresses", size, addresses), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					net := newFakeNet(Limits{Blind: true})
					net.send = func(l *fakeLink, _ *Batch) error { return l.hang() }
					e := newTestEngine(net, delivery.Options{
						QueueBytes: 512 << 10, Overflow: delivery.DropOldest, CloseTimeout: time.Second,
					}, resolveTo(addrs(addresses)...))
					defer e.Close()
					rec := make([]byte, size)
					for i := range (2 << 20) / size {
						if err := e.Put(slog.LevelInfo, rec); err != nil {
							t.Fatalf("record %d: %v", i, err)
						}
						if i%10 == 0 {
							time.Sleep(time.Second) // links that hang too long are given up, and what they had comes back
						}
					}
					_ = e.Close()
					s := e.Stats()
					balanced(t, s)
					if s.Reasons[delivery.ReasonEvicted] == 0 || s.Reasons[delivery.ReasonQueueFull] > 0 {
						t.Errorf("%v", s.Reasons)
					}
				})
			})
		}
	}
}

// What DropOldest drops is older than all that it keeps, but for what a link was sent.
func TestDropOldestDropsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 50 << 10
		net := newFakeNet(Limits{Blind: true})
		net.send = func(l *fakeLink, _ *Batch) error { return l.hang() }
		var evicted []uint32
		e := newTestEngine(net, delivery.Options{
			QueueBytes: 512 << 10, Overflow: delivery.DropOldest, CloseTimeout: time.Second, SendTimeout: time.Hour,
			OnDrop: func(d delivery.Drop) {
				if d.Reason == delivery.ReasonEvicted && d.Records == 1 {
					evicted = append(evicted, binary.BigEndian.Uint32(d.Data))
				}
			},
		}, resolveTo(addrs(1)...))
		for i := range uint32(20) {
			_ = e.Put(slog.LevelInfo, append(binary.BigEndian.AppendUint32(nil, i), make([]byte, size)...))
			time.Sleep(time.Second)
		}
		_ = e.Close() // the hook is done
		balanced(t, e.Stats())
		if len(evicted) == 0 || evicted[0] > 4 { // link and hand have the first
			t.Errorf("evicted %v", evicted)
		}
		for i := 1; i < len(evicted); i++ {
			if evicted[i] < evicted[i-1] {
				t.Errorf("out of order: %v", evicted)
			}
		}
	})
}

// A flood of no urgency pushes out its own kind: warnings stay, whether they wait in the queue or came back from a link. Warnings
// push out whatever is oldest.
func TestFloodSparesWarnings(t *testing.T) {
	for _, tc := range []struct {
		flood slog.Level
		spare bool
	}{{slog.LevelDebug, true}, {slog.LevelInfo, true}, {slog.LevelWarn, false}, {slog.LevelError, false}} {
		for _, cameBack := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v/came back=%v", tc.flood, cameBack), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					net := newFakeNet(Limits{})
					if cameBack {
						net.send = func(l *fakeLink, b *Batch) error { return l.requeue(b) }
					} else {
						net.setRefuse(addrs(1)[0], errors.New("refused"))
					}
					var mu sync.Mutex
					warnings := 0
					e := newTestEngine(net, delivery.Options{
						QueueBytes: 1 << 20, Overflow: delivery.DropOldest, CloseTimeout: time.Millisecond,
						OnDrop: func(d delivery.Drop) {
							mu.Lock()
							defer mu.Unlock()
							if d.Level == slog.LevelWarn+1 && d.Reason == delivery.ReasonEvicted {
								warnings += d.Records
							}
						},
					}, resolveTo(addrs(1)...))
					defer e.Close()
					rec := make([]byte, 4000)
					for range 100 {
						_ = e.Put(slog.LevelWarn+1, rec)
					}
					for range 1000 {
						if err := e.Put(tc.flood, rec); err != nil {
							t.Fatal(err)
						}
						time.Sleep(time.Millisecond)
					}
					mu.Lock()
					if spared := warnings == 0; spared != tc.spare {
						t.Errorf("%d of 100 warnings were evicted", warnings)
					}
					mu.Unlock()
				})
			})
		}
	}
}

// R58: a record logged from inside a hook is taken only if there is room: it evicts nothing.
func TestR58_ARecordOfAHookEvictsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := stalled(Limits{})
		var e *Engine
		rec := make([]byte, 60<<10)
		calls := 0
		logged := make(chan struct{})
		var before, after delivery.Stats
		e = newTestEngine(net, delivery.Options{
			QueueBytes: 512 << 10, Overflow: delivery.DropOldest, CloseTimeout: time.Second,
			OnDrop: func(delivery.Drop) {
				if calls++; calls > 1 {
					return
				}
				<-logged // what the test itself evicts is over
				before = e.Stats()
				for range 3 {
					_ = e.Put(slog.LevelWarn, rec)
				}
				after = e.Stats()
			},
		}, resolveTo(addrs(1)...))
		for range 8 {
			_ = e.Put(slog.LevelInfo, rec)
		}
		close(logged)
		time.Sleep(time.Second)
		_ = e.Close() // the hook is done
		balanced(t, e.Stats())
		if calls == 0 || before.Reasons[delivery.ReasonEvicted] != after.Reasons[delivery.ReasonEvicted] || after.Reasons[delivery.ReasonQueueFull] == 0 {
			t.Errorf("%d calls; before %v, after %v", calls, before.Reasons, after.Reasons)
		}
	})
}
