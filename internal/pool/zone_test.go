package pool

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/fake/dnsd"
	"github.com/wholelog/wholelog/resolve"
)

// zonalPool is a driven pool that prefers the zone eu-1a of logs.test.
func zonalPool(t *testing.T, s *dnsd.Server) *rig {
	r := &rig{wake: make(chan struct{}, 1)}
	r.Pool = New(Config{Options: resolve.Options{
		Resolver: resolve.DNS("logs.test.:514", s.Resolver()), Zone: "eu-1a", Refresh: 100 * time.Millisecond,
	}})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { r.drive(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait(); r.Close() })
	return r
}

// uses waits until the addresses that may be given records are those of 127.0.0.0/8 with these last bytes.
func (r *rig) uses(t *testing.T, want string) {
	t.Helper()
	got := ""
	for deadline := time.Now().Add(3 * patience); time.Now().Before(deadline); <-time.After(5 * time.Millisecond) {
		var used []string
		for _, e := range r.Snapshot().Endpoints {
			if e.Usable {
				used = append(used, strings.TrimPrefix(e.Addr.Addr().String(), "127.0.0."))
			}
		}
		if got = strings.Join(used, " "); got == want {
			return
		}
	}
	t.Fatalf("used are %q, want %q", got, want)
}

// A zone is preferred while it has an address that is fit for use, and is no reason to stand still when it has none.
func TestZoneIsAPreference(t *testing.T) {
	dnsd.Bubble(t, func(t *testing.T, s *dnsd.Server) {
		zone := dnsd.Answer{Addrs: loopback(1, 2)}
		s.Set("logs.test", dnsd.Answer{Addrs: loopback(1, 2, 3, 4)})
		s.Set("eu-1a.logs.test", zone)
		r := zonalPool(t, s)
		r.uses(t, "1 2")
		for _, nothing := range []dnsd.Answer{{RCode: dnsd.NXDomain}, {}} {
			s.Set("eu-1a.logs.test", nothing)
			r.uses(t, "1 2 3 4")
			s.Set("eu-1a.logs.test", zone)
			r.uses(t, "1 2")
		}
		// What the zone had serves while its name cannot be looked up, and changes of the host are followed meanwhile.
		s.Set("eu-1a.logs.test", dnsd.Answer{RCode: dnsd.ServFail})
		s.Set("logs.test", dnsd.Answer{Addrs: loopback(1, 2, 3, 5)})
		for deadline := time.Now().Add(3 * patience); !strings.Contains(r.list(), "127.0.0.5"); <-time.After(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("the host's new address is not there: %s", r.list())
			}
		}
		r.uses(t, "1 2")
		// Both of the zone die: half of all may be taken out.
		for range fall {
			for _, e := range r.Snapshot().Endpoints[:2] {
				r.Observe(e.Addr, false, delivery.CauseRefused)
			}
		}
		for _, e := range r.Snapshot().Endpoints {
			if last := e.Addr.Addr().As4()[3]; e.Usable != (last > 2) {
				t.Errorf("%s is used: %v", e.Addr, e.Usable)
			}
		}
	})
}
