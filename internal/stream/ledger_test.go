package stream

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/wholelog/wholelog/internal/ship"
)

// FuzzLedger: whatever is written and acknowledged in whatever steps, every record is settled once, in order, as soon as its last byte is
// acknowledged and never before.
func FuzzLedger(f *testing.F) {
	f.Add([]byte{3, 0, 5, 1, 9, 2, 0xff, 4, 1})
	f.Add([]byte{1, 1, 1, 0x80, 0x81, 0x90, 2, 2, 0xff})
	f.Add([]byte{10, 0xff, 10, 0xff, 0xfe})
	f.Fuzz(func(t *testing.T, steps []byte) {
		var (
			now     = time.Now()
			written uint64 // by us
			acked   uint64 // by the peer
			ends    []uint64
			settled int
		)
		l := ledger{unacked: func() (int, bool) { return int(written - acked), true }}
		for _, step := range steps {
			if step < 0x80 { // a batch of so many records, each one byte longer
				n := int(step) % 7
				data := make([][]byte, n)
				first := len(ends)
				b := ship.NewBatch(data, func(from, to int, o ship.Outcome) {
					if o.Do != ship.Delivered || first+from != settled || to <= from {
						t.Fatalf("%v for %d to %d, of which %d are settled", o.Do, first+from, first+to, settled)
					}
					settled = first + to
				})
				f := flight{batch: b, ends: l.room()}
				for i := range n {
					written += uint64(i + 1)
					f.ends = append(f.ends, written)
				}
				ends = append(ends, f.ends...)
				if n > 0 {
					l.add(f, true, now)
				}
				continue
			}
			acked = min(written, acked+uint64(step&0x7f))
			l.ask(written, now)
			for i, end := range ends {
				if i < settled && end > acked || i >= settled && end <= acked {
					t.Fatalf("acknowledged to %d: %d are settled of %v", acked, settled, ends)
				}
			}
		}
		acked = written
		l.ask(written, now)
		if settled != len(ends) || len(l.flights) != 0 {
			t.Fatalf("%d of %d are settled, %d flights are left", settled, len(ends), len(l.flights))
		}
	})
}

// A kernel that does not know, or counts more than we have written so far, says nothing.
func TestLedgerIsCareful(t *testing.T) {
	n, ok := 0, false
	l := ledger{unacked: func() (int, bool) { return n, ok }}
	b := ship.NewBatch([][]byte{nil}, func(int, int, ship.Outcome) { t.Error("settled") })
	l.add(flight{batch: b, ends: []uint64{100}}, true, time.Now())
	l.ask(100, time.Now())
	n, ok = 101, true // a write under way is in the kernel's count and not yet in ours
	l.ask(100, time.Now())
	n = 1
	l.ask(100, time.Now())
	if l.acked != 99 {
		t.Errorf("acked %d", l.acked)
	}
}

// What the kernel has, below TLS, is only known for a whole write; a failed one has no end at all.
func TestCounted(t *testing.T) {
	w := &wire{}
	plain, tls := &link{conn: w, wire: w}, &link{conn: panics{}, wire: w}
	for _, tc := range []struct {
		l       *link
		before  uint64
		after   uint64
		n       int
		failed  bool
		want    string
		comment string
	}{
		{plain, 100, 106, 6, false, "[102 104 106]", "all"},
		{plain, 100, 103, 3, true, "[102 104]", "the second in part"},
		{plain, 100, 104, 4, true, "[102 104]", "of the third nothing"},
		{plain, 100, 100, 0, true, "[]", "nothing"},
		{tls, 100, 135, 6, false, "[135 135 135]", "with what TLS adds"},
		{tls, 100, 100, 0, true, "[]", "nothing"},
		{tls, 100, 110, 0, true, strings.ReplaceAll("[max max max]", "max", fmt.Sprint(uint64(1<<64-1))), "perhaps any of them"},
	} {
		w.written.Store(tc.after)
		var err error
		if tc.failed {
			err = errGivenUp
		}
		if got := fmt.Sprint(tc.l.counted([]uint64{2, 4, 6}, tc.before, tc.n, err)); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.comment, got, tc.want)
		}
	}
}
