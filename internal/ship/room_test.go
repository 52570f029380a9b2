package ship

import (
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/delivery"
)

// With any reserve that Validate lets pass, an empty queue has room for the largest record of any level.
func TestAnEmptyQueueHasRoomForAnyRecord(t *testing.T) {
	for _, reserve := range []float64{-1, 0, 0.25, 0.5, 0.8, 0.99} {
		for _, budget := range []int{512 << 10, 1 << 20, 16 << 20} {
			for _, policy := range []delivery.Overflow{delivery.Block, delivery.DropNewest, delivery.DropOldest} {
				t.Run(fmt.Sprintf("%v/%d/%v", reserve, budget, policy), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						o := delivery.Options{QueueBytes: budget, Reserve: reserve, Overflow: policy}
						if o.Validate() != nil {
							return
						}
						e := newTestEngine(newFakeNet(Limits{}), o, resolveTo(addrs(1)...))
						for _, size := range []int{100, e.MaxRecord(), 64 << 10, e.MaxRecord(), 1} {
							if err := e.Put(slog.LevelInfo, make([]byte, size)); err != nil {
								t.Errorf("%d bytes: %v", size, err)
							}
							mustFlush(t, e)
						}
						_ = e.Close()
					})
				})
			}
		}
	}
}

// Many short records make a segment dearer than long ones do. When they have left, what remains of that does not keep others out.
func TestShortRecordsLeaveNoDebt(t *testing.T) {
	for _, size := range []int{1, 9, 80, 200} {
		for _, level := range []slog.Level{slog.LevelInfo, slog.LevelWarn} {
			t.Run(fmt.Sprintf("%v of %d bytes", level, size), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					net := newFakeNet(Limits{BatchBytes: 1 << 20, Window: 1 << 20})
					gate := make(chan struct{})
					net.send = func(l *fakeLink, b *Batch) error {
						<-gate
						l.deliver(b)
						return nil
					}
					e := newTestEngine(net, delivery.Options{QueueBytes: 512 << 10, Reserve: 0.5}, resolveTo(addrs(1)...))
					defer e.Close()
					rec := make([]byte, size)
					for e.Put(level, rec) == nil { // until the queue is full, and calls fail at once
					}
					close(gate)
					mustFlush(t, e)
					time.Sleep(time.Second)
					for i := range 100 {
						if err := e.Put(slog.LevelInfo, rec); err != nil {
							t.Fatalf("record %d into an empty queue: %v", i, err)
						}
					}
					mustFlush(t, e)
					_ = e.Close()
					balanced(t, e.Stats())
				})
			})
		}
	}
}
