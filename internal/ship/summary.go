package ship

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/wholelog/wholelog/delivery"
)

// summaryEvery is the shortest time between two summaries: one line tells as much as a hundred do, and the destination that losses
// come from needs no more load.
const summaryEvery = 10 * time.Second

// summary collects losses until the next record about them. Guarded by the engine's mu.
type summary struct {
	on      bool
	lost    []reasonCount // since the last one
	told    bool          // one was sent
	at      stamp         // then
	pending bool          // one is on its way to the queue
}

// losses adds n records lost for reason.
func (s *summary) losses(reason delivery.Reason, n uint64) {
	if s.on {
		s.lost = count(s.lost, reason, n)
	}
}

// summarise sends a summary if one is due, in Sync mode before until, and returns how long until it must look again. The caller holds
// mu.
func (e *Engine) summarise(now stamp, until time.Time) time.Duration {
	s := &e.summary
	if len(s.lost) == 0 || s.pending || e.state >= closing {
		return never
	}
	if s.told && !s.at.over(now, summaryEvery) {
		return summaryEvery - (now.mono - s.at.mono) + time.Millisecond
	}
	lost := s.lost
	s.lost, s.pending, s.told, s.at = nil, true, true, now
	e.hooks.send(func() { e.sendSummary(lost, until) })
	return never
}

// sendSummary encodes the record and sends it. When there is no room for it, its losses are told by the next one.
func (e *Engine) sendSummary(lost []reasonCount, until time.Time) {
	sent := false
	defer func() { // also when user code ends the goroutine
		e.mu.Lock()
		defer e.mu.Unlock()
		e.summary.pending = false
		if !sent {
			for _, c := range lost {
				e.summary.losses(c.reason, c.n)
			}
		}
	}()
	data := guardOwn(e.encodeOwn, summaryRecord(lost))
	sent = len(data) > 0 && len(data) <= e.max && e.putOwn(data, until)
}

// putOwn takes a record of the library's own, if there is room at once, and in Sync mode sends it before until.
func (e *Engine) putOwn(data []byte, until time.Time) bool {
	e.mu.Lock()
	if e.state >= closing {
		e.mu.Unlock()
		return false
	}
	if e.opts.Sync {
		r := &Rec{data: data, level: slog.LevelWarn, flags: own | quiet}
		e.admit(r)
		e.wg.Add(1)
		defer e.wg.Done()
		e.mu.Unlock()
		ctx, cancel := context.WithDeadline(e.ctx, until)
		defer cancel()
		d := e.trySync(ctx, e.routes[0], r)
		e.mu.Lock()
		defer e.mu.Unlock()
		e.finishOne(r, d.Reason)
		return d.Reason == ""
	}
	r := e.arena.add(slog.LevelWarn, data)
	if r == nil {
		e.mu.Unlock()
		return false
	}
	r.flags |= own | quiet
	wake := e.enqueue(r)
	e.mu.Unlock()
	if wake {
		e.signal()
	}
	return true
}

// summaryRecord says how many records were lost and why.
func summaryRecord(lost []reasonCount) slog.Record {
	var total uint64
	slices.SortFunc(lost, func(a, b reasonCount) int { return strings.Compare(string(a.reason), string(b.reason)) })
	reasons := make([]any, 0, len(lost))
	for _, c := range lost {
		total += c.n
		reasons = append(reasons, slog.Int64(string(c.reason), int64(c.n)))
	}
	r := slog.NewRecord(time.Now(), slog.LevelWarn, "log records were lost", 0)
	r.AddAttrs(slog.Int64("lost", int64(total)), slog.Group("reasons", reasons...))
	return r
}
