package pool

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/jitter"
	"github.com/wholelog/wholelog/resolve"
)

var errDown = errors.New("the name server is down")

func TestNewLooksNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, resolve.Options{Policy: resolve.PerProcess}, addrA)
		pass(time.Hour)
		if s := r.Snapshot(); s == nil || len(s.Endpoints) != 0 || s.Gen != 0 {
			t.Errorf("snapshot before the first look-up: %+v", s)
		}
		if r.Stats() != (Stats{}) || r.script.count() != 0 {
			t.Errorf("%+v after %d calls", r.Stats(), r.script.count())
		}
		if r.Options().Policy != resolve.PerProcess || r.Options().Resolver != resolve.Resolver(r.script) {
			t.Errorf("options %+v", r.Options())
		}
	})
}

func TestOneLookupForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, resolve.Options{})
		r.script.set(func(context.Context) (resolve.Answer, error) {
			<-time.After(time.Second)
			return answer(addrA), nil
		})
		var wg sync.WaitGroup
		for range 300 {
			wg.Go(func() {
				before := time.Now()
				if next := r.Kick(); next.Before(before.Add(lookupLimit)) {
					t.Errorf("come back at %v while a look-up is under way", next.Sub(before))
				}
				if !time.Now().Equal(before) {
					t.Error("Kick waited")
				}
				if err := r.Refresh(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := r.script.count(); n != 1 {
			t.Errorf("%d look-ups", n)
		}
		r.want(t, addrA)
		if changes, troubles := r.told(); changes != 1 || troubles != nil {
			t.Errorf("told of %d changes and %q", changes, troubles)
		}
	})
}

func TestRefreshInterval(t *testing.T) {
	for _, c := range []struct {
		refresh, ttl time.Duration
		want         time.Duration
	}{
		{0, 0, 60 * time.Second},
		{0, 300 * time.Second, 60 * time.Second},
		{0, 20 * time.Second, 20 * time.Second},
		{0, time.Second, 5 * time.Second},
		{100 * time.Millisecond, time.Second, 100 * time.Millisecond},
		{time.Hour, 20 * time.Second, time.Hour},
		{3 * time.Second, 0, 3 * time.Second},
	} {
		inBubble(t, fmt.Sprintf("Refresh=%v,TTL=%v", c.refresh, c.ttl), func(t *testing.T) {
			least, most := time.Duration(1<<62), time.Duration(0)
			for range 100 {
				r := newRig(t, resolve.Options{Refresh: c.refresh})
				a := answer(addrA)
				a.TTL = c.ttl
				r.script.give(a, nil)
				next := r.kick()
				least, most = min(least, next), max(most, next)
				pass(next - 1)
				r.Kick()
				synctest.Wait()
				if n := r.script.count(); n != 1 {
					t.Fatalf("%d look-ups before %v", n, next)
				}
				pass(1)
				r.Kick()
				synctest.Wait()
				if n := r.script.count(); n != 2 {
					t.Fatalf("%d look-ups at %v", n, next)
				}
			}
			between(t, "shortest", least, c.want*8/10, c.want*95/100)
			between(t, "longest", most, c.want, c.want*12/10)
		})
	}
}

// A changed answer takes full effect, the confirming look-up included, within one interval plus its jitter, whenever it changes.
func TestR42_ChangedAnswerTakesEffectWithinOneInterval(t *testing.T) {
	for _, refresh := range []time.Duration{0, 100 * time.Millisecond, time.Second, 10 * time.Minute} {
		interval := refresh
		if refresh == 0 {
			interval = defaultRefresh
		}
		inBubble(t, interval.String(), func(t *testing.T) {
			r := newRig(t, resolve.Options{Refresh: refresh}, addrA)
			r.driven(t)
			now, next := addrA, addrB
			for range 50 {
				r.want(t, now)
				pass(rand.N(3 * interval))
				r.script.answer(next)
				pass(interval * 12 / 10)
				now, next = next, now
				r.want(t, now)
			}
		})
	}
}

func TestR43_FailureAtStartIsRetriedWithBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, resolve.Options{})
		r.script.give(resolve.Answer{}, errDown)
		r.driven(t)
		pass(10 * time.Minute)
		n := r.script.count()
		// Full jitter up to 30 s is 15 s on average, and never below the spacing.
		if n < 15 || n > 120 {
			t.Errorf("%d look-ups in 10 min of failure", n)
		}
		if s := r.Stats(); s.Lookups != uint64(n) || s.LookupErrors != uint64(n) || s.AnswerAge != 0 {
			t.Errorf("%+v after %d failures", s, n)
		}
		changes, troubles := r.told()
		if changes != n || len(troubles) != n || troubles[0] != "look-up of logs.test:514: the name server is down" {
			t.Errorf("told of %d changes and %d troubles, the first %q", changes, len(troubles), troubles[0])
		}
		r.script.answer(addrA)
		pass(31 * time.Second)
		r.want(t, addrA)
		if changes, _ := r.told(); changes <= n {
			t.Error("nobody was told that the name resolves now")
		}
	})
}

func TestBackoffIsTheOneConfigured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{}
		s.give(resolve.Answer{}, errDown)
		p := New(Config{
			Options: resolve.Options{Resolver: s, Refresh: 100 * time.Millisecond},
			Backoff: jitter.Backoff{Base: time.Second, Max: 5 * time.Second, Factor: 2, Mode: jitter.None},
		})
		defer p.Close()
		for _, want := range []time.Duration{1, 2, 4, 5, 5} {
			p.Kick()
			synctest.Wait()
			next := time.Until(p.Kick())
			if next != want*time.Second {
				t.Errorf("retry after %v, want %v", next, want*time.Second)
			}
			pass(next)
		}
		s.answer(addrA)
		p.Kick()
		synctest.Wait()
		s.give(resolve.Answer{}, errDown)
		pass(time.Until(p.Kick()))
		p.Kick()
		synctest.Wait()
		if next := time.Until(p.Kick()); next != time.Second {
			t.Errorf("after a good answer the back-off went on: %v", next)
		}
	})
}

// Whatever happens, at the default refresh a pool begins at most 1 + elapsed/4 s look-ups.
func TestLookupsAreBounded(t *testing.T) {
	for name, do := range map[string]func(int) (resolve.Answer, error){
		"all fail":          func(int) (resolve.Answer, error) { return resolve.Answer{}, errDown },
		"all empty":         func(int) (resolve.Answer, error) { return resolve.Answer{}, nil },
		"smallest TTL":      func(int) (resolve.Answer, error) { a := answer(addrA); a.TTL = time.Second; return a, nil },
		"never the same":    func(n int) (resolve.Answer, error) { return answer(addrOf(n)), nil },
		"every other fails": func(n int) (resolve.Answer, error) { return answer(addrA), []error{nil, errDown}[n%2] },
	} {
		inBubble(t, name, func(t *testing.T) {
			r := newRig(t, resolve.Options{})
			n := 0 // calls never overlap
			r.script.set(func(context.Context) (resolve.Answer, error) { n++; return do(n) })
			r.driven(t)
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			wg.Go(func() { // a readiness probe in a hurry, and a link that finds every address dead
				for ctx.Err() == nil {
					_ = r.Refresh(ctx)
					for _, e := range r.Snapshot().Endpoints {
						r.Observe(e.Addr, false, delivery.CauseRefused)
					}
					select {
					case <-time.After(200 * time.Millisecond):
					case <-ctx.Done():
					}
				}
			})
			began := time.Now()
			pass(20 * time.Minute)
			cancel()
			wg.Wait()
			if got, most := r.script.count(), 1+int(time.Since(began)/(4*time.Second)); got > most {
				t.Errorf("%d look-ups, at most %d allowed", got, most)
			}
			if r.script.overlap {
				t.Error("two look-ups at once")
			}
		})
	}
}

func TestManyHandlersSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const handlers = 300
		var rigs []*rig
		for range handlers {
			r := newRig(t, resolve.Options{}, addrA, addrB)
			r.driven(t)
			rigs = append(rigs, r)
		}
		began := time.Now()
		pass(30 * time.Minute)
		perBin := map[time.Duration]int{}
		total := 0
		for _, r := range rigs {
			for _, at := range r.script.calls {
				total++
				if since := at.Sub(began); since > 10*time.Minute {
					perBin[since/(100*time.Millisecond)]++
				}
			}
		}
		peak := 0
		for _, n := range perBin {
			peak = max(peak, n)
		}
		// 300 handlers at 60 s are 5 look-ups per second; the aligned start has dissolved after ten minutes.
		if total < handlers*25 || total > handlers*40 || peak > 20 {
			t.Errorf("%d look-ups, %d in the busiest 100 ms", total, peak)
		}
	})
}

func TestConfirmingLookup(t *testing.T) {
	for _, c := range []struct{ refresh, confirm, least, most time.Duration }{
		{0, 5 * time.Second, 48 * time.Second, 72 * time.Second},
		{8 * time.Second, time.Second, 6400 * time.Millisecond, 9600 * time.Millisecond},
	} {
		inBubble(t, fmt.Sprintf("Refresh=%v", c.refresh), func(t *testing.T) {
			r := newRig(t, resolve.Options{Refresh: c.refresh}, addrA, addrB)
			between(t, "after the first answer", r.kick(), c.least, c.most)

			pass(c.most)
			r.script.answer(addrB, addrC)
			if next := r.kick(); next != c.confirm {
				t.Errorf("confirmed after %v, want %v", next, c.confirm)
			}
			r.want(t, addrA, addrB, addrC) // the new one at once, the missing one still

			pass(c.confirm)
			between(t, "after the confirmation", r.kick(), c.least, c.most)
			r.want(t, addrB, addrC)

			// A server that always answers with a part of the set is not confirmed for ever.
			pass(c.most)
			r.script.answer(addrA, addrB)
			r.kick()
			pass(c.confirm)
			r.script.answer(addrB, addrC)
			between(t, "after a confirmation that misses another one", r.kick(), c.least, c.most)
			r.want(t, addrA, addrB, addrC)
		})
	}
}

func TestClockJumps(t *testing.T) {
	for name, jump := range map[string]time.Duration{"a day ahead": 24 * time.Hour, "a day back": -24 * time.Hour, "a little before the look-up": -time.Second} {
		inBubble(t, name, func(t *testing.T) {
			r := newRig(t, resolve.Options{}, addrA)
			var step time.Duration
			r.now = func() time.Time { return time.Now().Add(step).Round(0) }
			r.kick()
			r.Kick()
			synctest.Wait()
			if n := r.script.count(); n != 1 {
				t.Fatalf("%d look-ups before the jump", n)
			}
			step = jump
			r.Kick()
			synctest.Wait()
			if n := r.script.count(); n != 2 {
				t.Errorf("%d look-ups after the jump", n)
			}
			if age := r.Stats().AnswerAge; age != 0 {
				t.Errorf("a fresh answer is %v old", age)
			}
			r.Kick()
			synctest.Wait()
			if n := r.script.count(); n != 2 {
				t.Errorf("%d look-ups: the jump starts one only", n)
			}
		})
	}
}

func TestShortRefreshKeepsItsPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, resolve.Options{Refresh: 100 * time.Millisecond}, addrA)
		r.driven(t)
		pass(10 * time.Second)
		n := r.script.count()
		if n < 85 || n > 125 || r.script.overlap {
			t.Errorf("%d look-ups in 10 s, overlap %v", n, r.script.overlap)
		}
		if !slices.IsSortedFunc(r.script.calls, time.Time.Compare) {
			t.Error("calls out of order")
		}
	})
}
