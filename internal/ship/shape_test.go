package ship

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/pool"
)

// R51: with 500 records a second, 1000 records logged at once take 2 s to leave and none is lost; the rate holds during Close and in
// Sync mode too.
func TestR51_Rates(t *testing.T) {
	for _, tc := range []struct {
		name  string
		o     delivery.Options
		n     int
		close bool
	}{
		{"records", delivery.Options{RecordRate: 500}, 1000, false},
		{"bytes", delivery.Options{ByteRate: 50_000}, 1000, false},
		{"both, the lower one rules", delivery.Options{RecordRate: 500, ByteRate: 1 << 30}, 1000, false},
		{"during Close", delivery.Options{RecordRate: 500}, 1000, true},
		{"sync", delivery.Options{RecordRate: 500, Sync: true}, 1000, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := newFakeNet(Limits{})
				var at []time.Duration
				began := time.Now()
				net.send = func(l *fakeLink, b *Batch) error {
					for range b.Len() {
						at = append(at, time.Since(began))
					}
					l.deliver(b)
					return nil
				}
				e := newTestEngine(net, tc.o, resolveTo(addrs(1)...))
				defer e.Close()
				rec := bytes.Repeat([]byte("x"), 100)
				for range tc.n {
					if err := e.Put(slog.LevelInfo, rec); err != nil {
						t.Fatal(err)
					}
				}
				if tc.close {
					if err := e.Close(); err != nil {
						t.Fatal(err)
					}
				} else {
					mustFlush(t, e)
				}
				if took := at[len(at)-1]; took < 1970*time.Millisecond || took > 2030*time.Millisecond || len(at) != tc.n {
					t.Errorf("%d records in %v", len(at), took)
				}
				for i := 100; i < len(at); i++ { // no second has more than its 500, and a burst
					if at[i]-at[i-100] < 180*time.Millisecond {
						t.Fatalf("100 records in %v", at[i]-at[i-100])
					}
				}
			})
		})
	}
}

// A rate that does not let a record leave within SyncTimeout is a loss of its own kind, not a wait without end.
func TestRateAndSyncTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newTestEngine(newFakeNet(Limits{}), delivery.Options{RecordRate: 1, Sync: true, SyncTimeout: 100 * time.Millisecond}, resolveTo(addrs(1)...))
		defer e.Close()
		if err := e.Put(slog.LevelInfo, []byte("one")); err != nil {
			t.Fatal(err)
		}
		var d delivery.Drop
		if err := e.Put(slog.LevelInfo, []byte("two")); !errors.As(err, &d) || d.Reason != delivery.ReasonSyncFailed {
			t.Fatalf("%v", err)
		}
		balanced(t, e.Stats())
	})
}

// What is reserved is for records at Warn and above: a flood of others leaves room for them.
func TestReserve(t *testing.T) {
	rec := bytes.Repeat([]byte("x"), 1000)
	for _, tc := range []struct {
		reserve float64
		least   int // warnings that find room behind the flood
		most    int
	}{{0, 30, 80}, {0.5, 150, 300}, {-1, 0, 60}} {
		for _, policy := range []delivery.Overflow{delivery.DropNewest, delivery.Block} {
			synctest.Test(t, func(t *testing.T) {
				e := newTestEngine(stalled(Limits{}), delivery.Options{
					QueueBytes: 512 << 10, Overflow: policy, Reserve: tc.reserve, MaxBlock: time.Millisecond,
				}, resolveTo(addrs(1)...))
				for range 1000 {
					_ = e.Put(slog.LevelInfo, rec)
				}
				n := 0
				for e.Put(slog.LevelWarn, rec) == nil {
					n++
				}
				if n < tc.least || n > tc.most {
					t.Errorf("reserve %v, %v: %d warnings found room", tc.reserve, policy, n)
				}
				if err := e.Put(slog.LevelInfo, []byte("x")); err == nil && tc.reserve >= 0 {
					t.Errorf("reserve %v, %v: a record of no urgency took what is reserved", tc.reserve, policy)
				}
				_ = e.Close()
				balanced(t, e.Stats())
			})
		}
	}
}

// After losses one record of the library's own says how many and why, once in 10 s, and is in no counter but Own.
func TestSummary(t *testing.T) {
	for _, sync := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			net := newFakeNet(Limits{})
			net.send = func(l *fakeLink, b *Batch) error {
				for i := range b.Len() {
					if strings.HasPrefix(string(b.At(i).Bytes()), "bad") {
						b.Settle(i, i+1, Outcome{Do: Drop, Reason: delivery.ReasonRejected})
						continue
					}
					l.take(b, i, i+1)
					b.Settle(i, i+1, Outcome{Do: Delivered})
				}
				return nil
			}
			e := New(Config{
				Name: "test", Main: Route{net, pool.New(pool.Config{Options: resolveTo(addrs(1)...)})},
				Options: delivery.Options{Summary: true, Sync: sync},
				Own: func(dst []byte, r slog.Record) []byte {
					dst = append(dst, r.Message...)
					r.Attrs(func(a slog.Attr) bool {
						dst = fmt.Appendf(dst, " %s=%v", a.Key, a.Value)
						return true
					})
					return dst
				},
			})
			bad := func(n int) {
				for range n {
					_ = e.Put(slog.LevelInfo, []byte("bad"))
				}
				_ = e.Put(slog.LevelInfo, make([]byte, e.MaxRecord()+1))
				mustFlush(t, e)
				time.Sleep(time.Second)
			}
			bad(3)
			bad(2)
			time.Sleep(10 * time.Second)
			if sync {
				_ = e.Put(slog.LevelInfo, []byte("bad")) // in Sync mode only a log call can send it
			}
			time.Sleep(10 * time.Second)
			mustFlush(t, e)
			got := net.received(addrs(1)[0])
			s := e.Stats()
			balanced(t, s)
			lost := 0
			for _, m := range got {
				var n int
				if _, err := fmt.Sscanf(m, "log records were lost lost=%d reasons=[", &n); err != nil {
					t.Fatalf("%q", m)
				}
				lost += n
			}
			if len(got) != 2 || lost != int(s.Dropped) || s.Own != 2 || s.Delivered != 0 || s.Endpoints[0].Delivered != 0 || s.Endpoints[0].Picked != s.Accepted-2 {
				t.Errorf("sync=%v: %q, %+v", sync, got, s)
			}
			_ = e.Close()
		})
	}
}
