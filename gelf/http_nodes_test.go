package gelf

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/fake/gelfd"
	"github.com/wholelog/wholelog/internal/ship"
	"github.com/wholelog/wholelog/resolve"
)

// httpNodes starts servers over fake connections and a handler that sends to all of them, for tests of time in a bubble. A node whose
// options are nil refuses connections.
func httpNodes(t *testing.T, o Options, nodes ...*gelfd.HTTPOptions) (*Handler, []*gelfd.HTTPServer) {
	t.Helper()
	var servers []*gelfd.HTTPServer
	var addrs []string
	listeners := map[string]*pipeListener{}
	for i, n := range nodes {
		addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)}), 12202).String()
		addrs = append(addrs, addr)
		var s *gelfd.HTTPServer
		if n != nil {
			l := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
			listeners[addr], s = l, gelfd.ServeHTTP(l, *n)
			t.Cleanup(func() { s.Close() })
		}
		servers = append(servers, s)
	}
	o.Host = "h"
	to := httpTarget(t, "http://graylog.test:12202")
	c, err := newConfig(to, o)
	if err != nil {
		t.Fatal(err)
	}
	transport := newHTTP(c.httpTo(to))
	transport.proxy = noProxy
	transport.dial = func(ctx context.Context, _, addr string) (net.Conn, error) {
		l := listeners[addr]
		if l == nil {
			return nil, syscall.ECONNREFUSED
		}
		client, server := net.Pipe()
		select {
		case l.conns <- server:
			return client, nil
		case <-l.closed:
			return nil, syscall.ECONNREFUSED
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	o.Delivery.SendTimeout = c.sendTimeout()
	if o.Delivery.OnError == nil {
		o.Delivery.OnError = func(error) {}
	}
	o.Resolve.Resolver = resolve.Static(addrs...)
	h := newHandler(c, newRoute(transport, o.Resolve, o.Delivery), ship.Route{}, o.Delivery)
	t.Cleanup(func() { h.Close() })
	return h, servers
}

// flushWithin flushes h within d.
func flushWithin(t *testing.T, h *Handler, d time.Duration) error {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	return h.Flush(ctx)
}

func always(a gelfd.Answer) *gelfd.HTTPOptions {
	return &gelfd.HTTPOptions{Answer: func(int, gelfd.Request) *gelfd.Answer { return &a }}
}

// R46: one of three nodes takes requests and never answers. It holds up what it has, eight requests, for SendTimeout; all else goes
// to the others at once, Flush ends with its context, and in the end everything has arrived.
func TestR46_HTTPStalledNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, nodes := httpNodes(t, Options{}, always(gelfd.Answer{Stall: true}), new(gelfd.HTTPOptions), new(gelfd.HTTPOptions))
		log := slog.New(h)
		for i := range 300 {
			log.Info("m", "n", i)
		}
		start := time.Now()
		if err := flushWithin(t, h, 5*time.Second); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 5*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		if s := h.Stats(); s.Pending == 0 || s.Pending > 8 || len(nodes[0].Requests()) > 8 || s.Waits != 0 {
			t.Errorf("%d requests stall; %+v", len(nodes[0].Requests()), s)
		}
		if err := flushWithin(t, h, 2*time.Minute); err != nil {
			t.Error(err)
		}
		got := len(nodes[1].Messages()) + len(nodes[2].Messages())
		if s := h.Stats(); got != 300 || s.Delivered != 300 || s.Resent == 0 || s.Endpoints[0].Errors[delivery.CauseTimeout]+s.Endpoints[1].Errors[delivery.CauseTimeout]+s.Endpoints[2].Errors[delivery.CauseTimeout] == 0 {
			t.Errorf("%d arrived; %+v", got, s)
		}
	})
}

// R45: 3134 records at up to 5000 a second over three nodes: by the nodes' own counts of requests each gets a third, give or take two,
// over connections that all live to the end.
func TestR45_HTTPThirds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 3134
		h, nodes := httpNodes(t, Options{Delivery: delivery.Options{RecordRate: 5000}}, new(gelfd.HTTPOptions), new(gelfd.HTTPOptions), new(gelfd.HTTPOptions))
		for i := range n {
			slog.New(h).Info("m", "n", i)
		}
		if err := flushWithin(t, h, time.Minute); err != nil {
			t.Error(err)
		}
		for i, s := range nodes {
			if got := len(s.Requests()); got < n/3-2 || got > n/3+3 || len(s.Messages()) != got || s.Conns() != s.Open() {
				t.Errorf("node %d: %d requests, %d messages of %d; %d connections, %d open", i, got, len(s.Messages()), n, s.Conns(), s.Open())
			}
		}
		if s := h.Stats(); s.Delivered != n || s.Resent != 0 || s.Reconnects != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// R49: the only node takes connections and nothing else. Memory stays within the budget, and log calls do not wait.
func TestR49_HTTPPeerThatNeverAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const budget = 1 << 20
		h, nodes := httpNodes(t, Options{Delivery: delivery.Options{
			QueueBytes: budget, Overflow: delivery.DropNewest, CloseTimeout: time.Second,
		}}, always(gelfd.Answer{Stall: true}))
		log := slog.New(h)
		for i := range 20_000 {
			log.Info(strings.Repeat("x", 1000), "n", i)
		}
		time.Sleep(10 * time.Second)
		s := h.Stats()
		if s.PendingBytes > budget || s.Accepted != 20_000 || s.Accepted != s.Dropped+s.Pending || s.Waits != 0 || s.Delivered != 0 {
			t.Errorf("%+v", s)
		}
		if n := len(nodes[0].Requests()); n == 0 || n > 8 {
			t.Errorf("%d requests in flight", n)
		}
		time.Sleep(time.Minute)
		if s := h.Stats(); s.Resent == 0 || s.Accepted != s.Dropped+s.Pending {
			t.Errorf("not taken back: %+v", s)
		}
	})
}

// R78: wrong credentials are told, asked again at a slow pace and not given up: once they are right, everything arrives.
func TestR78_HTTPWrongCredentialsAreHeld(t *testing.T) {
	for _, status := range []int{401, 403, 404} {
		synctest.Test(t, func(t *testing.T) {
			mended := time.Now().Add(time.Minute)
			var mu sync.Mutex
			var told []string
			h, nodes := httpNodes(t, Options{Delivery: delivery.Options{OnError: func(err error) {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, err.Error())
			}}}, &gelfd.HTTPOptions{Answer: func(int, gelfd.Request) *gelfd.Answer {
				if time.Now().Before(mended) {
					return &gelfd.Answer{Status: status, Body: "who are you"}
				}
				return nil
			}})
			for i := range 20 {
				slog.New(h).Info("m", "n", i)
			}
			time.Sleep(55 * time.Second)
			requests := len(nodes[0].Requests())
			if s := h.Stats(); s.Pending != 20 || s.Resent != 0 || requests < 8 || requests > 8*14 {
				t.Errorf("%d: %d requests in 55 s; %+v", status, requests, s)
			}
			if err := flushWithin(t, h, 2*time.Minute); err != nil {
				t.Error(err)
			}
			if s := h.Stats(); s.Delivered != 20 || len(nodes[0].Messages()) != 20 {
				t.Errorf("%+v", s)
			}
			mu.Lock()
			defer mu.Unlock()
			if want := fmt.Sprintf("gelf: 192.0.2.1:12202: gelf: http status %d: who are you", status); len(told) == 0 || told[0] != want {
				t.Errorf("told %q, want %s", told, want)
			}
		})
	}
}

// A node that asks for a pause gets it, and its records go to another one at once.
func TestHTTPRetryAfterIsKept(t *testing.T) {
	for _, x := range []struct {
		status int
		value  string
		pause  time.Duration
	}{
		{429, "20", 20 * time.Second},
		{503, time.Date(2000, 1, 1, 0, 0, 20, 0, time.UTC).Format(http.TimeFormat), 20 * time.Second}, // the bubble's clock begins with 2000
		{503, "86400", time.Minute}, // capped
	} {
		synctest.Test(t, func(t *testing.T) {
			busy := &gelfd.HTTPOptions{Answer: func(n int, _ gelfd.Request) *gelfd.Answer {
				if n == 1 {
					return &gelfd.Answer{Status: x.status, Header: http.Header{"Retry-After": {x.value}}}
				}
				return nil
			}}
			h, nodes := httpNodes(t, Options{ConnsPerAddr: 1}, busy, &gelfd.HTTPOptions{})
			for range 1200 {
				slog.New(h).Info("m")
				time.Sleep(100 * time.Millisecond)
			}
			if err := flushWithin(t, h, time.Second); err != nil {
				t.Error(err)
			}
			r := nodes[0].Requests()
			if len(r) < 3 {
				t.Fatalf("%s: %d requests", x.value, len(r))
			}
			if pause := r[1].Arrived.Sub(r[0].Arrived); pause < x.pause || pause > x.pause+2*time.Second {
				t.Errorf("%s: asked again after %v", x.value, pause)
			}
			if got := len(nodes[0].Messages()) + len(nodes[1].Messages()); got != 1200 || h.Stats().Delivered != 1200 || h.Stats().Resent != 0 {
				t.Errorf("%d arrived; %+v", got, h.Stats())
			}
		})
	}
}

// A redirect is not followed, and its target hears nothing.
func TestHTTPRedirectIsNotFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, nodes := httpNodes(t, Options{Delivery: delivery.Options{CloseTimeout: time.Second}},
			always(gelfd.Answer{Status: 308, Header: http.Header{"Location": {"/elsewhere"}}}))
		slog.New(h).Info("m")
		err := flushWithin(t, h, 20*time.Second)
		if err == nil || !strings.Contains(err.Error(), "a redirect is not followed; it leads to /elsewhere") {
			t.Errorf("%v", err)
		}
		for _, r := range nodes[0].Requests() {
			if r.URI != "/gelf" {
				t.Errorf("%+v", r)
			}
		}
	})
}

// R78: a refusal that judges the body is the end of that message. In a batch the culprit is found by halves, and the others arrive.
func TestR78_HTTPRefusedMessages(t *testing.T) {
	for _, bulk := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var drops []delivery.Drop
			h, nodes := httpNodes(t, Options{Bulk: bulk, Delivery: delivery.Options{OnDrop: func(d delivery.Drop) {
				mu.Lock()
				defer mu.Unlock()
				d.Data = slices.Clone(d.Data)
				drops = append(drops, d)
			}}}, &gelfd.HTTPOptions{Bulk: bulk, Answer: func(_ int, r gelfd.Request) *gelfd.Answer {
				if strings.Contains(string(r.Body), "culprit") {
					return &gelfd.Answer{Status: 400, Body: "I do not like it"}
				}
				return nil
			}})
			for i := range 50 {
				slog.New(h).Info(map[bool]string{true: "culprit", false: "m"}[i == 17], "n", i)
			}
			if err := flushWithin(t, h, time.Minute); err != nil {
				t.Error(err)
			}
			if err := h.Close(); err != nil {
				t.Error(err)
			}
			s := h.Stats()
			if len(nodes[0].Messages()) != 49 || s.Delivered != 49 || s.Reasons[delivery.ReasonRejected] != 1 || s.Resent != 0 {
				t.Errorf("bulk %v: %d arrived, %+v", bulk, len(nodes[0].Messages()), s)
			}
			var e *StatusError
			if len(drops) != 1 || !strings.Contains(string(drops[0].Data), "culprit") || !errors.As(drops[0], &e) || e.Status != 400 || e.Text != "I do not like it" {
				t.Errorf("bulk %v: %v", bulk, drops)
			}
		})
	}
}

// R78: what the server fails at is tried as often as Tries says, and then lost for that reason.
func TestR78_HTTPTriesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, nodes := httpNodes(t, Options{Delivery: delivery.Options{Tries: 4}}, always(gelfd.Answer{Status: 500}), always(gelfd.Answer{Status: 502}))
		slog.New(h).Info("m")
		if err := flushWithin(t, h, 10*time.Minute); err != nil {
			t.Error(err)
		}
		if n := len(nodes[0].Requests()) + len(nodes[1].Requests()); n != 4 || len(nodes[0].Requests()) == 0 || len(nodes[1].Requests()) == 0 {
			t.Errorf("%d requests, %d to the first", n, len(nodes[0].Requests()))
		}
		if s := h.Stats(); s.Reasons[delivery.ReasonTriesExhausted] != 1 || s.Resent != 3 {
			t.Errorf("%+v", s)
		}
	})
}

// Connections are replaced at their age, ±20 %, between requests; with a negative age they live on.
func TestHTTPConnAge(t *testing.T) {
	for _, x := range []struct {
		age       time.Duration
		low, high int
	}{
		{0, 10, 16}, // an hour of 5 min
		{time.Minute, 48, 77},
		{-1, 1, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			h, nodes := httpNodes(t, Options{ConnAge: x.age}, &gelfd.HTTPOptions{})
			for range 360 {
				slog.New(h).Info("m")
				time.Sleep(10 * time.Second)
			}
			if n := nodes[0].Conns(); n < x.low || n > x.high {
				t.Errorf("age %v: %d connections in an hour", x.age, n)
			}
			if s := h.Stats(); s.Delivered != 360 || s.Reconnects != 0 || len(s.Endpoints[0].Errors) != 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// With Sync, Handle returns what became of the record: a stalled or refusing node costs its share of the time, the next one takes it.
func TestHTTPSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := Options{Delivery: delivery.Options{Sync: true}}
		h, nodes := httpNodes(t, o, always(gelfd.Answer{Stall: true}), nil, &gelfd.HTTPOptions{})
		for i := range 6 {
			start := time.Now()
			if err := h.Handle(t.Context(), info("m", slog.Int("n", i))); err != nil || time.Since(start) > 2*time.Second {
				t.Errorf("after %v: %v", time.Since(start), err)
			}
		}
		if len(nodes[2].Messages()) != 6 {
			t.Errorf("%d messages", len(nodes[2].Messages()))
		}
		h, _ = httpNodes(t, o, always(gelfd.Answer{Status: 422, Body: "no"}))
		var e *StatusError
		if err := h.Handle(t.Context(), info("m")); !errors.As(err, &e) || e.Status != 422 {
			t.Errorf("%v", err)
		}
		h, _ = httpNodes(t, o, always(gelfd.Answer{Status: 401}))
		var d delivery.Drop
		if err := h.Handle(t.Context(), info("m")); !errors.As(err, &d) || d.Reason != delivery.ReasonSyncFailed || !errors.As(err, &e) || e.Status != 401 {
			t.Errorf("%v", err)
		}
	})
}

// Ready says whether a record could leave: one node that answers is enough.
func TestHTTPReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _ := httpNodes(t, Options{}, nil, &gelfd.HTTPOptions{})
		if err := h.Ready(t.Context()); err != nil {
			t.Error(err)
		}
		h, _ = httpNodes(t, Options{}, nil, nil)
		if err := h.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("%v", err)
		}
	})
}
