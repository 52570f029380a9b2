package pool

import (
	"context"
	"fmt"
	"time"
)

// grace is how long code that is not ours may take to return when its context has ended, before it is left to itself.
const grace = 250 * time.Millisecond

// ask calls f, which is not our code, in a goroutine of its own: it may ignore its context, and must not hold up Close and everybody
// who waits. What has not returned a grace period after ctx ended is left to end alone, and what it returns then is thrown away; stray
// is closed when it has. Otherwise stray is nil. A panic is an error, and who is the one to blame.
func ask[T any](ctx context.Context, who string, f func(context.Context) (T, error)) (v T, stray <-chan struct{}, err error) {
	type result struct {
		v   T
		err error
	}
	results, done := make(chan result, 1), make(chan struct{})
	go func() {
		var r result
		defer func() {
			if v := recover(); v != nil {
				r = result{err: fmt.Errorf("%s panicked: %v", who, v)}
			}
			results <- r
			close(done)
		}()
		r.v, r.err = f(ctx)
	}()
	select {
	case r := <-results:
		return r.v, nil, r.err
	case <-ctx.Done():
	}
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case r := <-results:
		return r.v, nil, r.err
	case <-t.C:
		return v, done, ctx.Err()
	}
}

// unreturned says whether a call that ask left behind has still not returned.
func unreturned(stray <-chan struct{}) bool {
	if stray == nil {
		return false
	}
	select {
	case <-stray:
		return false
	default:
		return true
	}
}
