package ship

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/delivery"
)

// One address of a hundred hangs. What it holds lies among what the others deliver; nothing is lost for that, with any policy.
func TestOneHangingAddressOfAHundredCostsNothing(t *testing.T) {
	for _, policy := range []delivery.Overflow{delivery.Block, delivery.DropNewest, delivery.DropOldest} {
		t.Run(policy.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := newFakeNet(Limits{})
				a := addrs(100)
				net.send = hangAt(a[0])
				e := newTestEngine(net, delivery.Options{
					QueueBytes: 512 << 10, Overflow: policy, CloseTimeout: time.Second,
				}, resolveTo(a...))
				for range 4000 {
					_ = e.Put(slog.LevelInfo, make([]byte, 1000))
					time.Sleep(time.Millisecond)
				}
				if s := e.Stats(); s.Dropped > 0 || s.Waits > 0 {
					t.Errorf("delivered %d, pending %d, waits %d, lost %v", s.Delivered, s.Pending, s.Waits, s.Reasons)
				}
				_ = e.Close()
			})
		})
	}
}

// Warnings that come one by one among a flood are kept, and do not keep the memory of the flood.
func TestSparedWarningsLieTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newFakeNet(Limits{})
		net.setRefuse(addrs(1)[0], errors.New("refused"))
		e := newTestEngine(net, delivery.Options{
			QueueBytes: 512 << 10, Overflow: delivery.DropOldest, CloseTimeout: time.Second,
		}, resolveTo(addrs(1)...))
		var want [][]byte
		for i := range 10_000 {
			rec := bytes.Repeat([]byte{byte(i), byte(i >> 8)}, 250)
			level := slog.LevelDebug
			if i%100 == 99 {
				level = slog.LevelWarn
				want = append(want, rec)
			}
			if err := e.Put(level, rec); err != nil {
				t.Fatalf("record %d: %v", i, err)
			}
			if i%10 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
		net.setRefuse(addrs(1)[0], nil)
		mustFlush(t, e)
		var got [][]byte
		for _, s := range net.received(addrs(1)[0]) {
			if i := int(s[0]) | int(s[1])<<8; i%100 == 99 {
				got = append(got, []byte(s))
			}
		}
		if !bytes.Equal(bytes.Join(got, nil), bytes.Join(want, nil)) {
			t.Errorf("%d of %d warnings arrived whole and in order", len(got), len(want))
		}
		_ = e.Close()
		balanced(t, e.Stats())
	})
}
