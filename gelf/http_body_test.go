package gelf

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/fake/gelfd"
)

// unzip inflates a gzip stream, which must be whole.
func unzip(t testing.TB, z []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(z))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// The ladder at its steps: 65 536 bytes with the line end are plain, one more is gzip, and what gzip does not bring down is cut.
func TestHTTPBodyAtTheLimits(t *testing.T) {
	for _, x := range []struct {
		name   string
		o      Options
		record []byte
		zipped bool
		cut    bool
		err    error
	}{
		{"small", Options{}, recordOf(60, prose), false, false, nil},
		{"as long as may be", Options{}, recordOf(65_535, noise), false, false, nil},
		{"one byte more", Options{}, recordOf(65_536, prose), true, false, nil},
		{"one byte more with Bulk", Options{Bulk: true}, recordOf(65_536, prose), false, true, nil},
		{"one byte more without compression", Options{Compression: CompressNone}, recordOf(65_536, prose), false, true, nil},
		{"one byte more with Bulk, dropped", Options{Bulk: true, Oversize: OversizeDrop}, recordOf(65_536, prose), false, false, delivery.ErrTooLarge},
		{"what gzip does not bring down", Options{}, recordOf(200_000, noise), true, true, nil},
		{"the same, dropped", Options{Oversize: OversizeDrop}, recordOf(200_000, noise), false, false, delivery.ErrTooLarge},
		{"a megabyte of zeros", Options{}, recordOf(1<<20, func(n int) string { return strings.Repeat("0", n) }), true, false, nil},
		{"the largest that inflates", Options{}, recordOf(maxInflated-2, func(n int) string { return strings.Repeat("0", n) }), true, false, nil},
		{"one byte more than inflates", Options{}, recordOf(maxInflated-1, func(n int) string { return strings.Repeat("0", n) }), true, true, nil},
		{"no record", Options{}, bytes.Repeat([]byte("z"), 70_000), true, false, nil},
		{"no record that can be cut", Options{Bulk: true}, bytes.Repeat([]byte("z"), 70_000), false, false, delivery.ErrTooLarge},
	} {
		t.Run(x.name, func(t *testing.T) {
			before := bytes.Clone(x.record)
			b, err := rigFor(t, x.o, "http://h:1", nil).fit(x.record, maxBody)
			if !errors.Is(err, x.err) || b.zipped != x.zipped || b.cut != x.cut || len(b.data) > maxBody || !bytes.Equal(before, x.record) {
				t.Fatalf("zipped %v, cut %v, %d bytes, %v", b.zipped, b.cut, len(b.data), err)
			}
			if err != nil {
				return
			}
			text := b.data
			if x.zipped {
				text = unzip(t, text)
			}
			if whole := string(text) == string(x.record)+"\n"; whole == x.cut {
				t.Errorf("whole: %v", whole)
			}
			if !bytes.HasSuffix(text, []byte("\n")) || bytes.Count(text, []byte("\n")) != 1 || len(text) >= maxInflated {
				t.Errorf("%d bytes, ends in %q", len(text), text[len(text)-2:])
			}
			if x.cut {
				if _, err := gelfd.Decode(b.data); err != nil || !bytes.Contains(text, []byte(truncatedKey)) {
					t.Errorf("%.200s: %v", text, err)
				}
				if !x.zipped && len(text) < maxBody-8 || x.zipped && len(text) < maxInflated/2 && len(b.data) < maxBody*9/10 {
					t.Errorf("%d bytes of %d are used", len(b.data), maxBody)
				}
			}
		})
	}
}

// Whatever the record and the limit, a body fits, ends in a line end, and is one message.
func TestHTTPBodyFitsAnyLimit(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for range 60 {
		limit := minBody + rng.IntN(8000)
		fill := prose
		if rng.IntN(2) == 0 {
			fill = noise
		}
		record := recordOf(limit/2+rng.IntN(8*limit), fill)
		o := Options{Bulk: rng.IntN(2) == 0}
		b, err := rigFor(t, o, "http://h:1", nil).fit(record, limit)
		if err != nil || len(b.data) > limit {
			t.Fatalf("%d bytes into %d, bulk %v: %d, %v", len(record), limit, o.Bulk, len(b.data), err)
		}
		text := b.data
		if b.zipped {
			text = unzip(t, text)
		}
		if _, err := gelfd.Decode(text); err != nil || text[len(text)-1] != '\n' {
			t.Fatalf("%d bytes into %d, bulk %v: %v", len(record), limit, o.Bulk, err)
		}
	}
}

// With Bulk a batch becomes as few requests as the limit allows, none longer, no message in two.
func TestHTTPBulkIsSplitAtTheLimit(t *testing.T) {
	for _, x := range []struct {
		name   string
		sizes  []int
		bodies []int // messages of each
	}{
		{"one", []int{100}, []int{1}},
		{"exactly", []int{30_000, 35_534}, []int{2}},
		{"one byte more", []int{30_000, 35_535}, []int{1, 1}},
		{"a giant between", []int{100, 65_535, 100, 100}, []int{1, 1, 2}},
		{"the shortest, with their line ends", slices.Repeat([]int{60}, 1100), []int{1074, 26}},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newHTTPRig(t, Options{Bulk: true, ConnsPerAddr: 1}, gelfd.HTTPOptions{Bulk: true}, nil)
				var records [][]byte
				for _, n := range x.sizes {
					records = append(records, recordOf(n, prose))
				}
				if err := r.send(t.Context(), records...); err != nil {
					t.Fatal(err)
				}
				var bodies []int
				for _, q := range r.server.Requests() {
					bodies = append(bodies, q.Messages)
					if len(q.Body) > maxBody || q.Status != 202 || q.Body[len(q.Body)-1] != '\n' {
						t.Errorf("a body of %d bytes: %d", len(q.Body), q.Status)
					}
				}
				if fmt.Sprint(bodies) != fmt.Sprint(x.bodies) || len(r.server.Messages()) != len(records) {
					t.Errorf("%v messages a body, want %v; %d in all", bodies, x.bodies, len(r.server.Messages()))
				}
			})
		})
	}
}

// A server that takes less than Graylog's default is found out by halves. The record that met its limit is made to fit at once, later
// ones are sent so from the start, and it is told once.
func TestHTTPLearnsTheLimit(t *testing.T) {
	for _, x := range []struct {
		name     string
		o        Options
		takes    int // bytes of a body
		record   []byte
		outcome  string
		statuses string
		again    string // the statuses of a second such record
		cut      int
		troubles int
	}{
		{"gzip helps", Options{}, 20_000, recordOf(40_000, prose), "1 delivered", "[413 202]", "[202]", 0, 1},
		{"cut until it fits", Options{}, 20_000, recordOf(60_000, noise), "1 delivered", "[413 413 202]", "[202]", 1, 2},
		{"cut, with Bulk", Options{Bulk: true}, 20_000, recordOf(40_000, prose), "1 delivered", "[413 202]", "[202]", 1, 1},
		{"a kilobyte is enough", Options{Bulk: true}, 1_100, recordOf(40_000, prose), "1 delivered", "[413 413 413 413 413 413 202]", "[202]", 1, 6},
		{"nothing is small enough", Options{Bulk: true}, 10, recordOf(3000, prose), "1 drop rejected", "[413 413 413]", "[413]", 0, 2},
		{"to be dropped", Options{Bulk: true, Oversize: OversizeDrop}, 20_000, recordOf(40_000, prose), "1 drop too_large", "[413]", "[]", 0, 1},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newHTTPRig(t, x.o, gelfd.HTTPOptions{MaxBody: x.takes}, nil)
				statuses := func(from int) string {
					s := []int{}
					for _, q := range r.server.Requests()[from:] {
						s = append(s, q.Status)
					}
					return fmt.Sprint(s)
				}
				for i, want := range []string{x.statuses, x.again} {
					before := len(r.server.Requests())
					if err := r.send(t.Context(), x.record); err != nil {
						t.Error(err)
					}
					if got := r.outcomes(); got != x.outcome || statuses(before) != want {
						t.Errorf("%s by %s, want %s by %s", got, statuses(before), x.outcome, want)
					}
					if r.truncated != x.cut*(i+1) || len(r.troubles) != x.troubles {
						t.Errorf("%d truncated, want %d; told %v", r.truncated, x.cut*(i+1), r.troubles)
					}
				}
				if e := new(StatusError); !errors.As(r.troubles[0].err, &e) || e.Status != 413 {
					t.Errorf("%v", r.troubles[0].err)
				}
			})
		})
	}
}

// Several messages in a body that is too large are halved by the engine, and the limit is learnt.
func TestHTTPHalvesABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHTTPRig(t, Options{Bulk: true}, gelfd.HTTPOptions{Bulk: true, MaxBody: 25_000}, nil)
		record := recordOf(10_000, prose)
		if err := r.send(t.Context(), record, record, record, record); err != nil {
			t.Error(err)
		}
		if got := r.outcomes(); got != "4 halve" || len(r.troubles) != 1 {
			t.Errorf("%s, %v", got, r.troubles)
		}
		if err := r.send(t.Context(), record, record, record, record); err != nil {
			t.Error(err)
		}
		if got := r.outcomes(); got != "4 delivered" || len(r.server.Messages()) != 4 {
			t.Errorf("%s", got)
		}
	})
}

// What the encoder has cut counts there; cut again, it is not a second message.
func TestHTTPCutTwiceCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHTTPRig(t, Options{Bulk: true}, gelfd.HTTPOptions{Bulk: true}, nil)
		record := []byte(`{"version":"1.1","host":"h","short_message":"` + prose(70_000) + `","_truncated":5}`)
		if err := r.send(t.Context(), record); err != nil || r.outcomes() != "1 delivered" || r.truncated != 0 {
			t.Errorf("%v, %d truncated", err, r.truncated)
		}
	})
}
