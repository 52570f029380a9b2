package jitter

import (
	"context"
	"math"
	"math/bits"
	"math/rand/v2"
	"time"
)

// Duration returns a duration uniform in d ± factor·d: Duration(time.Minute, 0.2) is from 48 s to 72 s. The result is never
// negative and never overflows. A factor that is zero, negative or not a number adds no noise; d ≤ 0 gives 0.
func Duration(d time.Duration, factor float64) time.Duration {
	if d <= 0 {
		return 0
	}
	if !(factor > 0) { // also true for NaN
		return d
	}
	return fromFloat(float64(d)*(1+factor*(2*rand.Float64()-1)), math.MaxInt64)
}

// fromFloat converts ns, cut to [0, limit]. float64(math.MaxInt64) is one more than an int64 holds, so the cut comes before
// the conversion. An infinite factor can make ns NaN, which is cut to limit.
func fromFloat(ns float64, limit time.Duration) time.Duration {
	switch {
	case ns < 0:
		return 0
	case ns < float64(limit):
		return time.Duration(ns)
	default:
		return limit
	}
}

// Splay returns a duration uniform in [0, limit), and 0 for limit ≤ 0.
func Splay(limit time.Duration) time.Duration {
	if limit <= 0 {
		return 0
	}
	return rand.N(limit)
}

// Sleep waits for [Splay](limit). It returns nil after the wait, or ctx.Err() as soon as ctx ends, also when it had ended
// before. With limit ≤ 0 it does not wait.
func Sleep(ctx context.Context, limit time.Duration) error {
	if err := ctx.Err(); err != nil || limit <= 0 {
		return err
	}
	timer := time.NewTimer(Splay(limit))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Phase maps key into [0, period) by a hash: the same key gets the same slot on every host, in every process and in every
// version of this package. Good keys name the job and the host, without a process id. period ≤ 0 gives 0.
func Phase(key string, period time.Duration) time.Duration {
	if period <= 0 {
		return 0
	}
	// The high half of hash × period is the hash scaled to the period, without the bias of a remainder.
	slot, _ := bits.Mul64(hash(key), uint64(period))
	return time.Duration(slot)
}

// hash is 64-bit FNV-1a behind the finalizer of MurmurHash3. FNV alone leaves the high bits of similar short keys (web-1,
// web-2) close together, and Phase uses the high bits. Its values are a promise: no schedule may move with an upgrade.
func hash(key string) uint64 {
	h := uint64(0xcbf29ce484222325)
	for i := range len(key) {
		h = (h ^ uint64(key[i])) * 0x100000001b3
	}
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// Next returns the first moment strictly after now that lies phase past a multiple of period. The multiples are those of
// [time.Time.Truncate]: for a period that divides a day they fall on UTC's clock, whatever now's location is. phase may be
// negative or longer than the period. The result has no monotonic reading and keeps now's location. period ≤ 0 gives now.
func Next(now time.Time, period, phase time.Duration) time.Time {
	if period <= 0 {
		return now
	}
	phase %= period
	return now.Add(-phase).Truncate(period).Add(phase).Add(period)
}

// MinuteOfHour returns key's minute of the hour, 0 to 59: the number to write into a cron line in place of 0.
func MinuteOfHour(key string) int {
	return int(Phase(key, time.Hour) / time.Minute)
}
