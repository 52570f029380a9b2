package ship

import "sync"

const (
	lockTries = 30  // of a caller, before it queues for the lock
	lockPause = 100 // turns of an empty loop between two of them; all together take about a microsecond
)

// lock takes mu for a log call. What holds mu is over in some ten nanoseconds, while queueing for it puts the goroutine to sleep, and
// one that slept for a millisecond makes sync.Mutex hand the lock round from sleeper to sleeper. sync.Mutex would spin itself, but not
// while other goroutines wait to run, and in a busy program they always do.
func lock(mu *sync.Mutex) {
	for range lockTries {
		if mu.TryLock() {
			return
		}
		for range lockPause { // only passes time
		}
	}
	mu.Lock()
}
