package pool

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/wholelog/wholelog/internal/fake/dnsd"
	"github.com/wholelog/wholelog/resolve"
)

// Those of these tests that are not in a bubble ask a real server over real sockets, with a short Refresh and against deadlines that a
// loaded machine keeps.

const patience = 30 * time.Second

func serve(t *testing.T) *dnsd.Server {
	t.Helper()
	s, err := dnsd.Start()
	mustNil(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func loopback(last ...byte) []netip.Addr {
	var out []netip.Addr
	for _, b := range last {
		out = append(out, netip.AddrFrom4([4]byte{127, 0, 0, b}))
	}
	return out
}

// live is a pool of a name on s, driven until the test ends.
func live(t *testing.T, s *dnsd.Server, refresh time.Duration) *rig {
	t.Helper()
	r := &rig{wake: make(chan struct{}, 1)}
	r.Pool = New(Config{Options: resolve.Options{Resolver: resolve.DNS("logs.test.:514", s.Resolver()), Refresh: refresh}})
	r.Bind(Hooks{Changed: func() {
		select {
		case r.wake <- struct{}{}:
		default:
		}
	}})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { r.drive(ctx) })
	t.Cleanup(func() {
		cancel()
		wg.Wait()
		r.Close()
	})
	return r
}

// becomes waits until the usable addresses are want.
func (r *rig) becomes(t *testing.T, want ...netip.Addr) {
	t.Helper()
	var got []netip.Addr
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-time.After(5 * time.Millisecond) {
		got = got[:0]
		for _, e := range r.Snapshot().Endpoints {
			got = append(got, e.Addr.Addr())
		}
		if slices.Equal(got, want) {
			return
		}
	}
	t.Fatalf("the snapshot holds %v, want %v", got, want)
}

func TestR42_FollowsDNS(t *testing.T) {
	s := serve(t)
	s.Set("logs.test", dnsd.Answer{Addrs: loopback(1, 2, 3), TTL: time.Minute})
	r := live(t, s, 200*time.Millisecond)
	r.becomes(t, loopback(1, 2, 3)...)
	for _, set := range [][]netip.Addr{loopback(9), loopback(2, 9), loopback(1, 2, 3, 4)} {
		s.Set("logs.test", dnsd.Answer{Addrs: set, TTL: time.Minute})
		r.becomes(t, set...)
	}
	if stats := r.Stats(); stats.LookupErrors != 0 || stats.Lookups == 0 {
		t.Errorf("%+v", stats)
	}
}

func TestR43_ResolvesOnceTheServerDoes(t *testing.T) {
	for name, broken := range map[string]dnsd.Answer{
		"SERVFAIL": {RCode: dnsd.ServFail},
		"REFUSED":  {RCode: dnsd.Refused},
		"NXDOMAIN": {RCode: dnsd.NXDomain},
		"empty":    {},
	} {
		t.Run(name, func(t *testing.T) {
			dnsd.Bubble(t, func(t *testing.T, s *dnsd.Server) {
				s.Set("logs.test", broken)
				r := live(t, s, 100*time.Millisecond)
				for deadline := time.Now().Add(patience); r.Stats().LookupErrors < 2; <-time.After(5 * time.Millisecond) {
					if time.Now().After(deadline) {
						t.Fatalf("%+v", r.Stats())
					}
				}
				s.Set("logs.test", dnsd.Answer{Addrs: loopback(1, 2)})
				r.becomes(t, loopback(1, 2)...)
				// From here on trouble changes nothing.
				errs := r.Stats().LookupErrors
				s.Set("logs.test", broken)
				for deadline := time.Now().Add(patience); r.Stats().LookupErrors < errs+2; <-time.After(5 * time.Millisecond) {
					if time.Now().After(deadline) {
						t.Fatalf("%+v", r.Stats())
					}
				}
				r.becomes(t, loopback(1, 2)...)
			})
		})
	}
}

func TestCloseEndsALookupThatNobodyAnswers(t *testing.T) {
	dnsd.Bubble(t, func(t *testing.T, s *dnsd.Server) {
		s.Set("logs.test", dnsd.Answer{Silent: true})
		r := live(t, s, 0)
		pass(100 * time.Millisecond)
		if s.Queries("logs.test", dnsd.TypeA) != 1 {
			t.Fatal("no question came")
		}
		began := time.Now()
		r.Close()
		if took := time.Since(began); took != 0 {
			t.Errorf("Close took %v", took)
		}
	})
}

// Readers never wait, never see half a set, and cost nothing, while the set changes under them.
func TestSnapshotWhileTheSetChanges(t *testing.T) {
	s := serve(t)
	small, large := loopback(1, 2), loopback(1, 2, 3, 4, 5)
	s.Set("logs.test", dnsd.Answer{Addrs: small})
	r := live(t, s, 100*time.Millisecond)
	r.becomes(t, small...)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			last := uint64(0)
			for {
				select {
				case <-stop:
					return
				default:
				}
				snap := r.Snapshot()
				if snap.Gen < last || len(snap.Endpoints) != len(small) && len(snap.Endpoints) != len(large) {
					t.Errorf("generation %d after %d, %d endpoints", snap.Gen, last, len(snap.Endpoints))
					return
				}
				last = snap.Gen
				r.Observe(snap.Endpoints[0].Addr, last%2 == 0, "")
			}
		})
	}
	for range 3 {
		s.Set("logs.test", dnsd.Answer{Addrs: large})
		r.becomes(t, large...)
		s.Set("logs.test", dnsd.Answer{Addrs: small})
		r.becomes(t, small...)
	}
	close(stop)
	wg.Wait()
}

func TestReadingAllocatesNothing(t *testing.T) {
	s := &script{}
	s.answer(addrA, addrB, addrC)
	p := New(Config{Options: resolve.Options{Resolver: s}})
	defer p.Close()
	mustNil(t, p.Refresh(t.Context()))
	b := netip.MustParseAddrPort(addrB)
	p.Observe(b, true, "")
	n := 0
	for name, f := range map[string]func(){
		"Snapshot": func() { n += len(p.Snapshot().Endpoints) },
		"Observe":  func() { p.Observe(b, true, "") },
		"Kick":     func() { p.Kick() },
	} {
		if allocs := testing.AllocsPerRun(1000, f); allocs != 0 {
			t.Errorf("%s: %v allocations", name, allocs)
		}
	}
	if n == 0 {
		t.Error("nothing was read")
	}
}

// A host with hundreds of handlers asks its name server no more than each of them alone would.
func TestManyHandlersAskOnceEach(t *testing.T) {
	const handlers = 300
	s := serve(t)
	s.Set("logs.test", dnsd.Answer{Addrs: loopback(1, 2, 3)})
	var pools []*Pool
	for range handlers {
		p := New(Config{Options: resolve.Options{Resolver: resolve.DNS("logs.test.:514", s.Resolver())}})
		defer p.Close()
		pools = append(pools, p)
	}
	// Three callers at once for each, and a few handlers at a time: all 300 would ask so much in their 2 s that a loaded machine
	// answers too late.
	for few := range slices.Chunk(pools, 8) {
		var wg sync.WaitGroup
		for _, p := range few {
			for range 3 {
				wg.Go(func() {
					p.Kick()
					if err := p.Refresh(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
		}
		wg.Wait()
	}
	for _, typ := range []dnsd.Type{dnsd.TypeA, dnsd.TypeAAAA} {
		// The server's socket may lose a question in the rush, and net then asks again.
		if n := s.Queries("logs.test", typ); n < handlers || n > 2*handlers {
			t.Errorf("%d questions of type %d for %d handlers", n, typ, handlers)
		}
	}
}
