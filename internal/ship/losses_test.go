package ship

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/delivery"
)

// Where there is no OnDrop the losses of a reason are a line, at once, then at most every second, and at Close: the lines' sum is all
// that was lost.
func TestLossesAreToldWithoutOnDrop(t *testing.T) {
	for _, sync := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			e := newTestEngine(rejecting(), delivery.Options{Sync: sync}, resolveTo(addrs(1)...))
			var lines []string
			e.hooks.print = func(err error) { lines = append(lines, err.Error()) }
			log := func(n int) {
				for range n {
					_ = e.Put(slog.LevelInfo, []byte("12345"))
					_ = e.Flush(context.Background())
					synctest.Wait()
				}
			}
			log(3)
			time.Sleep(quietTime + time.Millisecond)
			log(2)
			_ = e.Close()
			want := []string{
				"test: delivery: 1 record (5 B) dropped: rejected",
				"test: delivery: 2 records (10 B) dropped: rejected", // when the second is over
				"test: delivery: 2 records (10 B) dropped: rejected",
			}
			if sync { // there is no timer: the next call tells
				want[1] = "test: delivery: 3 records (15 B) dropped: rejected"
				want[2] = want[0]
			}
			if !slices.Equal(lines, want) {
				t.Errorf("sync=%v: %q", sync, lines)
			}
			balanced(t, e.Stats())
		})
	}
}

// A queue that stays full costs the log calls no memory for being told about.
func TestLossesAllocateNothing(t *testing.T) {
	h := newHooks("test", delivery.Options{Sync: true}) // nothing is printed before somebody asks
	h.lost(delivery.ReasonQueueFull, 1, 10)
	if n := testing.AllocsPerRun(1000, func() { h.lost(delivery.ReasonQueueFull, 1, 10) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
