package jitter

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestTickerKeepsItsSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const period = 10 * time.Second
		ticker := NewTicker(period, "web-1")
		defer ticker.Stop()
		want := Next(time.Now(), period, Phase("web-1", period))
		for i := range 1000 {
			if got := <-ticker.C; !got.Equal(want) {
				t.Fatalf("tick %d at %v, want %v", i, got, want)
			}
			want = want.Add(period)
		}
	})
}

// Processes that start together must not have their first tick together.
func TestTickerOffsetsTheFirstTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		const period = 10 * time.Second
		for _, key := range []string{"", "web-%d"} {
			var tenths [10]int
			for i := range 200 {
				k := key
				if k != "" {
					k = fmt.Sprintf(key, i)
				}
				ticker := NewTicker(period, k)
				first := ticker.slot.Sub(begin)
				ticker.Stop()
				if first <= 0 || first > period {
					t.Fatalf("key %q: first tick after %v", k, first)
				}
				tenths[(first-1)/time.Second]++
			}
			for i, n := range tenths {
				if n > 60 {
					t.Errorf("key %q: %d of 200 first ticks in tenth %d", key, n, i)
				}
			}
		}
	})
}

func TestTickerDropsTicksForASlowReceiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ticker := NewTicker(time.Second, "slow")
		defer ticker.Stop()
		first := Next(time.Now(), time.Second, Phase("slow", time.Second))
		<-time.After(10 * time.Second)
		if got := <-ticker.C; !got.Equal(first) {
			t.Errorf("waiting tick of %v, want the oldest, %v", got, first)
		}
		if got, want := <-ticker.C, first.Add(10*time.Second); !got.Equal(want) {
			t.Errorf("then %v, want the next slot, %v", got, want)
		}
	})
}

func TestTickerStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ticker := NewTicker(time.Second, "")
		<-time.After(3 * time.Second)
		ticker.Stop()
		ticker.Stop()
		select {
		case tick := <-ticker.C:
			t.Errorf("tick %v after Stop", tick)
		case <-time.After(time.Minute):
		}
		ticker.tick() // a timer that fired while Stop held the lock
		select {
		case tick := <-ticker.C:
			t.Errorf("tick %v after Stop", tick)
		case <-time.After(time.Minute):
		}
	})
}

// The wall clock lags behind the timer: the tick comes just before its slot, and the slot must not tick twice.
func TestTickerFiresEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ticker := NewTicker(time.Second, "early")
		defer ticker.Stop()
		slot := ticker.slot
		<-time.After(time.Until(slot) - time.Millisecond)
		ticker.tick()
		<-ticker.C
		if got, want := <-ticker.C, slot.Add(time.Second); !got.Equal(want) {
			t.Errorf("next tick at %v, want %v", got, want)
		}
	})
}

func TestNewTickerPanics(t *testing.T) {
	for _, period := range []time.Duration{0, -1} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("no panic for period %d", period)
				}
			}()
			NewTicker(period, "")
		}()
	}
}
