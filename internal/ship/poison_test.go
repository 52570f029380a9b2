package ship

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/jitter"
)

// A record that breaks every connection is lost after Tries, and only then; what comes after it arrives.
func TestAPoisonedRecordIsLostAfterItsTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newFakeNet(Limits{})
		sent := 0
		net.send = func(l *fakeLink, b *Batch) error {
			for i := range b.Len() {
				if string(b.At(i).Bytes()) == "poison" {
					sent++
					return errors.New("connection reset by peer")
				}
				l.take(b, i, i+1)
				l.confirm(b, i, i+1)
			}
			return nil
		}
		e := newTestEngine(net, delivery.Options{Tries: 4, Backoff: jitter.Backoff{Max: time.Second}}, resolveTo(addrs(2)...))
		defer e.Close()
		_ = e.Put(slog.LevelInfo, []byte("poison"))
		synctest.Wait()
		time.Sleep(time.Minute)
		_ = e.Put(slog.LevelInfo, []byte("later"))
		mustFlush(t, e)
		s := e.Stats()
		if balanced(t, s); sent != 4 || s.Reasons[delivery.ReasonTriesExhausted] != 1 || s.Delivered != 1 {
			t.Errorf("sent %d times, %+v", sent, s)
		}
	})
}

// poisoned are links with a window, whose peer acknowledges each batch 10 ms after it came and dies of a poisonous record before: what it
// had not acknowledged then, in front of that record and behind it, comes back from the engine's point of view.
func poisoned(dies func(l *fakeLink, b *Batch)) *fakeNet {
	net := newFakeNet(Limits{Window: 128 << 10, BatchRecords: 40})
	net.send = func(l *fakeLink, b *Batch) error {
		ill := false
		for i := range b.Len() {
			ill = ill || strings.HasPrefix(string(b.At(i).Bytes()), "poison")
		}
		l.acks.Go(func() {
			select {
			case <-l.closed:
				return
			case <-l.gone:
				return
			case <-time.After(10 * time.Millisecond):
			}
			if ill {
				dies(l, b)
			} else {
				l.deliver(b)
			}
		})
		return nil
	}
	return net
}

// Records that bring down every link they are sent by take no other along, wherever they stand in the window, how many they are, by
// what the link's end is known, and however few tries there are: the last one of each record is made alone.
func TestPoisonedRecordsAreLostAlone(t *testing.T) {
	const n = 400
	for _, tries := range []int{2, 3, 5, 10} {
		for _, poison := range [][]int{{0}, {n / 2}, {n - 1}, {3, 4, 200, 390}} {
			for _, addresses := range []int{1, 3} {
				for _, settled := range []bool{false, true} { // by the link, or by its end
					t.Run(fmt.Sprintf("%d tries/%v/%d addresses/settled=%v", tries, poison, addresses, settled), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							var mu sync.Mutex
							together := 0 // most records that were sent along with a poisonous one
							net := poisoned(func(l *fakeLink, b *Batch) {
								mu.Lock()
								together = max(together, b.Len()-1)
								mu.Unlock()
								if settled {
									b.Settle(0, b.Len(), Outcome{Do: Resend, Cause: delivery.CauseTimeout, Err: errors.New("no answer")})
									return
								}
								l.leave()
							})
							refuse := func(err error) {
								for _, a := range addrs(addresses) {
									net.setRefuse(a, err)
								}
							}
							refuse(errors.New("connection refused")) // until all are in the queue
							e := newTestEngine(net, delivery.Options{Tries: tries, Backoff: jitter.Backoff{Max: time.Second}}, resolveTo(addrs(addresses)...))
							defer e.Close()
							for i := range n {
								name := "m"
								for _, p := range poison {
									if i == p {
										name = "poison"
									}
								}
								_ = e.Put(slog.LevelInfo, fmt.Appendf(nil, "%s%0800d", name, i)) // so that a window does not hold all
							}
							time.Sleep(time.Second)
							refuse(nil)
							time.Sleep(5 * time.Minute)
							s := e.Stats()
							balanced(t, s)
							if together == 0 || s.Pending != 0 || s.Reasons[delivery.ReasonTriesExhausted] != uint64(len(poison)) ||
								s.Delivered != uint64(n-len(poison)) {
								t.Errorf("%d records were sent along with a poisonous one, %+v", together, s)
							}
							if most := uint64(130 * len(poison)); settled && s.Resent > most { // a batch has 40, and ever fewer of them are sent again
								t.Errorf("sent again %d times", s.Resent)
							}
						})
					})
				}
			}
		}
	}
}

// With a single try nothing is ever sent twice, so whoever was sent along with a poisonous record may be lost with it.
func TestASingleTryIsNeverRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := poisoned(func(l *fakeLink, _ *Batch) { l.leave() })
		e := newTestEngine(net, delivery.Options{Tries: 1}, resolveTo(addrs(1)...))
		defer e.Close()
		for i := range 100 {
			_ = e.Put(slog.LevelInfo, fmt.Appendf(nil, "%s%d", map[bool]string{true: "poison", false: "m"}[i == 50], i))
			time.Sleep(2 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		s := e.Stats()
		balanced(t, s)
		if lost := s.Reasons[delivery.ReasonTriesExhausted]; s.Resent != 0 || s.Pending != 0 || lost == 0 || lost > 20 || s.Delivered != uint64(net.total()) {
			t.Errorf("%+v", s)
		}
	})
}
