package pool

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/leak"
	"github.com/wholelog/wholelog/resolve"
)

func TestMain(m *testing.M) { leak.Main(m) }

// script is a Resolver whose answer the test changes. It notes when it was called and whether two calls ever overlapped.
type script struct {
	mu      sync.Mutex
	do      func(ctx context.Context) (resolve.Answer, error)
	calls   []time.Time
	running int
	overlap bool
}

func (s *script) String() string { return "logs.test:514" }

func (s *script) Resolve(ctx context.Context) (resolve.Answer, error) {
	s.mu.Lock()
	do := s.do
	s.calls = append(s.calls, time.Now())
	s.running++
	s.overlap = s.overlap || s.running > 1
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.running--
		s.mu.Unlock()
	}()
	return do(ctx)
}

func (s *script) set(do func(ctx context.Context) (resolve.Answer, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.do = do
}

func (s *script) answer(addrs ...string) { s.give(answer(addrs...), nil) }

func (s *script) give(a resolve.Answer, err error) {
	s.set(func(context.Context) (resolve.Answer, error) { return a, err })
}

func (s *script) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.calls)
}

func answer(addrs ...string) resolve.Answer {
	var a resolve.Answer
	for _, addr := range addrs {
		a.Endpoints = append(a.Endpoints, resolve.Endpoint{Addr: netip.MustParseAddrPort(addr)})
	}
	return a
}

const (
	addrA = "192.0.2.1:514"
	addrB = "192.0.2.2:514"
	addrC = "[2001:db8::3]:514"
)

// rig is a pool with its script and what it told its user.
type rig struct {
	*Pool
	script   *script
	mu       sync.Mutex
	changes  int
	troubles []string
	wake     chan struct{}

	connected map[string]bool // addresses with an open connection
}

func newRig(t *testing.T, o resolve.Options, addrs ...string) *rig {
	t.Helper()
	r := &rig{script: &script{}, wake: make(chan struct{}, 1)}
	r.script.answer(addrs...)
	o.Resolver = r.script
	r.Pool = New(Config{Options: o})
	r.Bind(Hooks{Changed: func() {
		r.mu.Lock()
		r.changes++
		r.mu.Unlock()
		select {
		case r.wake <- struct{}{}:
		default:
		}
	}, Trouble: func(_ delivery.Cause, err error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.troubles = append(r.troubles, err.Error())
	}, Connected: func(addr netip.AddrPort) bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.connected[addr.String()]
	}})
	t.Cleanup(r.Close)
	return r
}

// drive does what a dispatcher does until ctx ends: it kicks when the pool said so, and when the pool has news.
func (r *rig) drive(ctx context.Context) {
	for {
		timer := time.NewTimer(time.Until(r.Kick()))
		select {
		case <-timer.C:
		case <-r.wake:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// driven runs drive in the background until the test ends.
func (r *rig) driven(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { r.drive(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	synctest.Wait()
}

// kick makes one look-up and returns how far away the next one is.
func (r *rig) kick() time.Duration {
	r.Kick()
	synctest.Wait()
	return time.Until(r.Kick())
}

func (r *rig) told() (changes int, troubles []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changes, r.troubles
}

// list shows the usable addresses of a snapshot, and the others in brackets.
func (r *rig) list() string {
	var out []string
	for _, e := range r.Snapshot().Endpoints {
		s := e.Addr.String()
		if !e.Usable {
			s = "(" + s + ")"
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

func (r *rig) want(t *testing.T, addrs ...string) {
	t.Helper()
	if got, want := r.list(), strings.Join(addrs, " "); got != want {
		t.Errorf("the snapshot holds %q, want %q", got, want)
	}
}

// pass lets time go by in a bubble.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// inBubble runs a test that needs time, once for each of several names.
func inBubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

func between(t *testing.T, what string, got, low, high time.Duration) {
	t.Helper()
	if got < low || got > high {
		t.Errorf("%s: %v is not from %v to %v", what, got, low, high)
	}
}

func mustNil(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func addrOf(i int) string { return fmt.Sprintf("10.%d.%d.%d:514", i>>16&255, i>>8&255, i&255) }
