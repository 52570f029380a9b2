package ship

import (
	"time"

	"github.com/wholelog/wholelog/delivery"
)

// shapeBurst is how far ahead of the rate records may leave: enough for the dispatcher's timers, and too little to be seen by a
// receiver whose peaks are the reason for a rate.
const shapeBurst = 10 * time.Millisecond

// shaper holds records back so that no more than so many records and bytes leave in a second. Both are token buckets kept as the
// instant at which they will be full again (GCRA). Guarded by the engine's links.
type shaper struct {
	perRecord, perByte float64 // nanoseconds; 0: no limit
	records, bytes     time.Duration
}

func newShaper(o delivery.Options) (s shaper) {
	if o.RecordRate > 0 {
		s.perRecord = float64(time.Second) / float64(o.RecordRate)
	}
	if o.ByteRate > 0 {
		s.perByte = float64(time.Second) / float64(o.ByteRate)
	}
	return s
}

// on says whether there is a rate at all.
func (s *shaper) on() bool { return s.perRecord > 0 || s.perByte > 0 }

// wait is how long until a record may leave, whatever its size: a large one is paid for by those behind it.
func (s *shaper) wait(now stamp) time.Duration {
	if !s.on() {
		return 0
	}
	return max(s.records, s.bytes) - shapeBurst - now.mono
}

// take notes that a record of n bytes leaves.
func (s *shaper) take(now stamp, n int) {
	if s.perRecord > 0 {
		s.records = max(s.records, now.mono) + time.Duration(s.perRecord)
	}
	if s.perByte > 0 {
		s.bytes = max(s.bytes, now.mono) + time.Duration(s.perByte*float64(n))
	}
}
