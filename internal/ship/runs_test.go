package ship

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/jitter"
)

// R48, R49: a million records of 1 KB at a destination that never reads, and at one that refuses, cost a budget of 16 MiB and no more:
// the heap grows by half as much again at most, no goroutine is added by them, Waits are what the policy says, and every record is
// counted. In the bubble time stands while records are logged, so that only MaxBlock and the clock of the test move it.
func TestR49_AMillionRecords(t *testing.T) {
	const budget, maxBlock = 16 << 20, time.Millisecond
	rec := bytes.Repeat([]byte("x"), 1000)
	for _, dead := range []string{"never reads", "refuses"} {
		for policy, n := range map[delivery.Overflow]int{
			delivery.Block: 1_000_000, delivery.DropNewest: 1_000_000,
			delivery.DropOldest: 150_000, // nine times the budget: here each call evicts, and that takes longer
		} {
			if testing.Short() || raceEnabled {
				n = 100_000 // six times the budget: the race detector makes each call some ten times as long
			}
			t.Run(fmt.Sprintf("%s/%v", dead, policy), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					net := stalled(Limits{})
					if dead == "refuses" {
						for _, a := range addrs(3) {
							net.setRefuse(a, errors.New("connection refused"))
						}
					}
					before := heap()
					e := newTestEngine(net, delivery.Options{
						QueueBytes: budget, Overflow: policy, MaxBlock: maxBlock, CloseTimeout: time.Second, SendTimeout: time.Hour,
						OnDrop: func(delivery.Drop) {},
					}, resolveTo(addrs(3)...))
					defer e.Close()
					_ = e.Put(slog.LevelInfo, rec)
					time.Sleep(time.Second)
					synctest.Wait()
					goroutines := inBubble()
					refused := uint64(0)
					for i := range n - 1 {
						if e.Put(slog.LevelInfo, rec) != nil {
							refused++
						}
						if i%(n/10) == 0 {
							time.Sleep(time.Second) // dials, rests and give-ups go on
						}
					}
					synctest.Wait()
					if grown := heap() - before; grown > budget*3/2 {
						t.Errorf("the heap grew by %d, the budget is %d", grown, budget)
					}
					if more := inBubble() - goroutines; more > 3 { // the goroutine of a hook, and a link of each address not dealt to before
						t.Errorf("%d goroutines more", more)
					}
					s := e.Stats()
					balanced(t, s)
					lost := map[delivery.Overflow]delivery.Reason{delivery.DropOldest: delivery.ReasonEvicted}[policy]
					if lost == "" {
						lost = delivery.ReasonQueueFull
					}
					if s.Accepted != uint64(n) || s.Delivered != 0 || s.Reasons[lost] != s.Dropped || s.Dropped == 0 {
						t.Errorf("%d of %d accepted; %+v", s.Accepted, n, s)
					}
					if policy == delivery.DropOldest && refused > 0 || policy != delivery.DropOldest && refused != s.Dropped {
						t.Errorf("%d calls failed, %+v", refused, s)
					}
					if wait := policy == delivery.Block; wait && (s.Waits != 1 || s.WaitTime != maxBlock) || !wait && s.Waits != 0 {
						t.Errorf("%d waits, %v in all", s.Waits, s.WaitTime)
					}
					if most := uint64(budget) / 1000; s.Pending > most || s.Pending < most/2 {
						t.Errorf("%d records are kept of %d that fit", s.Pending, most)
					}
					if err := e.Close(); !errors.Is(err, delivery.ErrClosed) {
						t.Error(err)
					}
					after := e.Stats()
					if balanced(t, after); after.Pending != 0 || after.Reasons[delivery.ReasonClosed] != s.Pending {
						t.Errorf("%+v, pending were %d", after, s.Pending)
					}
				})
			})
		}
	}
}

// receiver is a process behind a stream: its kernel acknowledges what finds room in the buffer of a connection, and the process reads
// that a little later. Killed, it has lost what it had not read.
type receiver struct {
	*fakeNet
	mu     sync.Mutex
	unread []string
	died   map[string]bool // what it had not read when it was killed
	links  []*fakeLink
}

func newReceiver() *receiver {
	r := &receiver{died: make(map[string]bool)}
	r.fakeNet = newFakeNet(Limits{BatchRecords: 50, Faint: true})
	r.send = func(l *fakeLink, b *Batch) error {
		r.mu.Lock()
		r.links = append(r.links[:0], l)
		for i := range b.Len() {
			r.unread = append(r.unread, string(b.At(i).Bytes()))
		}
		r.mu.Unlock()
		select { // the time of the network
		case <-time.After(time.Millisecond):
		case <-l.gone: // a reset: what was acknowledged is known all the same, and the rest went nowhere
			return errors.New("connection reset by peer")
		}
		l.confirm(b, 0, b.Len())
		return nil
	}
	return r
}

// read has the process read all but the newest few records.
func (r *receiver) read(leave int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := max(len(r.unread)-leave, 0)
	r.fakeNet.mu.Lock()
	defer r.fakeNet.mu.Unlock()
	a := addrs(1)[0]
	r.got[a] = append(r.got[a], r.unread[:n]...)
	r.unread = append(r.unread[:0], r.unread[n:]...)
}

// kill ends the process; nobody listens from now on.
func (r *receiver) kill() {
	r.setRefuse(addrs(1)[0], errors.New("connection refused"))
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.unread {
		r.died[m] = true
	}
	r.unread = nil
	for _, l := range r.links {
		l.leave()
	}
}

// R37, R39, R50: a receiver is killed and started again ten times during 100 000 records on a stream. The counters add up, what is
// missing in its own count is no more than what its dead had not read, what came twice was sent again, and the order holds.
func TestR50_AReceiverThatIsKilledTenTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, kills = 100_000, 10
		r := newReceiver()
		e := newTestEngine(r, delivery.Options{
			Backoff: jitter.Backoff{Base: 10 * time.Millisecond, Max: time.Second}, MaxBlock: time.Minute, Tries: kills + 1,
		}, resolveTo(addrs(1)...))
		defer e.Close()
		for i := range n {
			if err := e.Put(slog.LevelInfo, fmt.Appendf(nil, "%06d", i)); err != nil {
				t.Fatal(err)
			}
			if i%50 == 0 {
				time.Sleep(10 * time.Millisecond) // a kill every two seconds: each link proves itself
				r.read(i % 90)
			}
			switch i % (n / kills) {
			case 5000:
				r.kill()
				balanced(t, e.Stats())
			case 6000:
				r.setRefuse(addrs(1)[0], nil)
			}
		}
		mustFlush(t, e)
		r.read(0)
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		s := e.Stats()
		balanced(t, s)
		got := r.received(addrs(1)[0])
		here := make(map[string]bool)
		for _, m := range got {
			here[m] = true
		}
		missing := 0
		for i := range n {
			if m := fmt.Sprintf("%06d", i); !here[m] {
				if missing++; !r.died[m] {
					t.Errorf("%s is missing, and nobody died with it", m)
				}
			}
		}
		dups := len(got) - len(here)
		if s.Delivered != n || s.Dropped != 0 || s.Reconnects != kills || missing > len(r.died) || uint64(dups) > s.Resent {
			t.Errorf("%d missing, %d unread at the kills, %d came twice; %+v", missing, len(r.died), dups, s)
		}
		if len(r.died) == 0 || missing == 0 || !inOrder(got) {
			t.Errorf("%d unread at the kills, %d missing, in order: %v", len(r.died), missing, inOrder(got))
		}
	})
}
