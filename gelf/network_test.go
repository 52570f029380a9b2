package gelf_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/gelf"
	"github.com/wholelog/wholelog/internal/fake/dnsd"
	"github.com/wholelog/wholelog/internal/fake/flowlb"
	"github.com/wholelog/wholelog/internal/fake/gelfd"
	"github.com/wholelog/wholelog/internal/fake/loopback"
	"github.com/wholelog/wholelog/internal/yardstick"
	"github.com/wholelog/wholelog/jitter"
	"github.com/wholelog/wholelog/resolve"
)

// nodes starts n receivers on 127.0.0.1.
func nodes(t *testing.T, n int) []*gelfd.Server {
	t.Helper()
	all := make([]*gelfd.Server, n)
	for i := range all {
		s, err := gelfd.Listen("127.0.0.1:0", gelfd.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		all[i] = s
	}
	return all
}

// place is where a receiver can go away and come back.
func place(t *testing.T) string {
	t.Helper()
	addr, err := loopback.Addr()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// handlerOf returns a handler that is closed when t ends.
func handlerOf(t testing.TB, target string, o gelf.Options) *gelf.Handler {
	t.Helper()
	h, err := gelf.NewHandler(target, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

// flushed waits until nothing is pending, for a minute at most.
func flushed(t testing.TB, h *gelf.Handler) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := h.Flush(ctx); err != nil {
		t.Fatalf("%v; %+v", err, h.Stats())
	}
}

// wait polls until done, or fails the test with what say says.
func wait(t *testing.T, done func() bool, say func() string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for !done() {
		select {
		case <-ctx.Done():
			t.Fatal(say())
		case <-time.After(time.Millisecond):
		}
	}
}

// A balancer hashes every flow to one of its nodes. One message uses one flow, so it is whole wherever it lands, and the flows of one
// handler reach all nodes behind a single address.
func TestFlowsReachEveryNodeBehindABalancer(t *testing.T) {
	servers := nodes(t, 3)
	targets := make([]netip.AddrPort, len(servers))
	for i, s := range servers {
		targets[i] = s.Addr()
	}
	lb, err := flowlb.Listen([]string{"127.0.0.1:0"}, targets, flowlb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer lb.Close()
	h, err := gelf.NewHandler("udp://"+lb.VIPs()[0].String(), &gelf.Options{Flows: 32})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	log := slog.New(h)
	got := func() (sum int) {
		for _, s := range servers {
			sum += len(s.Messages())
		}
		return sum
	}
	for i := range 64 {
		log.Info(yardstick.Text(6000, uint64(i)))
		if err := h.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		wait(t, func() bool { return got() > i }, func() string { return fmt.Sprintf("%d of %d arrived; %+v", got(), i+1, h.Stats()) })
	}
	for i, s := range servers {
		if len(s.Messages()) == 0 {
			t.Errorf("node %d got nothing: 32 flows reach one of three nodes only, once in a million runs", i)
		}
		for _, m := range s.Messages() {
			if len(m.From) != 1 || len(m.Sizes) < 2 {
				t.Errorf("a message of %d datagrams from %v", len(m.Sizes), m.From)
			}
		}
	}
}

// R38, R43: while the name does not resolve, construction succeeds and records wait; they arrive once it does.
func TestR38_R43_DNSDownAtStart(t *testing.T) {
	server := nodes(t, 1)[0]
	dns, err := dnsd.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer dns.Close()
	const host = "graylog.test."
	dns.Set(host, dnsd.Answer{RCode: dnsd.ServFail})
	target := fmt.Sprintf("%s:%d", host, server.Addr().Port())
	var told []string
	h, err := gelf.NewHandler("udp://"+target, &gelf.Options{
		Resolve: resolve.Options{Resolver: resolve.DNS(target, dns.Resolver()), Refresh: 100 * time.Millisecond},
		Delivery: delivery.Options{
			Backoff: jitter.Backoff{Base: 10 * time.Millisecond, Max: 50 * time.Millisecond},
			OnError: func(err error) { told = append(told, err.Error()) }, // one goroutine calls it; read after Close
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(h)
	for i := range 10 {
		log.Info("waiting", "n", i)
	}
	wait(t, func() bool { return h.Stats().LookupErrors >= 2 }, func() string { return fmt.Sprintf("%+v", h.Stats()) })
	if s := h.Stats(); s.Pending != 10 || s.Dropped != 0 {
		t.Errorf("while the name does not resolve: %+v", s)
	}
	dns.Set(host, dnsd.Answer{Addrs: []netip.Addr{server.Addr().Addr()}, TTL: time.Minute})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := h.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	if err := server.Wait(ctx, 10); err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if len(told) == 0 || !strings.HasPrefix(told[0], "gelf: ") || !strings.Contains(told[0], host) {
		t.Errorf("told: %q", told)
	}
}

// A receiver that is down and comes back: what the kernel refused is kept and arrives. The first message after it went is the one
// that the refusal answers; UDP lost it without a word.
func TestReceiverRestart(t *testing.T) {
	addr := place(t)
	first, err := gelfd.Listen(addr, gelfd.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h, err := gelf.NewHandler("udp://"+addr, &gelf.Options{
		Flows: 1, // so that the refusal of one message meets the next
		Delivery: delivery.Options{
			Backoff: jitter.Backoff{Base: 5 * time.Millisecond, Max: 20 * time.Millisecond}, OnError: func(error) {},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	log := slog.New(h)
	log.Info("before")
	if err := first.Wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	first.Close()
	for i := range 50 {
		log.Info(yardstick.Text(4000, uint64(i)), "n", i)
	}
	refused := func() uint64 { return h.Stats().Endpoints[0].Errors[delivery.CauseRefused] }
	wait(t, func() bool { return refused() > 0 }, func() string { return fmt.Sprintf("%+v", h.Stats()) })

	second, err := gelfd.Listen(addr, gelfd.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := h.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	s := h.Stats()
	// Each refusal stands for one message that was sent into the void before it.
	want := 50 - int(refused())
	if err := second.Wait(ctx, want); err != nil {
		t.Fatalf("%v; %+v", err, s)
	}
	if s.Delivered != 51 || s.Dropped != 0 || s.Resent != 0 {
		t.Errorf("%+v", s)
	}
}

// A receiver that is away for a second. Each of the flows has a refusal of its own, and all are news of one and the same outage:
// records arrive again as soon as it is over and the address has rested, a fraction of a second, and not after one rest, each twice as
// long, for every flow.
func TestReceiverAwayForASecond(t *testing.T) {
	for _, sync := range []bool{false, true} {
		t.Run(fmt.Sprintf("Sync=%v", sync), func(t *testing.T) {
			t.Parallel()
			addr := place(t)
			first, err := gelfd.Listen(addr, gelfd.Options{})
			if err != nil {
				t.Fatal(err)
			}
			h, err := gelf.NewHandler("udp://"+addr, &gelf.Options{
				Delivery: delivery.Options{Sync: sync, OnError: func(error) {}},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			failed := 0
			log := func() {
				if h.Handle(t.Context(), slog.NewRecord(time.Now(), slog.LevelInfo, "m", 0)) != nil {
					failed++
				}
			}
			for range 32 { // all flows exist
				log()
			}
			if err := h.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			first.Close()
			for range 200 {
				log()
				<-time.After(5 * time.Millisecond)
			}
			second, err := gelfd.Listen(addr, gelfd.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer second.Close()
			refused := func() uint64 { return h.Stats().Endpoints[0].Errors[delivery.CauseRefused] }
			before, failedBefore, back := refused(), failed, time.Now()
			wait(t, func() bool { log(); return len(second.Messages()) >= 50 }, func() string { return fmt.Sprintf("%+v", h.Stats()) })
			// One refusal may be left: that of the last message sent while nobody listened.
			if n := refused() - before; n > 1 || failed-failedBefore > 1 {
				t.Errorf("back, and refused %d times, %d records lost", n, failed-failedBefore)
			}
			if took := time.Since(back); took > 10*time.Second {
				t.Errorf("records arrive %v after the receiver is back", took)
			}
			if !sync && before > 20 {
				t.Errorf("%d refusals in a second", before)
			}
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// In Sync mode many callers share one address. That our own rate does not let all of them send within their time is no evidence
// against it: what fails, fails for want of time, and the address is used at once by the next.
func TestSyncSharesARate(t *testing.T) {
	server := nodes(t, 1)[0]
	h, err := gelf.NewHandler("udp://"+server.Addr().String(), &gelf.Options{
		PacketRate: 64, Compression: gelf.CompressNone,
		Delivery: delivery.Options{Sync: true, SyncTimeout: 300 * time.Millisecond, OnError: func(error) {}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	log := slog.New(h)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() { log.Info(yardstick.Text(20_000, uint64(i))) })
	}
	wg.Wait()
	s := h.Stats()
	if s.Accepted != 20 || s.Delivered+s.Dropped != 20 || s.Dropped == 0 || s.Reasons[delivery.ReasonSyncFailed] != s.Dropped {
		t.Errorf("%+v", s)
	}
	if e := s.Endpoints[0]; len(e.Errors) > 0 {
		t.Errorf("held against the address: %+v", e)
	}
	if err := server.Wait(t.Context(), int(s.Delivered)); err != nil {
		t.Error(err)
	}
}

// A quiet sender with many flows learns with the next message that nobody listens any more, and not when it comes back to the flow
// that was refused: one message is lost, and not one for each flow.
func TestQuietSenderHearsARefusalAtOnce(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Log("the pending error of a socket cannot be asked for here")
		return
	}
	all := nodes(t, 2)
	list := []string{all[0].Addr().String(), all[1].Addr().String()}
	h, err := gelf.NewHandler("udp://graylog.test:12201", &gelf.Options{
		Resolve:  resolve.Options{Resolver: resolve.Static(list...), Policy: resolve.PerProcess},
		Delivery: delivery.Options{OnError: func(error) {}, Backoff: jitter.Backoff{Max: 50 * time.Millisecond}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	log := slog.New(h)
	log.Info("first")
	if err := h.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := func() int { return len(all[0].Messages()) + len(all[1].Messages()) }
	wait(t, func() bool { return got() == 1 }, func() string { return "the first did not arrive" })
	pinned := 0
	if len(all[1].Messages()) == 1 {
		pinned = 1
	}
	all[pinned].Close()
	const n = 20
	for i := range n {
		log.Info("later", "n", i)
		if err := h.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-time.After(5 * time.Millisecond) // a quiet sender: a refusal has time to come in
	}
	// Three refusals in a row make the handler choose another address; each answers one message that was sent into the void.
	wait(t, func() bool { return len(all[1-pinned].Messages()) >= n-4 }, func() string {
		return fmt.Sprintf("%d of %d arrived at the other address; %+v", len(all[1-pinned].Messages()), n, h.Stats())
	})
}
