package jitter

import (
	"math"
	"slices"
	"testing"
	"time"
)

func TestBackoffDelay(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct {
		name    string
		b       Backoff
		attempt int
		want    time.Duration // of mode None
	}{
		{"default 0", Backoff{}, 0, 250 * ms},
		{"default 1", Backoff{}, 1, 500 * ms},
		{"default 6", Backoff{}, 6, 16 * time.Second},
		{"default 7", Backoff{}, 7, 30 * time.Second},
		{"default 1000", Backoff{}, 1000, 30 * time.Second},
		{"largest attempt", Backoff{}, math.MaxInt, 30 * time.Second},
		{"negative attempt", Backoff{}, -1, 250 * ms},
		{"smallest attempt", Backoff{}, math.MinInt, 250 * ms},
		{"base", Backoff{Base: 100 * ms}, 2, 400 * ms},
		{"max", Backoff{Max: time.Second}, 5, time.Second},
		{"max below base", Backoff{Base: time.Second, Max: 100 * ms}, 0, 100 * ms},
		{"factor", Backoff{Base: 100 * ms, Factor: 1.5}, 2, 225 * ms},
		{"factor 1", Backoff{Base: 100 * ms, Factor: 1}, 50, 100 * ms},
		{"shrinking", Backoff{Base: 100 * ms, Factor: 0.5}, 1, 50 * ms},
		{"shrunk to nothing", Backoff{Base: 100 * ms, Factor: 0.5}, math.MaxInt, 0},
		{"infinite factor", Backoff{Factor: math.Inf(1)}, 1, 30 * time.Second},
		{"NaN", Backoff{Factor: math.NaN()}, 1, 500 * ms},
		{"negative fields", Backoff{Base: -1, Max: -1, Factor: -1}, 1, 500 * ms},
		{"largest of all", Backoff{Base: math.MaxInt64, Max: math.MaxInt64, Factor: math.MaxFloat64}, math.MaxInt, math.MaxInt64},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.b.Mode = None
			if got := tt.b.Delay(tt.attempt); got != tt.want {
				t.Errorf("None: %v, want %v", got, tt.want)
			}
			for _, mode := range []Mode{Full, Equal, 7} {
				tt.b.Mode = mode
				low := time.Duration(0)
				if mode == Equal {
					low = tt.want / 2
				}
				for range 200 {
					if got := tt.b.Delay(tt.attempt); got < low || got > tt.want {
						t.Fatalf("%v: %v, want from %v to %v", mode, got, low, tt.want)
					}
				}
			}
		})
	}
}

// 200 clients lose one destination at once. In any window of a tenth of the step about 20 come back; 60 never do.
func TestR76_RetriesAreSpread(t *testing.T) {
	const clients = 200
	for _, b := range []Backoff{{}, {Base: time.Second, Max: time.Minute, Factor: 1.5}} {
		for attempt := range 10 {
			delays := make([]time.Duration, clients)
			for i := range delays {
				delays[i] = b.Delay(attempt)
			}
			slices.Sort(delays)
			step := Backoff{Base: b.Base, Max: b.Max, Factor: b.Factor, Mode: None}.Delay(attempt)
			for i, from := range delays {
				if n := i; n+60 < clients && delays[n+60] <= from+step/10 {
					t.Fatalf("%+v, attempt %d: more than 60 of %d retries within %v from %v on", b, attempt, clients, step/10, from)
				}
			}
		}
	}
}

func TestModeString(t *testing.T) {
	for m, want := range map[Mode]string{Full: "Full", Equal: "Equal", None: "None", 3: "Mode(3)", 255: "Mode(255)"} {
		if got := m.String(); got != want {
			t.Errorf("%d: %q, want %q", m, got, want)
		}
	}
}

func FuzzBackoff(f *testing.F) {
	f.Add(int64(0), int64(0), 0.0, uint8(0), 0)
	f.Add(int64(math.MaxInt64), int64(math.MaxInt64), math.Inf(1), uint8(1), math.MaxInt)
	f.Add(int64(1), int64(-1), math.NaN(), uint8(2), math.MinInt)
	f.Fuzz(func(t *testing.T, base, limit int64, factor float64, mode uint8, attempt int) {
		b := Backoff{time.Duration(base), time.Duration(limit), factor, Mode(mode)}
		top := time.Duration(limit)
		if limit <= 0 {
			top = defaultMax
		}
		if d := b.Delay(attempt); d < 0 || d > top {
			t.Fatalf("%+v.Delay(%d) = %v", b, attempt, d)
		}
	})
}

func TestDelayDoesNotAllocate(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { Backoff{}.Delay(3) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
