package pool

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/resolve"
)

func TestRefreshIsContentForAWhile(t *testing.T) {
	for _, c := range []struct{ refresh, spacing time.Duration }{{0, 4 * time.Second}, {time.Second, time.Second}, {time.Hour, 4 * time.Second}} {
		inBubble(t, fmt.Sprintf("Refresh=%v", c.refresh), func(t *testing.T) {
			r := newRig(t, resolve.Options{Refresh: c.refresh}, addrA)
			mustNil(t, r.Refresh(t.Context()))
			pass(c.spacing - 1)
			mustNil(t, r.Refresh(t.Context()))
			if n := r.script.count(); n != 1 {
				t.Errorf("%d look-ups within %v", n, c.spacing)
			}
			pass(1)
			r.script.give(resolve.Answer{}, errDown)
			mustNil(t, r.Refresh(t.Context())) // an older answer is enough
			if n := r.script.count(); n != 2 {
				t.Errorf("%d look-ups after %v", n, c.spacing)
			}
		})
	}
}

func TestRefreshWithNothingUsable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, resolve.Options{})
		r.script.give(resolve.Answer{}, errDown)
		began := time.Now()
		if err := r.Refresh(t.Context()); !errors.Is(err, errDown) || time.Since(began) != 0 {
			t.Errorf("the first: %v after %v", err, time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := r.Refresh(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errDown) || time.Since(began) != time.Second {
			t.Errorf("with a short ctx: %v after %v", err, time.Since(began))
		}
		r.script.answer(addrA)
		mustNil(t, r.Refresh(t.Context()))
		if time.Since(began) != spacing {
			t.Errorf("looked up again after %v", time.Since(began))
		}
	})
}

func TestRefreshReturnsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, resolve.Options{})
		r.script.set(func(ctx context.Context) (resolve.Answer, error) {
			<-ctx.Done()
			return resolve.Answer{}, ctx.Err()
		})
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		began := time.Now()
		err := r.Refresh(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "logs.test:514") {
			t.Errorf("%v", err)
		}
		between(t, "Refresh", time.Since(began), 100*time.Millisecond, 100*time.Millisecond)
		// The look-up went on, for 2 s.
		if err := r.Refresh(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		between(t, "the look-up", time.Since(began), lookupLimit, lookupLimit)
	})
}

func TestBadResolvers(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(context.Context) (resolve.Answer, error)
		want string
	}{
		"panics":    {func(context.Context) (resolve.Answer, error) { panic("oh no") }, "look-up of logs.test:514: the resolver panicked: oh no"},
		"exits":     {func(context.Context) (resolve.Answer, error) { runtime.Goexit(); return answer(addrA), nil }, "look-up of logs.test:514: the answer holds no address"},
		"bad error": {func(context.Context) (resolve.Answer, error) { return resolve.Answer{}, (*badError)(nil) }, "look-up of logs.test:514: <nil>"},
	} {
		inBubble(t, name, func(t *testing.T) {
			r := newRig(t, resolve.Options{})
			r.script.set(c.do)
			if err := r.Refresh(t.Context()); err == nil {
				t.Error("no error")
			}
			if _, troubles := r.told(); len(troubles) != 1 || troubles[0] != c.want {
				t.Errorf("%q, want %q", troubles, c.want)
			}
		})
	}
}

// badError panics when it is asked for its text.
type badError struct{ text string }

func (e *badError) Error() string { return e.text }

func TestResolverThatIgnoresItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, resolve.Options{})
		release := make(chan struct{})
		r.script.set(func(context.Context) (resolve.Answer, error) {
			<-release
			return answer(addrA), nil
		})
		began := time.Now()
		err := r.Refresh(t.Context())
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		between(t, "given up", time.Since(began), lookupLimit+grace, lookupLimit+grace)
		r.driven(t)
		pass(5 * time.Minute)
		if n := r.script.count(); n != 1 {
			t.Errorf("called %d times while the first call has not returned", n)
		}
		_, troubles := r.told()
		if len(troubles) < 2 || troubles[1] != "look-up of logs.test:514: "+errStray.Error() {
			t.Errorf("troubles %q", troubles)
		}
		close(release)
		synctest.Wait()
		r.want(t) // the late answer is ignored
		r.script.answer(addrB)
		pass(31 * time.Second)
		r.want(t, addrB)
	})
}

func TestAnswerAtTheLastMomentCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, resolve.Options{})
		r.script.set(func(context.Context) (resolve.Answer, error) {
			<-time.After(lookupLimit + grace/2)
			return answer(addrA), nil
		})
		mustNil(t, r.Refresh(t.Context()))
		r.want(t, addrA)
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, resolve.Options{}, addrA)
		mustNil(t, r.Refresh(t.Context()))
		ended := false
		r.script.set(func(ctx context.Context) (resolve.Answer, error) {
			<-ctx.Done()
			ended = true
			return answer(addrB), nil
		})
		pass(2 * time.Minute)
		r.Kick()
		waiting := make(chan error, 1)
		go func() { waiting <- r.Refresh(context.Background()) }()
		synctest.Wait()
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(r.Close)
		}
		wg.Wait()
		if !ended {
			t.Error("Close did not wait for the look-up")
		}
		if err := <-waiting; err != nil { // the old answer still stands
			t.Error(err)
		}
		r.want(t, addrA)
		if _, troubles := r.told(); troubles != nil {
			t.Errorf("the end of the pool is no trouble: %q", troubles)
		}

		calls := r.script.count()
		if next := r.Kick(); !next.IsZero() {
			t.Errorf("Kick after Close: %v", next)
		}
		if err := r.Refresh(t.Context()); !errors.Is(err, delivery.ErrClosed) {
			t.Errorf("Refresh after Close: %v", err)
		}
		before := r.Snapshot()
		r.Observe(before.Endpoints[0].Addr, true, "")
		if r.Snapshot() != before || r.script.count() != calls {
			t.Error("something happened after Close")
		}
	})
}

func TestCloseEndsARefreshThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, resolve.Options{})
		r.script.give(resolve.Answer{}, errDown)
		_ = r.Refresh(t.Context())
		waiting := make(chan error, 1)
		go func() { waiting <- r.Refresh(context.Background()) }()
		synctest.Wait()
		began := time.Now()
		r.Close()
		if err := <-waiting; !errors.Is(err, delivery.ErrClosed) || time.Since(began) != 0 {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

func TestCloseDoesNotWaitForAnUnrulyResolver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, resolve.Options{})
		release := make(chan struct{})
		defer close(release)
		r.script.set(func(context.Context) (resolve.Answer, error) { <-release; return answer(addrA), nil })
		r.Kick()
		synctest.Wait()
		began := time.Now()
		r.Close()
		between(t, "Close", time.Since(began), grace, grace)
	})
}

func TestHooksMayBeNil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, bind := range []bool{false, true} {
			s := &script{}
			p := New(Config{Options: resolve.Options{Resolver: s}})
			if bind {
				p.Bind(Hooks{})
			}
			s.give(resolve.Answer{}, errDown)
			if err := p.Refresh(t.Context()); !errors.Is(err, errDown) {
				t.Error(err)
			}
			p.Close()
		}
	})
}

// plain has no String method: its type names it in errors.
type plain struct{}

func (plain) Resolve(context.Context) (resolve.Answer, error) { return resolve.Answer{}, errDown }

func TestErrorNamesTheResolver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for want, resolver := range map[string]resolve.Resolver{
			"look-up of pool.plain: the name server is down":                                 plain{},
			"look-up of nowhere: resolve: \"nowhere\": the port is missing: write host:port": resolve.DNS("nowhere", nil),
		} {
			p := New(Config{Options: resolve.Options{Resolver: resolver}})
			if err := p.Refresh(t.Context()); err == nil || err.Error() != want {
				t.Errorf("%v, want %s", err, want)
			}
			p.Close()
		}
	})
}
