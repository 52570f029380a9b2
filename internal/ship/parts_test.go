package ship

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/wholelog/wholelog/delivery"
)

// The shaper lets a burst of 10 ms go at once, then keeps the rate; a quiet time earns nothing more. Of two rates the lower one rules,
// and a large record is paid for by those behind it.
func TestShaper(t *testing.T) {
	const ms = time.Millisecond
	type step struct {
		at   time.Duration
		size int // taken if wait is not positive
		wait time.Duration
	}
	for _, tc := range []struct {
		name  string
		o     delivery.Options
		steps []step
	}{
		{"none", delivery.Options{}, []step{{0, 1 << 20, 0}, {0, 1 << 20, 0}}},
		{"records", delivery.Options{RecordRate: 200}, []step{
			{0, 1, -10 * ms},
			{0, 1, -5 * ms},
			{0, 1, 0},
			{0, 1, 5 * ms},
			{4 * ms, 1, 1 * ms},
			{5 * ms, 1, 0},
			{5 * ms, 1, 5 * ms},
			{time.Hour, 1, 20*ms - time.Hour - 10*ms},
			{time.Hour, 1, -5 * ms},
			{time.Hour, 1, 0},
			{time.Hour, 1, 5 * ms},
		}},
		{"bytes", delivery.Options{ByteRate: 1000}, []step{{0, 100, -10 * ms}, {0, 1, 90 * ms}, {90 * ms, 1, 0}, {90 * ms, 1, 1 * ms}}},
		{"records are the lower one", delivery.Options{RecordRate: 10, ByteRate: 1000}, []step{{0, 1, -10 * ms}, {0, 1, 90 * ms}}},
		{"bytes are the lower one", delivery.Options{RecordRate: 10, ByteRate: 1}, []step{{0, 1, -10 * ms}, {0, 1, 990 * ms}}},
	} {
		s := newShaper(tc.o)
		for i, st := range tc.steps {
			now := stamp{mono: st.at}
			wait := s.wait(now)
			if wait != st.wait {
				t.Errorf("%s, step %d: wait %v, want %v", tc.name, i, wait, st.wait)
			}
			if wait <= 0 {
				s.take(now, st.size)
			}
		}
	}
}

// A record below Warn pushes out the first one below Warn, in whatever place that stands, as far as a short search goes; one at Warn or
// above pushes out the first.
func TestVictim(t *testing.T) {
	many := make([]slog.Level, 300)
	for i := range many {
		many[i] = slog.LevelWarn
	}
	late := append(slices.Clone(many), slog.LevelInfo)
	for _, tc := range []struct {
		name       string
		levels     []slog.Level // of records 1, 2, 3, …
		info, warn uint64       // which of them is pushed out by a record of these levels
	}{
		{"empty", nil, 0, 0},
		{"a warning alone", []slog.Level{slog.LevelWarn}, 0, 1},
		{"the first", []slog.Level{slog.LevelDebug, slog.LevelInfo}, 1, 1},
		{"the next, the last of all", []slog.Level{slog.LevelWarn, slog.LevelInfo}, 2, 1},
		{"one in the middle", []slog.Level{slog.LevelWarn, slog.LevelWarn, slog.LevelInfo, slog.LevelError}, 3, 1},
		{"the last", []slog.Level{slog.LevelError, slog.LevelWarn, slog.LevelError, slog.LevelInfo}, 4, 1},
		{"none", []slog.Level{slog.LevelWarn, slog.LevelError}, 0, 1},
		{"none among many", many, 0, 1},
		{"one too far away", late, 0, 1},
	} {
		for level, out := range map[slog.Level]uint64{slog.LevelInfo: tc.info, slog.LevelWarn: tc.warn} {
			var l list
			var want []uint64
			for i, level := range tc.levels {
				seq := uint64(i + 1)
				l.push(&Rec{seq: seq, level: level, data: make([]byte, i+1)})
				if seq != out {
					want = append(want, seq)
				}
			}
			var got uint64
			if before, r := l.victim(level); r != nil {
				l.remove(before, r)
				if got = r.seq; r.next != nil {
					t.Errorf("%s: what was taken out still points into the list", tc.name)
				}
			}
			if got != out || !slices.Equal(l.order(t), want) {
				t.Errorf("%s: %v took out %d, left %v", tc.name, level, got, l.order(t))
			}
			l.push(&Rec{seq: 1000}) // the tail is where it should be
			if !slices.Equal(l.order(t), append(want, 1000)) {
				t.Errorf("%s: then %v", tc.name, l.order(t))
			}
		}
	}
}
