package ship

import (
	"fmt"
	"time"

	"github.com/wholelog/wholelog/delivery"
)

// quietTime lies between two reports of one kind of trouble.
const quietTime = time.Second

// report is an error that waits to be told.
type report struct {
	of  *trouble
	err error
}

// trouble remembers when a kind was last told, and what was kept back since.
type trouble struct {
	told       time.Time
	waiting    bool // in errs, not yet told
	suppressed int
	last       error
}

// trouble reports something that went wrong without a loss, each cause at most once a second.
func (h *hooks) trouble(cause delivery.Cause, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.troubles[cause]
	if t == nil {
		t = new(trouble)
		h.troubles[cause] = t
	}
	now := time.Now()
	if t.waiting || !t.told.IsZero() && now.Sub(t.told) < quietTime {
		t.suppressed++
		t.last = err
		h.remind(now)
		return
	}
	h.tell(t, err, now)
	h.kick()
}

// remind has what was kept back told when its time has come. In Sync mode the end of the next call does that. The caller holds mu.
func (h *hooks) remind(now time.Time) {
	if wait := h.release(now); wait < never && h.later == nil && !h.sync && !h.ending {
		h.later = time.AfterFunc(wait, h.remember)
	}
}

func (h *hooks) remember() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.later = nil
	h.remind(time.Now())
	if h.busy() {
		h.kick()
	}
}

// release tells what was kept back for long enough, and returns how long until the next is. One of a kind that waits to be told keeps the
// others back: the hook is slow. The caller holds mu.
func (h *hooks) release(now time.Time) (wait time.Duration) {
	wait = never
	for _, t := range h.troubles {
		if t.suppressed == 0 || t.waiting {
			continue
		}
		if left := quietTime - now.Sub(t.told); left > 0 {
			wait = min(wait, left)
			continue
		}
		t.suppressed--
		h.tell(t, t.last, now)
	}
	for _, l := range h.losses {
		if l.records == 0 || l.waiting {
			continue
		}
		if left := quietTime - now.Sub(l.told); left > 0 {
			wait = min(wait, left)
			continue
		}
		h.tellLoss(l)
	}
	return wait
}

// tell queues err with the number of those that were kept back before it. The caller holds mu.
func (h *hooks) tell(t *trouble, err error, now time.Time) {
	if t.suppressed > 0 {
		err = fmt.Errorf("%s: %w (and %d more like it before)", h.name, err, t.suppressed)
	} else {
		err = fmt.Errorf("%s: %w", h.name, err)
	}
	t.told, t.suppressed, t.last, t.waiting = now, 0, nil, true
	h.errs = append(h.errs, report{t, err})
}
