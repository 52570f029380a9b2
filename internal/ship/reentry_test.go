package ship

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/pool"
	"github.com/wholelog/wholelog/resolve"
)

// calling is a resolver that calls f first.
type calling struct {
	f func()
	resolve.Resolver
}

func (c calling) Resolve(ctx context.Context) (resolve.Answer, error) {
	c.f()
	return c.Resolver.Resolve(ctx)
}

// ours names the places at which an engine calls code of the application.
var ours = []string{"OnDrop", "OnError", "Trace", "Resolver", "Own"}

// reentrant makes an engine that calls f at one of these places, whenever it comes there. One record of four is rejected.
func reentrant(place string, o delivery.Options, f func()) *Engine {
	net := newFakeNet(Limits{})
	var n atomic.Int64
	net.send = func(l *fakeLink, b *Batch) error {
		l.meter.Chose(addrPort("127.0.0.1:5000"), b.Len(), 1, "")
		l.meter.Trouble(delivery.CauseMTU, errors.New("too long"))
		for i := range b.Len() {
			if n.Add(1)%4 == 1 {
				b.Settle(i, i+1, Outcome{Do: Drop, Reason: delivery.ReasonRejected})
				continue
			}
			l.take(b, i, i+1)
			b.Settle(i, i+1, Outcome{Do: Delivered})
		}
		return nil
	}
	r := resolve.Options{Resolver: &answer{set: addrs(2)}, Refresh: 100 * time.Millisecond}
	o.OnError, o.Summary = func(error) {}, true
	own := func(dst []byte, r slog.Record) []byte { return append(dst, r.Message...) }
	switch place {
	case "OnDrop":
		o.OnDrop = func(delivery.Drop) { f() }
	case "OnError":
		o.OnError = func(error) { f() }
	case "Trace":
		r.Trace = func(resolve.Choice) { f() }
	case "Resolver":
		r.Resolver = calling{f, r.Resolver}
	case "Own":
		own = func(dst []byte, r slog.Record) []byte {
			f()
			return append(dst, r.Message...)
		}
	}
	e := New(Config{Name: "test", Main: Route{net, pool.New(pool.Config{Options: r})}, Options: o, Own: own})
	e.hooks.print = func(error) {}
	return e
}

// R58: from inside any code of the application that the engine calls, it may be called back: what would wait for itself ends with
// its own limit, and everything else goes on afterwards.
func TestR58_EveryCallFromEveryHook(t *testing.T) {
	const closeTimeout = time.Second // SyncTimeout is 2 s, and the summary at the end of a call has as much again
	for _, call := range []struct {
		name  string
		limit time.Duration
		do    func(e *Engine, ctx context.Context)
	}{
		{"Stats", 0, func(e *Engine, _ context.Context) { _ = e.Stats() }},
		{"Put", 4 * time.Second, func(e *Engine, _ context.Context) { _ = e.Put(slog.LevelInfo, []byte("from inside")) }},
		{"Refuse", 0, func(e *Engine, _ context.Context) { _ = e.Refuse(slog.LevelInfo, 1, delivery.ReasonPanicked, nil) }},
		{"Flush", time.Second, func(e *Engine, ctx context.Context) { _ = e.Flush(ctx) }},
		{"Ready", time.Second, func(e *Engine, ctx context.Context) { _ = e.Ready(ctx) }},
		{"Close", closeTimeout + 2*grace, func(e *Engine, _ context.Context) { _ = e.Close() }},
	} {
		for _, place := range ours {
			for _, sync := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s from %s/sync=%v", call.name, place, sync), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						var e *Engine
						var calls, depth atomic.Int64
						e = reentrant(place, delivery.Options{Sync: sync, CloseTimeout: closeTimeout}, func() {
							if depth.Add(1); depth.Load() > 1 || calls.Add(1) > 3 {
								depth.Add(-1)
								return // what the call led to: enough is known
							}
							defer depth.Add(-1)
							ctx, cancel := context.WithTimeout(context.Background(), time.Second)
							defer cancel()
							began := time.Now()
							call.do(e, ctx)
							if took := time.Since(began); took > call.limit {
								t.Errorf("it took %v", took)
							}
						})
						for range 8 {
							_ = e.Put(slog.LevelInfo, []byte("m"))
							time.Sleep(200 * time.Millisecond)
						}
						if call.name != "Close" {
							mustFlush(t, e)
						}
						began := time.Now()
						_ = e.Close()
						if took := time.Since(began); took > closeTimeout+2*grace {
							t.Errorf("Close took %v", took)
						}
						time.Sleep(5 * time.Second) // what was left to itself comes to its end
						s := e.Stats()
						balanced(t, s)
						if s.Pending != 0 || calls.Load() == 0 {
							t.Errorf("called %d times, %+v", calls.Load(), s)
						}
						if call.name != "Close" && s.Delivered < 4 {
							t.Errorf("%+v", s)
						}
					})
				})
			}
		}
	}
}

// The same with callers on all sides, and Close from inside and outside at once.
func TestR58_HooksCallBackUnderLoad(t *testing.T) {
	for _, place := range ours {
		for _, syncMode := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/sync=%v", place, syncMode), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var e *Engine
					var closing atomic.Bool
					var depth, calls atomic.Int64
					e = reentrant(place, delivery.Options{Sync: syncMode}, func() {
						defer depth.Add(-1)
						if depth.Add(1) > 1 {
							return
						}
						calls.Add(1)
						ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
						defer cancel()
						_ = e.Stats()
						_ = e.Put(slog.LevelInfo, []byte("from inside"))
						_ = e.Flush(ctx)
						_ = e.Ready(ctx)
						if closing.Load() {
							_ = e.Close()
						}
					})
					var wg sync.WaitGroup
					for range 4 {
						wg.Go(func() {
							for !errors.Is(e.Put(slog.LevelInfo, []byte("m")), delivery.ErrClosed) {
								balanced(t, e.Stats())
								time.Sleep(10 * time.Millisecond)
							}
						})
					}
					time.Sleep(time.Second)
					closing.Store(true)
					time.Sleep(time.Second)
					_ = e.Close()
					wg.Wait()
					time.Sleep(10 * time.Second)
					s := e.Stats()
					balanced(t, s)
					if s.Pending != 0 || calls.Load() == 0 {
						t.Errorf("called %d times, %+v", calls.Load(), s)
					}
				})
			})
		}
	}
}
