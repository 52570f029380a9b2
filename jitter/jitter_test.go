package jitter

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"
)

func TestDuration(t *testing.T) {
	for _, tt := range []struct {
		d      time.Duration
		factor float64
		lo, hi time.Duration // both inclusive
	}{
		{time.Minute, 0.2, 48 * time.Second, 72 * time.Second},
		{time.Minute, 1, 0, 2 * time.Minute},
		{time.Minute, 0, time.Minute, time.Minute},
		{time.Minute, -0.2, time.Minute, time.Minute},
		{time.Minute, math.NaN(), time.Minute, time.Minute},
		{time.Minute, math.Inf(1), 0, math.MaxInt64},
		{time.Minute, 5, 0, 6 * time.Minute},
		{math.MaxInt64, 0.5, 0, math.MaxInt64},
		{math.MaxInt64, 0, math.MaxInt64, math.MaxInt64},
		{0, 0.2, 0, 0},
		{-time.Second, 0.2, 0, 0},
		{1, 0.5, 0, 1},
	} {
		for range 1000 {
			if got := Duration(tt.d, tt.factor); got < tt.lo || got > tt.hi {
				t.Fatalf("Duration(%v, %v) = %v, want from %v to %v", tt.d, tt.factor, got, tt.lo, tt.hi)
			}
		}
	}
}

// Every tenth of the range must be met. 2000 draws miss one with a probability of 0.9^2000, about 1e-91.
func TestDurationCoversItsRange(t *testing.T) {
	var tenths [10]int
	for range 2000 {
		tenths[min(9, (Duration(time.Second, 0.5)-500*time.Millisecond)/(100*time.Millisecond))]++
	}
	for i, n := range tenths {
		if n == 0 {
			t.Errorf("nothing in tenth %d: %v", i, tenths)
		}
	}
}

func TestSplay(t *testing.T) {
	for _, limit := range []time.Duration{0, -1, math.MinInt64} {
		if got := Splay(limit); got != 0 {
			t.Errorf("Splay(%d) = %v", limit, got)
		}
	}
	for _, limit := range []time.Duration{1, 2, time.Second, math.MaxInt64} {
		for range 1000 {
			if got := Splay(limit); got < 0 || got >= limit {
				t.Fatalf("Splay(%v) = %v", limit, got)
			}
		}
	}
}

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		for range 100 {
			if err := Sleep(t.Context(), time.Second); err != nil {
				t.Fatal(err)
			}
		}
		// The sum of 100 uniform seconds is 50 s ± 2.9 s; ten times that never happens.
		if took := time.Since(begin); took < 21*time.Second || took > 79*time.Second {
			t.Errorf("100 sleeps of up to 1 s took %v", took)
		}
	})
}

func TestSleepEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
		defer cancel()
		begin := time.Now()
		if err := Sleep(ctx, 100*365*24*time.Hour); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(begin); took != time.Nanosecond {
			t.Errorf("took %v", took)
		}
		for _, limit := range []time.Duration{-1, 0, 1, time.Hour} {
			if err := Sleep(ctx, limit); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("limit %v, ended before: got %v", limit, err)
			}
		}
		if err := Sleep(t.Context(), 0); err != nil {
			t.Errorf("limit 0: %v", err)
		}
		if took := time.Since(begin); took != time.Nanosecond {
			t.Errorf("a sleep without a limit or with an ended context took time: %v", took)
		}
	})
}

// These values are what hosts with other versions of this package compute: they must never change.
func TestPhaseIsStable(t *testing.T) {
	for _, tt := range []struct {
		key    string
		period time.Duration
		want   time.Duration
	}{
		{"", time.Minute, 56206166903},
		{"web-1/backup", time.Minute, 13598716479},
		{"web-2/backup", time.Minute, 46463989602},
		{"web-1/backup", time.Hour, 815922988744},
		{"web-1/backup", math.MaxInt64, 2090433688502396965},
		{"web-1/backup", 1, 0},
		{"web-1/backup", 0, 0},
		{"web-1/backup", -time.Minute, 0},
	} {
		if got := Phase(tt.key, tt.period); got != tt.want {
			t.Errorf("Phase(%q, %v) = %d, want %d", tt.key, tt.period, got, tt.want)
		}
	}
}

// 1000 hosts with names as fleets have them: at most 30 of them in any hundredth of the period, where 10 are expected.
func TestPhaseSpreadsAFleet(t *testing.T) {
	const period = 10 * time.Second
	for _, format := range []string{"web-%d", "ip-10-0-%d.internal", "%d", "app/%04d/flush"} {
		var slots [100]int
		for i := range 1000 {
			p := Phase(fmt.Sprintf(format, i), period)
			if p < 0 || p >= period {
				t.Fatalf("phase %v of %v", p, period)
			}
			slots[p/(period/100)]++
		}
		for i, n := range slots {
			if n > 30 {
				t.Errorf("%q: %d of 1000 in slot %d of 100", format, n, i)
			}
		}
	}
}

func TestNext(t *testing.T) {
	at := func(s string) time.Time {
		tm, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			t.Fatal(err)
		}
		return tm
	}
	for _, tt := range []struct {
		name          string
		now           string
		period, phase time.Duration
		want          string
	}{
		{"on the grid", "2026-01-02T03:04:05.5Z", time.Minute, 0, "2026-01-02T03:05:00Z"},
		{"exactly at a slot: the one after", "2026-01-02T03:05:00Z", time.Minute, 0, "2026-01-02T03:06:00Z"},
		{"phase still to come", "2026-01-02T03:04:05Z", time.Minute, 20 * time.Second, "2026-01-02T03:04:20Z"},
		{"phase gone by", "2026-01-02T03:04:25Z", time.Minute, 20 * time.Second, "2026-01-02T03:05:20Z"},
		{"exactly at a phase", "2026-01-02T03:04:20Z", time.Minute, 20 * time.Second, "2026-01-02T03:05:20Z"},
		{"one nanosecond before", "2026-01-02T03:04:19.999999999Z", time.Minute, 20 * time.Second, "2026-01-02T03:04:20Z"},
		{"phase longer than the period", "2026-01-02T03:04:05Z", time.Minute, 80 * time.Second, "2026-01-02T03:04:20Z"},
		{"negative phase", "2026-01-02T03:04:05Z", time.Minute, -10 * time.Second, "2026-01-02T03:04:50Z"},
		{"negative phase gone by", "2026-01-02T03:04:55Z", time.Minute, -10 * time.Second, "2026-01-02T03:05:50Z"},
		{"a day, by UTC", "2026-01-02T01:00:00+02:00", 24 * time.Hour, 3 * time.Hour, "2026-01-02T05:00:00+02:00"},
		{"before 1970", "1960-01-02T03:04:05Z", time.Hour, time.Minute, "1960-01-02T04:01:00Z"},
		{"no period", "2026-01-02T03:04:05.5Z", 0, time.Second, "2026-01-02T03:04:05.5Z"},
		{"negative period", "2026-01-02T03:04:05.5Z", -1, time.Second, "2026-01-02T03:04:05.5Z"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Next(at(tt.now), tt.period, tt.phase).Format(time.RFC3339Nano); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func FuzzNext(f *testing.F) {
	f.Add(int64(1767323045), int64(5), int64(time.Minute), int64(time.Second))
	f.Add(int64(-1767323045), int64(0), int64(1), int64(math.MinInt64))
	f.Add(int64(0), int64(0), int64(math.MaxInt64), int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, sec, nsec, period, phase int64) {
		now := time.Unix(sec%(1<<36), nsec%1e9)
		next := Next(now, time.Duration(period), time.Duration(phase))
		if period <= 0 {
			if !next.Equal(now) {
				t.Fatalf("period %d: %v is not %v", period, next, now)
			}
			return
		}
		if !next.After(now) || next.After(now.Add(time.Duration(period))) {
			t.Fatalf("%v is not within one period of %d after %v", next, period, now)
		}
		if again := Next(next.Add(-1), time.Duration(period), time.Duration(phase)); !again.Equal(next) {
			t.Fatalf("%v is no slot: the next one just before it is %v", next, again)
		}
	})
}

func TestMinuteOfHour(t *testing.T) {
	var minutes [60]int
	for i := range 6000 {
		minutes[MinuteOfHour(fmt.Sprintf("job-%d", i))]++ // out of range panics
	}
	for m, n := range minutes {
		if n < 40 || n > 200 {
			t.Errorf("minute %d has %d of 6000 jobs, about 100 expected", m, n)
		}
	}
	if got := MinuteOfHour("web-1/backup"); got != int(Phase("web-1/backup", time.Hour)/time.Minute) {
		t.Errorf("MinuteOfHour = %d", got)
	}
}
