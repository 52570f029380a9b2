package ship

import (
	"fmt"
	"os"
	"time"

	"github.com/wholelog/wholelog/delivery"
)

// loss is what was lost for one reason and not yet told. Where nobody set OnDrop it becomes a line on standard error, so that the
// defaults of an Options lose nothing without a word.
type loss struct {
	reason         delivery.Reason
	records, bytes int
	told           time.Time
	waiting        bool // in hooks.due
}

// lost adds to the sum of a reason, which is told at most once in quietTime; what comes meanwhile is told when that is over. It allocates
// nothing once a reason has occurred but a timer in each second: a queue that stays full comes here with every call.
func (h *hooks) lost(reason delivery.Reason, records, bytes int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.losses[reason]
	if l == nil {
		l = &loss{reason: reason}
		h.losses[reason] = l
	}
	l.records += records
	l.bytes += bytes
	if l.waiting || h.later != nil && !l.told.IsZero() {
		return // the timer tells it; a look at the clock costs as much as all else here
	}
	if now := time.Now(); l.told.IsZero() || now.Sub(l.told) >= quietTime {
		h.tellLoss(l)
	} else {
		h.remind(now)
	}
}

// tellLoss has l told by the hook goroutine. The caller holds mu.
func (h *hooks) tellLoss(l *loss) {
	l.waiting = true
	h.due = append(h.due, l)
	h.kick()
}

// take returns what is to be told of l, and begins its next sum. The caller holds mu.
func (l *loss) take() delivery.Drop {
	d := delivery.Drop{Records: l.records, Bytes: l.bytes, Reason: l.reason}
	l.records, l.bytes, l.waiting, l.told = 0, 0, false, time.Now()
	return d
}

// printError is OnError where there is none.
func printError(err error) { fmt.Fprintln(os.Stderr, err) }
