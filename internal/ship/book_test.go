package ship

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/wholelog/wholelog/delivery"
)

// book knows every record that was given to an engine and what was said about it. A record is known by its number, which is its level
// as well: losses at different levels are told one by one.
type book struct {
	mu      sync.Mutex
	put     map[int]bool
	dropped map[int]int
	sums    map[delivery.Reason]uint64
}

func newBook() *book {
	return &book{put: make(map[int]bool), dropped: make(map[int]int), sums: make(map[delivery.Reason]uint64)}
}

// urgent is where the levels of urgent records begin; others are below zero.
const urgent = slog.LevelWarn

// log gives record id to e, size bytes longer than its number, and says whether e still takes records.
func (k *book) log(e *Engine, id, size int, level slog.Level) (open bool) {
	if level < urgent {
		level = slog.LevelDebug
		level -= slog.Level(id)
	} else {
		level = urgent + slog.Level(id)
	}
	err := e.Put(level, fmt.Appendf(nil, "%06d%s", id, strings.Repeat("x", size)))
	if errors.Is(err, delivery.ErrClosed) && !errors.As(err, new(delivery.Drop)) {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.put[id] = true
	return true
}

// onDrop is a hook.
func (k *book) onDrop(d delivery.Drop) {
	k.mu.Lock()
	defer k.mu.Unlock()
	id := int(d.Level - urgent)
	if d.Level < 0 {
		id = int(slog.LevelDebug - d.Level)
	}
	k.dropped[id] += d.Records
	k.sums[d.Reason] += uint64(d.Records)
}

// number is the id of a record that arrived; false for the engine's own.
func number(m string) (int, bool) {
	id, err := strconv.Atoi(m[:min(len(m), 6)])
	return id, err == nil
}

// pending are the records that the engine has: in its lists, or with a link.
func (k *book) pending(e *Engine) map[int]bool {
	out := make(map[int]bool)
	enter := func(r *Rec) {
		if id, ok := number(string(r.data)); ok {
			out[id] = true
		}
	}
	e.links.Lock()
	defer e.links.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.enter()
	for l := range e.lists() {
		for r := l.head; r != nil; r = r.next {
			enter(r)
		}
	}
	for _, rt := range e.routes {
		for _, s := range slices.Concat(rt.slots, rt.retired) {
			for b := s.batches; b != nil; b = b.next {
				for _, r := range b.recs {
					if r.batch == b {
						enter(r)
					}
				}
			}
		}
	}
	return out
}

// check is for a moment at which nothing moves. Every record is in exactly one place: confirmed by a receiver that has it, told to
// OnDrop, or pending. A pending one may have arrived: it has just been sent. Beyond that a record arrives once too often only when the
// engine says that it was perhaps taken and sent again, or was lost for having been perhaps taken too often.
func (k *book) check(t testing.TB, e *Engine, net *fakeNet) {
	t.Helper()
	s, pending := e.Stats(), k.pending(e)
	balanced(t, s)
	arrived, confirmed, lost := make(map[int]int), make(map[int]bool), make(map[int]bool)
	net.mu.Lock()
	for _, got := range net.got {
		for _, m := range got {
			if id, ok := number(m); ok {
				arrived[id]++
			}
		}
	}
	for in, out := range map[*map[string]bool]map[int]bool{&net.confirmed: confirmed, &net.lost: lost} {
		for m := range *in {
			if id, ok := number(m); ok {
				out[id] = true
			}
		}
	}
	if len(net.misused) > 0 {
		t.Errorf("links were misused: %q", net.misused)
	}
	net.mu.Unlock()

	k.mu.Lock()
	defer k.mu.Unlock()
	more := 0 // arrivals that only "perhaps taken" explains
	for id := range k.put {
		places := k.dropped[id]
		if confirmed[id] {
			places++
		}
		if pending[id] {
			places++
		}
		if places != 1 {
			t.Errorf("record %d: confirmed %v, dropped %d times, pending %v", id, confirmed[id], k.dropped[id], pending[id])
		}
		if confirmed[id] && arrived[id] == 0 && !lost[id] {
			t.Errorf("record %d was confirmed and never arrived", id)
		}
		if more += arrived[id]; (confirmed[id] || pending[id]) && arrived[id] > 0 {
			more--
		}
	}
	for id := range arrived {
		if !k.put[id] {
			t.Errorf("record %d arrived and was never accepted", id)
		}
	}
	if most := s.Resent + s.Reasons[delivery.ReasonTriesExhausted]; uint64(more) > most {
		t.Errorf("%d arrivals too many, sent again %d", more, most)
	}
	for reason, n := range s.Reasons {
		if k.sums[reason] != n {
			t.Errorf("OnDrop was told %d for %s, Stats has %d", k.sums[reason], reason, n)
		}
	}
	if n := uint64(len(k.put)); s.Accepted != n || s.Delivered != uint64(len(confirmed)) || s.Pending != uint64(len(pending)) {
		t.Errorf("%d put, %d confirmed, %d pending, %+v", n, len(confirmed), len(pending), s)
	}
}

// inOrder says whether the records of an address arrived in order of their numbers, repetitions left out.
func inOrder(got []string) bool {
	seen := make(map[string]bool)
	var first []string
	for _, m := range got {
		if !seen[m] && m[0] >= '0' && m[0] <= '9' {
			seen[m] = true
			first = append(first, m)
		}
	}
	return slices.IsSorted(first)
}
