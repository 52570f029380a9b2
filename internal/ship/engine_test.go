package ship

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/jitter"
	"github.com/wholelog/wholelog/resolve"
)

// R53: everything accepted is handed over before Close returns, and the counters say so.
func TestR53_CloseDeliversAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newFakeNet(Limits{})
		e := newTestEngine(net, delivery.Options{}, resolveTo(addrs(3)...))
		for i := range 100 {
			if err := e.Put(slog.LevelInfo, fmt.Appendf(nil, "m%03d", i)); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		if net.total() != 100 || net.open != 0 || net.drains != 3 {
			t.Fatalf("arrived %d, links open %d, drained %d", net.total(), net.open, net.drains)
		}
		s := e.Stats()
		balanced(t, s)
		if s.Delivered != 100 || s.PendingBytes != 0 {
			t.Fatalf("%+v", s)
		}
		if err := e.Put(slog.LevelInfo, []byte("late")); !errors.Is(err, delivery.ErrClosed) {
			t.Fatalf("Put after Close: %v", err)
		}
		if got := e.Stats().Accepted; got != 100 {
			t.Fatalf("a record after Close was counted: %d", got)
		}
	})
}

// Shares are equal, and every record goes to exactly one address (R47).
func TestR47_SharesAreEqual(t *testing.T) {
	for seed := range 10 {
		synctest.Test(t, func(t *testing.T) {
			net := newFakeNet(Limits{LinksPerAddr: 1 + seed%2})
			e := newTestEngine(net, delivery.Options{}, resolveTo(addrs(3)...))
			defer e.Close()
			for i := range 3134 {
				_ = e.Put(slog.LevelInfo, fmt.Appendf(nil, "m%d", i))
				if i%7 == 0 {
					time.Sleep(time.Millisecond)
				}
			}
			mustFlush(t, e)
			var counts []int
			seen := make(map[string]int)
			for _, a := range addrs(3) {
				got := net.received(a)
				counts = append(counts, len(got))
				for _, m := range got {
					seen[m]++
				}
			}
			slices.Sort(counts)
			if counts[2]-counts[0] > 1 || len(seen) != 3134 {
				t.Fatalf("shares %v, different messages %d", counts, len(seen))
			}
		})
	}
}

// Weights are honoured: 3:2:1.
func TestWeights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newFakeNet(Limits{})
		a := addrs(3)
		e := newTestEngine(net, delivery.Options{}, resolve.Options{Resolver: weighted{a[0]: 300, a[1]: 200, a[2]: 100}})
		defer e.Close()
		for range 600 {
			_ = e.Put(slog.LevelInfo, []byte("m"))
		}
		mustFlush(t, e)
		got := []int{len(net.received(a[0])), len(net.received(a[1])), len(net.received(a[2]))}
		for i, want := range []int{300, 200, 100} {
			if d := got[i] - want; d < -2 || d > 2 {
				t.Fatalf("shares %v", got)
			}
		}
	})
}

// R59: one link keeps the order, also across a break.
func TestR59_OrderAcrossABreak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newFakeNet(Limits{BatchRecords: 7})
		sends := 0
		net.send = func(l *fakeLink, b *Batch) error {
			if sends++; sends%3 == 0 {
				l.take(b, 0, b.Len()/2) // half of it went out, nothing was confirmed
				return errors.New("broken")
			}
			l.deliver(b)
			return nil
		}
		e := newTestEngine(net, delivery.Options{Tries: 1000}, resolveTo(addrs(1)...))
		for i := range 500 {
			_ = e.Put(slog.LevelInfo, fmt.Appendf(nil, "%05d", i))
		}
		mustFlush(t, e)
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		var first []string // each record when it was first seen
		seen := make(map[string]bool)
		for _, m := range net.received(addrs(1)[0]) {
			if !seen[m] {
				seen[m] = true
				first = append(first, m)
			}
		}
		if len(first) != 500 || !slices.IsSorted(first) {
			t.Fatalf("%d records, sorted %v", len(first), slices.IsSorted(first))
		}
		s := e.Stats()
		balanced(t, s)
		dups := net.total() - 500
		if s.Resent == 0 || uint64(dups) > s.Resent || s.Reconnects == 0 {
			t.Fatalf("resent %d, duplicates %d, reconnects %d", s.Resent, dups, s.Reconnects)
		}
	})
}

// Outcomes: what each does to a record.
func TestOutcomes(t *testing.T) {
	boom := errors.New("boom")
	for _, tc := range []struct {
		name    string
		outcome Outcome
		times   int // how often the link answers so before it delivers
		want    func(s delivery.Stats) bool
		reason  delivery.Reason
	}{
		{
			"requeue counts no try",
			Outcome{Do: Requeue, Cause: delivery.CauseBusy, Err: boom},
			30,
			func(s delivery.Stats) bool { return s.Delivered == 1 && s.Resent == 0 }, "",
		},
		{"requeue without a cause", Outcome{Do: Requeue}, 3, func(s delivery.Stats) bool { return s.Delivered == 1 }, ""},
		{"resend", Outcome{Do: Resend, Err: boom}, 9, func(s delivery.Stats) bool { return s.Delivered == 1 && s.Resent == 9 }, ""},
		{
			"resend until the tries are used up",
			Outcome{Do: Resend, Err: boom},
			10,
			func(s delivery.Stats) bool { return s.Dropped == 1 && s.Resent == 9 }, delivery.ReasonTriesExhausted,
		},
		{
			"drop",
			Outcome{Do: Drop, Reason: delivery.ReasonBadEvent, Err: boom},
			1,
			func(s delivery.Stats) bool { return s.Dropped == 1 }, delivery.ReasonBadEvent,
		},
		{"drop without a reason", Outcome{Do: Drop}, 1, func(s delivery.Stats) bool { return s.Dropped == 1 }, delivery.ReasonRejected},
		{"halve alone", Outcome{Do: Halve, Err: boom}, 1, func(s delivery.Stats) bool { return s.Dropped == 1 }, delivery.ReasonRejected},
		{"divert without a fallback", Outcome{Do: Divert}, 1, func(s delivery.Stats) bool { return s.Dropped == 1 }, delivery.ReasonTooLarge},
		{"forgotten", Outcome{}, 1, func(s delivery.Stats) bool { return s.Delivered == 1 && s.Resent == 1 }, ""},
	} {
		for _, sync := range []bool{false, true} {
			if sync && tc.times > 2 {
				continue // Sync tries each address once
			}
			t.Run(fmt.Sprintf("%s/sync=%v", tc.name, sync), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					net := newFakeNet(Limits{})
					left := tc.times
					net.send = func(l *fakeLink, b *Batch) error {
						if left--; left >= 0 {
							b.Settle(0, b.Len(), tc.outcome)
							return nil
						}
						l.deliver(b)
						return nil
					}
					var drops []delivery.Drop
					e := newTestEngine(net, delivery.Options{
						Sync: sync, Backoff: jitter.Backoff{Max: time.Second},
						OnDrop: func(d delivery.Drop) { drops = append(drops, d) },
					},
						resolveTo(addrs(2)...))
					err := e.Put(slog.LevelWarn, []byte("record"))
					mustFlush(t, e)
					if err := e.Close(); err != nil {
						t.Fatal(err)
					}
					s := e.Stats()
					balanced(t, s)
					if !tc.want(s) {
						t.Fatalf("%+v", s)
					}
					if tc.reason == "" {
						if len(drops) > 0 || err != nil {
							t.Fatalf("drops %v, error %v", drops, err)
						}
						return
					}
					if len(drops) != 1 || drops[0].Reason != tc.reason || string(drops[0].Data) != "record" ||
						drops[0].Level != slog.LevelWarn || drops[0].Records != 1 || drops[0].Bytes != 6 {
						t.Fatalf("%+v", drops)
					}
					var d delivery.Drop
					if sync && (!errors.As(err, &d) || d.Reason != tc.reason || d.Data != nil) {
						t.Fatalf("error %v", err)
					}
				})
			})
		}
	}
}

// Halve finds the one record that a receiver refuses without naming it, and delivers all others.
func TestHalveFindsTheCulprit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newFakeNet(Limits{Linger: 10 * time.Millisecond})
		net.send = func(l *fakeLink, b *Batch) error {
			for i := range b.Len() {
				if strings.HasPrefix(string(b.At(i).Bytes()), "bad") {
					b.Settle(0, b.Len(), Outcome{Do: Halve, Reason: delivery.ReasonBadEvent})
					return nil
				}
			}
			l.deliver(b)
			return nil
		}
		e := newTestEngine(net, delivery.Options{}, resolveTo(addrs(2)...))
		for i := range 100 {
			name := "good"
			if i == 17 || i == 80 {
				name = "bad"
			}
			_ = e.Put(slog.LevelInfo, fmt.Appendf(nil, "%s%d", name, i))
		}
		mustFlush(t, e)
		_ = e.Close()
		s := e.Stats()
		balanced(t, s)
		if net.total() != 98 || s.Reasons[delivery.ReasonBadEvent] != 2 {
			t.Fatalf("arrived %d, %+v", net.total(), s)
		}
	})
}

// A diverted record leaves by the fallback route, and only then are its addresses looked up.
func TestDivert(t *testing.T) {
	for _, sync := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			small, large := newFakeNet(Limits{}), newFakeNet(Limits{})
			small.send = func(l *fakeLink, b *Batch) error {
				for i := range b.Len() {
					if len(b.At(i).Bytes()) > 10 {
						b.Settle(i, i+1, Outcome{Do: Divert})
					} else {
						l.take(b, i, i+1)
						b.Settle(i, i+1, Outcome{Do: Delivered})
					}
				}
				return nil
			}
			e := twoRoutes(small, large, delivery.Options{Sync: sync})
			_ = e.Put(slog.LevelInfo, []byte("small"))
			mustFlush(t, e)
			if got := e.Stats().Lookups; got != 1 {
				t.Fatalf("look-ups before the fallback is needed: %d", got)
			}
			_ = e.Put(slog.LevelInfo, []byte("larger than ten bytes"))
			mustFlush(t, e)
			_ = e.Close()
			s := e.Stats()
			balanced(t, s)
			if small.total() != 1 || large.total() != 1 || s.Diverted != 1 || s.Delivered != 2 {
				t.Fatalf("small %d, large %d, %+v", small.total(), large.total(), s)
			}
		})
	}
}

// R38, R43: records wait while the name does not resolve or nobody answers, and arrive once that is over.
func TestR38_R43_RecordsWaitForTheirDestination(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newFakeNet(Limits{})
		name := &answer{err: errors.New("no such host")}
		var mu sync.Mutex
		var errs []error
		e := newTestEngine(net, delivery.Options{OnError: func(err error) {
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
		}}, resolve.Options{Resolver: name})
		for range 10 {
			_ = e.Put(slog.LevelInfo, []byte("early"))
		}
		time.Sleep(time.Minute)
		if s := e.Stats(); s.Pending != 10 || s.LookupErrors == 0 {
			t.Fatalf("%+v", s)
		}
		mu.Lock()
		if len(errs) == 0 || !strings.HasPrefix(errs[0].Error(), "test: ") || !strings.Contains(errs[0].Error(), "no such host") {
			t.Fatalf("reported: %v", errs)
		}
		mu.Unlock()
		net.setRefuse(addrs(1)[0], errors.New("connection refused"))
		name.change(nil, addrs(1)...)
		time.Sleep(time.Minute)
		if s := e.Stats(); s.Pending != 10 || net.dials[addrs(1)[0]] < 2 {
			t.Fatalf("dials %v, %+v", net.dials, s)
		}
		net.setRefuse(addrs(1)[0], nil)
		mustFlush(t, e)
		_ = e.Close()
		if s := e.Stats(); net.total() != 10 || s.Reconnects != 1 {
			t.Fatalf("arrived %d, %+v", net.total(), s)
		}
	})
}

// R56: Flush returns when its context ends first, and says how much is pending.
func TestR56_FlushEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newFakeNet(Limits{})
		net.send = func(l *fakeLink, _ *Batch) error { <-l.closed; return errLinkClosed }
		e := newTestEngine(net, delivery.Options{}, resolveTo(addrs(1)...))
		for range 3 {
			_ = e.Put(slog.LevelInfo, []byte("m"))
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		err := e.Flush(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "3 records pending") {
			t.Fatalf("Flush: %v", err)
		}
		began := time.Now()
		err = e.Close()
		if !errors.Is(err, delivery.ErrClosed) || !strings.Contains(err.Error(), "3 records dropped") {
			t.Fatalf("Close: %v", err)
		}
		if took := time.Since(began); took > 7*time.Second {
			t.Fatalf("Close took %v", took)
		}
		s := e.Stats()
		balanced(t, s)
		if s.Reasons[delivery.ReasonClosed] != 3 {
			t.Fatalf("%+v", s)
		}
	})
}
