//go:build linux

package interop

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/gelf"
	"github.com/wholelog/wholelog/resolve"
)

// Many handlers, as many processes of a fleet would have, ask no more than they must: once, while the answer is young; and when the
// name is not there, no faster than one look-up in 4 s each.
func TestNoQueryStorm(t *testing.T) {
	t.Parallel()
	const handlers, rounds = 300, 5
	nodes, port := listenTogether(t, 3)
	d := startDNSMasq(t, 0, addrsOf(nodes)...)
	target := fmt.Sprintf("%s:%d", service, port)
	fleet := func(t *testing.T) (all []*gelf.Handler) {
		for range handlers {
			all = append(all, newHandler(t, "udp://"+target, gelf.Options{
				Flows: 1, Resolve: resolve.Options{Resolver: resolve.DNS(target, d.resolver())},
				Delivery: delivery.Options{OnError: func(error) {}}, // hundreds of times the same; Stats has the number
			}))
		}
		return all
	}
	// One round at a time, so that the receive buffers hold no more than one message of each handler.
	sent := uint64(0)
	round := func(t *testing.T, all []*gelf.Handler, wait bool) {
		var wg sync.WaitGroup
		for i, h := range all {
			wg.Go(func() { slog.New(h).Info("message", "handler", i) })
		}
		wg.Wait()
		sent += handlers
		if wait {
			until(t, "a round arrives", func() bool { return sum(nodes).messages == sent })
		}
	}
	// judge compares what dnsmasq was asked with what may be asked. A query that got no answer in time is sent again, once.
	judge := func(t *testing.T, all []*gelf.Handler, begin time.Time, seen map[string]int) {
		within(t, time.Second, func() bool { return d.queries("A")+d.queries("AAAA") == int(d.asked.Load()) }) // its log lags
		a, aaaa := d.queries("A")-seen["A"], d.queries("AAAA")-seen["AAAA"]
		most := uint64(handlers * (1 + int(time.Since(begin)/(4*time.Second))))
		lookups, failed := uint64(0), uint64(0)
		for _, h := range all {
			lookups += h.Stats().Lookups
			failed += h.Stats().LookupErrors
		}
		t.Logf("%v: %d look-ups of %d handlers, %d failed; dnsmasq saw %d A and %d AAAA queries",
			time.Since(begin).Round(time.Millisecond), lookups, handlers, failed, a, aaaa)
		if lookups < handlers || lookups > most {
			t.Errorf("%d look-ups, want %d to %d", lookups, handlers, most)
		}
		if a < handlers || a > int(2*most) || math.Abs(float64(a-aaaa)) > handlers {
			t.Errorf("%d A and %d AAAA queries", a, aaaa)
		}
	}

	t.Run("young answer", func(t *testing.T) {
		begin, all := time.Now(), fleet(t)
		for range rounds {
			round(t, all, true)
		}
		judge(t, all, begin, nil)
	})
	t.Run("name not there", func(t *testing.T) {
		d.set(t)
		seen := map[string]int{"A": d.queries("A"), "AAAA": d.queries("AAAA")}
		begin, all := time.Now(), fleet(t)
		for range rounds {
			round(t, all, false)
		}
		until(t, "every look-up has failed", func() bool {
			return !slices.ContainsFunc(all, func(h *gelf.Handler) bool { return h.Stats().LookupErrors == 0 })
		})
		d.set(t, addrsOf(nodes)...)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		for _, h := range all {
			if err := h.Flush(ctx); err != nil {
				t.Fatal(err)
			}
		}
		judge(t, all, begin, seen)
		until(t, "all arrive", func() bool { return sum(nodes).messages == sent })
	})
	if text := d.out.String(); strings.Contains(text, "Maximum number of concurrent") {
		t.Error("dnsmasq was overrun")
	}
}
