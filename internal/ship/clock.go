package ship

import "time"

// stamp is a moment on both clocks. The monotonic clock stands still while a process is frozen (a Lambda function between two
// invocations, a suspended machine); the wall clock may be set back. Ages look at both.
type stamp struct {
	mono time.Duration // since the engine was made
	wall int64         // Unix nanoseconds
}

// clock tells the time; tests replace now to freeze a process or to step its wall clock.
type clock struct {
	start time.Time
	now   func() time.Time // nil: time.Now
}

func (c *clock) stamp() stamp {
	var t time.Time
	if c.now == nil {
		t = time.Now()
	} else {
		t = c.now()
	}
	return stamp{t.Sub(c.start), t.UnixNano()}
}

// over says whether more than limit has passed between s and now: by the monotonic clock, or by the wall clock, or by a wall
// clock that was set back so far that it says nothing any more.
func (s stamp) over(now stamp, limit time.Duration) bool {
	wall := time.Duration(now.wall - s.wall)
	return now.mono-s.mono > limit || wall > limit || wall < -limit
}

// age is the larger of both ages, never negative.
func (s stamp) age(now stamp) time.Duration {
	return max(now.mono-s.mono, time.Duration(now.wall-s.wall), 0)
}
