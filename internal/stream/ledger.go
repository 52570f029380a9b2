package stream

import (
	"slices"
	"time"

	"github.com/wholelog/wholelog/internal/ship"
)

// queue asks how many of the bytes that the kernel took the peer's kernel has not acknowledged; false when it cannot tell just now. A
// nil one can never tell.
type queue func() (bytes int, ok bool)

// ledger knows which frames wait for the word of the peer's kernel. Without one that can be asked, nothing ever waits: frames are
// settled as they are written, and the ledger remembers how many in the last second. It is guarded by the link's mu.
type ledger struct {
	unacked queue
	acked   uint64    // bytes of the wire, as far as is known
	moved   time.Time // when acked grew, or something began to wait
	flights []flight  // oldest first
	spare   [][]uint64
	calm    chan struct{} // closed when nothing waits any more; nil: nobody asks
	recent  []written     // settled at the write in the last second, oldest first
	taken   int           // frames settled in all
}

// flight is frames of one batch, records from on, that wait.
type flight struct {
	batch *ship.Batch
	from  int
	ends  []uint64 // for each frame the wire's count behind its last byte
	done  int      // frames settled
}

// written is what was settled at one write.
type written struct {
	at      time.Time
	records int
}

// lastSecond is what may be lost unseen where only our own kernel was asked.
const lastSecond = time.Second

// room returns a slice for the ends of a flight.
func (l *ledger) room() []uint64 {
	if n := len(l.spare); n > 0 {
		ends := l.spare[n-1]
		l.spare = l.spare[:n-1]
		return ends[:0]
	}
	return nil
}

// add enters frames that were handed to the kernel; whole says that all of them were, to the last byte.
func (l *ledger) add(f flight, whole bool, now time.Time) {
	if l.unacked == nil && whole {
		l.taken += len(f.ends)
		f.batch.Settle(f.from, f.from+len(f.ends), outcome(true))
		l.recent = slices.DeleteFunc(l.recent, func(w written) bool { return now.Sub(w.at) > lastSecond })
		l.recent = append(l.recent, written{now, len(f.ends)})
		l.spare = append(l.spare, f.ends)
		return
	}
	if len(l.flights) == 0 {
		l.moved = now
	}
	l.flights = append(l.flights, f)
}

// ask settles what the peer's kernel has acknowledged by now. The wire's count comes from before the question: what is written in
// between is taken for unacknowledged, and never the other way round.
func (l *ledger) ask(count uint64, now time.Time) {
	if l.unacked == nil {
		return
	}
	n, ok := l.unacked()
	if !ok || uint64(n) > count || count-uint64(n) <= l.acked {
		return
	}
	l.acked, l.moved = count-uint64(n), now
	gone := 0
	for i := range l.flights {
		f := &l.flights[i]
		first := f.done
		for f.done < len(f.ends) && f.ends[f.done] <= l.acked {
			f.done++
		}
		if f.done == len(f.ends) {
			gone++
			l.spare = append(l.spare, f.ends) // before Settle: it may end the batch
		}
		if f.done > first {
			l.taken += f.done - first
			f.batch.Settle(f.from+first, f.from+f.done, outcome(true))
		}
		if f.done < len(f.ends) {
			break
		}
	}
	l.flights = slices.Delete(l.flights, 0, gone)
	if len(l.flights) == 0 && l.calm != nil {
		close(l.calm)
		l.calm = nil
	}
}

// calmed returns a channel that is closed when nothing waits any more.
func (l *ledger) calmed() <-chan struct{} {
	calm := make(chan struct{})
	if len(l.flights) == 0 {
		close(calm)
	} else {
		l.calm = calm
	}
	return calm
}

// unconfirmed is how many records were settled in the second before now on the word of our own kernel alone.
func (l *ledger) unconfirmed(now time.Time) (records int) {
	for _, w := range l.recent {
		if now.Sub(w.at) <= lastSecond {
			records += w.records
		}
	}
	return records
}
