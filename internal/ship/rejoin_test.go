package ship

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/resolve"
)

// R59: an address that leaves and comes back while its link is still busy gets no second link beside it: what comes later does not
// overtake.
func TestR59_OneLinkToAnAddressThatComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newFakeNet(Limits{})
		a := addrs(2)
		gate := make(chan struct{})
		first := true
		net.send = func(l *fakeLink, b *Batch) error {
			if first {
				first = false
				<-gate
			}
			l.deliver(b)
			return nil
		}
		name := &answer{set: a[:1]}
		e := newTestEngine(net, delivery.Options{SendTimeout: time.Hour}, resolve.Options{Resolver: name, Refresh: time.Second})
		_ = e.Put(slog.LevelInfo, []byte("1"))
		time.Sleep(100 * time.Millisecond)
		name.change(nil, a[1])
		time.Sleep(3 * time.Second)
		name.change(nil, a[0])
		time.Sleep(3 * time.Second)
		_ = e.Put(slog.LevelInfo, []byte("2"))
		time.Sleep(100 * time.Millisecond)
		if open, dials := net.counts(a[0]); open != 1 || dials != 1 {
			t.Errorf("%d links open, dialled %d times", open, dials)
		}
		close(gate)
		mustFlush(t, e)
		if got := net.received(a[0]); !slices.Equal(got, []string{"1", "2"}) {
			t.Errorf("arrived %q", got)
		}
		if open, dials := net.counts(a[0]); open != 1 || dials != 2 || net.drains != 1 {
			t.Errorf("%d links open, dialled %d times, drained %d", open, dials, net.drains)
		}
		_ = e.Close()
	})
}

// R50: the rows of Stats.Endpoints add up to the whole, however many addresses came and went, and whatever they still deliver after
// they left. The 16 most recently gone have rows of their own, older ones one together.
func TestR50_AddressesThatLeftStillCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newFakeNet(Limits{})
		gate := make(chan struct{})
		net.send = func(l *fakeLink, b *Batch) error {
			if l.addr == "198.51.100.1:1" {
				<-gate // the first one, which goes on after it has left
			}
			l.deliver(b)
			return nil
		}
		name := &answer{set: []string{"198.51.100.1:1"}}
		e := newTestEngine(net, delivery.Options{SendTimeout: time.Hour}, resolve.Options{Resolver: name, Refresh: time.Second})
		_ = e.Put(slog.LevelInfo, []byte("m"))
		time.Sleep(100 * time.Millisecond)
		for _, a := range addrs(25) {
			name.change(nil, a)
			time.Sleep(3 * time.Second)
			_ = e.Put(slog.LevelInfo, []byte("m"))
			time.Sleep(100 * time.Millisecond)
			net.mu.Lock()
			meter := net.meters[a]
			net.mu.Unlock()
			meter.Trouble(delivery.CauseMTU, errors.New("too long"))
		}
		check := func(delivered, rows int) {
			t.Helper()
			s := e.Stats()
			balanced(t, s)
			var sum delivery.EndpointStats
			var mtu uint64
			zero, gone := 0, 0
			for _, ep := range s.Endpoints {
				sum.Picked += ep.Picked
				sum.Delivered += ep.Delivered
				sum.Bytes += ep.Bytes
				mtu += ep.Errors[delivery.CauseMTU]
				if ep.State == "gone" {
					gone++
				}
				if !ep.Addr.IsValid() {
					zero++
				}
			}
			if s.Delivered != uint64(delivered) || sum.Delivered != s.Delivered || sum.Picked != s.Accepted || sum.Bytes != s.Bytes || mtu != 25 {
				t.Errorf("in all %+v, by address %+v, %d troubles", s, sum, mtu)
			}
			if len(s.Endpoints) != rows || gone != rows-1 || zero != 1 {
				t.Errorf("%d rows, %d gone, %d for older ones", len(s.Endpoints), gone, zero)
			}
		}
		check(25, 1+keptGone+1)
		close(gate)
		mustFlush(t, e)
		check(26, 1+keptGone+1)
		_ = e.Close()
		check(26, 1+keptGone+1)
	})
}

// What an address was known for comes back with it.
func TestCountersComeBackWithTheAddress(t *testing.T) {
	for _, sync := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			net := newFakeNet(Limits{})
			a := addrs(2)
			name := &answer{set: a[:1]}
			e := newTestEngine(net, delivery.Options{Sync: sync}, resolve.Options{Resolver: name, Refresh: time.Second})
			for i := range 4 {
				name.change(nil, a[i%2])
				for range 3 {
					time.Sleep(time.Second)
					_ = e.Put(slog.LevelInfo, fmt.Appendf(nil, "%d", i))
				}
			}
			mustFlush(t, e)
			rows := e.Stats().Endpoints
			if len(rows) != 2 || rows[0].Delivered+rows[1].Delivered != 12 || rows[0].State == "gone" || rows[1].State != "gone" {
				t.Errorf("sync=%v: %+v", sync, rows)
			}
			for _, ep := range rows {
				if int(ep.Delivered) != len(net.received(ep.Addr.String())) {
					t.Errorf("sync=%v: %s has %d, received %d", sync, ep.Addr, ep.Delivered, len(net.received(ep.Addr.String())))
				}
			}
			_ = e.Close()
		})
	}
}
