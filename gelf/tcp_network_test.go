package gelf_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/gelf"
	"github.com/wholelog/wholelog/internal/fake/authority"
	"github.com/wholelog/wholelog/internal/fake/gelfd"
	"github.com/wholelog/wholelog/jitter"
	"github.com/wholelog/wholelog/resolve"
)

// tcpNodes starts n receivers.
func tcpNodes(t testing.TB, n int, c *tls.Config) []*gelfd.TCPServer {
	t.Helper()
	all := make([]*gelfd.TCPServer, n)
	for i := range all {
		all[i] = tcpNode(t, gelfd.TCPOptions{TLS: c})
	}
	return all
}

func tcpNode(t testing.TB, o gelfd.TCPOptions) *gelfd.TCPServer {
	t.Helper()
	s, err := gelfd.ListenTCP("", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// over says where the nodes are, whatever a target's host is.
func over(nodes ...*gelfd.TCPServer) resolve.Options {
	addrs := make([]string, len(nodes))
	for i, n := range nodes {
		addrs[i] = n.Addr().String()
	}
	return resolve.Options{Resolver: resolve.Static(addrs...)}
}

// connected opens the connections to all nodes: each has delivered something when it returns.
func connected(t *testing.T, h *gelf.Handler, nodes []*gelfd.TCPServer) {
	t.Helper()
	log := slog.New(h)
	all := func() bool {
		log.Info("first")
		flushed(t, h)
		for _, n := range nodes {
			if n.Stats().Messages == 0 {
				return false
			}
		}
		return true
	}
	wait(t, all, func() string { return fmt.Sprintf("%+v", h.Stats()) })
	// Flush returns when the kernels have everything; the programs have yet to read it.
	read := func() (sum uint64) {
		for _, n := range nodes {
			sum += n.Stats().Messages
		}
		return sum
	}
	wait(t, func() bool { return read() == h.Stats().Delivered }, func() string { return fmt.Sprintf("%+v", h.Stats()) })
}

// R45: 3134 messages at 5000 a second through one handler over three nodes: thirds, by the receivers' counts, on connections that all
// live to the end.
func TestR45_Thirds(t *testing.T) {
	for _, per := range []int{1, 2} {
		nodes := tcpNodes(t, 3, nil)
		h := handlerOf(t, "tcp://graylog.test:12201", gelf.Options{
			Resolve: over(nodes...), ConnsPerAddr: per, Delivery: delivery.Options{RecordRate: 5000, MaxBlock: time.Minute},
		})
		connected(t, h, nodes)
		before, conns := make([]int, 3), make([]int, 3)
		for i, n := range nodes {
			before[i], conns[i] = int(n.Stats().Messages), len(n.Conns())
		}
		const count = 3134
		log := slog.New(h)
		for i := range count {
			log.Info("balanced", "n", i)
		}
		flushed(t, h)
		wait(t, func() bool {
			sum := 0
			for i, n := range nodes {
				sum += int(n.Stats().Messages) - before[i]
			}
			return sum == count
		}, func() string { return fmt.Sprintf("%+v", h.Stats()) })
		for i, n := range nodes {
			got := int(n.Stats().Messages) - before[i]
			t.Logf("node %d: %d", i, got)
			if got < count/3-2 || got > count/3+3 {
				t.Errorf("node %d has %d of %d", i, got, count)
			}
			if all := n.Conns(); len(all) > per || per == 1 && len(all) != conns[i] {
				t.Errorf("node %d saw %d connections", i, len(all))
			}
			for _, c := range n.Conns() {
				if c.End != "" {
					t.Errorf("node %d: a connection has ended: %+v", i, c)
				}
			}
		}
		if s := h.Stats(); s.Reconnects != 0 || s.Resent != 0 || s.Dropped != 0 {
			t.Errorf("%+v", s)
		}
		h.Close()
	}
}

// R59, R57: what one goroutine logs arrives in its order on one connection, and what many log arrives whole.
func TestR57_R59_OrderAndWholeness(t *testing.T) {
	node := tcpNode(t, gelfd.TCPOptions{})
	h := handlerOf(t, "tcp://"+node.Addr().String(), gelf.Options{Delivery: delivery.Options{MaxBlock: time.Minute}})
	var wg sync.WaitGroup
	for g := range 50 {
		wg.Go(func() {
			log := slog.New(h).With("g", g)
			for i := range 100 {
				log.Info(strings.Repeat("x", g), "i", i)
			}
		})
	}
	wg.Wait()
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	next := make([]int64, 50)
	for _, m := range node.Messages() {
		g, i := m.Fields["g"].(int64), m.Fields["i"].(int64)
		if i != next[g] || m.Kind != gelfd.Plain {
			t.Fatalf("of %d: %d follows %d, %s", g, i, next[g]-1, m.Kind)
		}
		next[g]++
	}
	if c := node.Conns(); len(c) != 1 || c[0].Frames != 5000 || c[0].End != gelfd.EndFIN {
		t.Errorf("%+v; R53: Close says goodbye when all has been read", c)
	}
	if s := h.Stats(); s.Delivered != 5000 || s.Bytes != node.Conns()[0].Bytes {
		t.Errorf("%+v", s)
	}
}

// The first message after the peer closed an idle connection arrives, though the kernel would take it for the dead one.
func TestFirstMessageAfterAnIdleClose(t *testing.T) {
	node := tcpNode(t, gelfd.TCPOptions{})
	h := handlerOf(t, "tcp://"+node.Addr().String(), gelf.Options{Delivery: delivery.Options{
		OnError: func(error) {}, Backoff: jitter.Backoff{Max: 10 * time.Millisecond},
	}})
	log := slog.New(h)
	for i := 1; i <= 5; i++ {
		log.Info("after a pause", "n", i)
		flushed(t, h)
		if err := node.Wait(t.Context(), i); err != nil {
			t.Fatal(err)
		}
		node.Hangup()
		closed := func() bool { return h.Stats().Endpoints[0].Errors[delivery.CausePeerClosed] == uint64(i) }
		wait(t, closed, func() string { return fmt.Sprintf("close %d is not noticed: %+v", i, h.Stats()) })
	}
	if s := h.Stats(); s.Delivered != 5 || s.Resent != 0 || s.Reconnects != 4 {
		t.Errorf("%+v", s)
	}
}

// The same in Sync mode, where the log call itself goes on to the next address: no call fails, noticed in time or not.
func TestSyncAfterAnIdleClose(t *testing.T) {
	nodes := tcpNodes(t, 2, nil)
	h := handlerOf(t, "tcp://graylog.test:12201", gelf.Options{Resolve: over(nodes...), Delivery: delivery.Options{
		Sync: true, SyncTimeout: time.Minute, OnError: func(error) {},
	}})
	const n = 20
	for i := range n {
		if err := h.Handle(t.Context(), slog.NewRecord(time.Now(), slog.LevelInfo, fmt.Sprint(i), 0)); err != nil {
			t.Fatal(err)
		}
		got := func() uint64 { return nodes[0].Stats().Messages + nodes[1].Stats().Messages }
		wait(t, func() bool { return got() == uint64(i+1) }, func() string { return fmt.Sprintf("%d of %d arrived", got(), i+1) })
		nodes[0].Hangup() // of both, a call might find neither
	}
	if s := h.Stats(); s.Delivered != n || s.Dropped != 0 {
		t.Errorf("%+v", s)
	}
}

// R46: a peer that accepts and reads nothing holds nobody up: the others take what it does not, Flush ends with its time, memory is
// bounded, and the write deadline takes back what its kernel has not acknowledged.
func TestR46_StalledPeer(t *testing.T) {
	deaf := tcpNode(t, gelfd.TCPOptions{Deaf: true, Options: gelfd.Options{RcvBuf: 4 << 10}})
	nodes := append(tcpNodes(t, 2, nil), deaf)
	h := handlerOf(t, "tcp://graylog.test:12201", gelf.Options{
		Resolve: over(nodes...),
		Delivery: delivery.Options{
			QueueBytes: 1 << 20, MaxBlock: time.Minute, SendTimeout: 2 * time.Second, OnError: func(error) {},
		},
	})
	log := slog.New(h)
	text := strings.Repeat("x", 1000)
	row := func() (e delivery.EndpointStats) {
		for _, e = range h.Stats().Endpoints {
			if e.Addr == deaf.Addr() {
				return e
			}
		}
		return e
	}
	// Until something waits for the deaf one, however much its kernel takes.
	n := 0
	for row().PendingBytes == 0 || n < 10_000 {
		log.Info(text, "n", n)
		n++
		if n > 1_000_000 {
			t.Fatal("it takes everything")
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := h.Flush(ctx); err == nil || !strings.Contains(err.Error(), "pending") {
		t.Errorf("Flush: %v", err)
	}
	if s := h.Stats(); s.PendingBytes > 1<<20 {
		t.Errorf("%d bytes pending", s.PendingBytes)
	}
	flushed(t, h)
	s := h.Stats()
	if s.Delivered != uint64(n) || s.Dropped != 0 || row().Errors[delivery.CauseTimeout] == 0 {
		t.Errorf("of %d: %+v", n, s)
	}
	arrived := func() uint64 { return nodes[0].Stats().Messages + nodes[1].Stats().Messages }
	want := uint64(n) - row().Delivered // what its kernel acknowledged counts as delivered, and is lost with it
	wait(t, func() bool { return arrived() >= want }, func() string { return fmt.Sprintf("%d of %d, %+v", arrived(), want, s) })
	t.Logf("of %d messages the deaf peer's kernel acknowledged %d, the others have %d", n, row().Delivered, arrived())
}

// R37, R40: the record that was being written when the stream broke is sent again, whole.
func TestR37_ConnectionsThatBreak(t *testing.T) {
	nodes := tcpNodes(t, 2, nil)
	h := handlerOf(t, "tcp://graylog.test:12201", gelf.Options{
		Resolve: over(nodes...),
		Delivery: delivery.Options{
			MaxBlock: time.Minute, OnError: func(error) {}, Backoff: jitter.Backoff{Base: time.Millisecond, Max: 5 * time.Millisecond},
		},
	})
	log := slog.New(h)
	const n = 3000
	for i := range n {
		log.Info("m", "n", i)
		if i%500 == 499 {
			flushed(t, h)
			read := func() bool { return nodes[0].Stats().Messages+nodes[1].Stats().Messages >= uint64(i+1) }
			wait(t, read, func() string { return fmt.Sprintf("%+v", h.Stats()) })
			nodes[i/500%2].Hangup()
		}
	}
	flushed(t, h)
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	seen := make(map[int64]bool)
	for _, node := range nodes {
		node.Close()
		if r := node.Stats().Rejected; len(r) > 0 {
			t.Errorf("rejected: %v", r)
		}
		for _, m := range node.Messages() {
			seen[m.Fields["n"].(int64)] = true
		}
	}
	if s := h.Stats(); len(seen) != n || s.Delivered != n || s.Dropped != 0 {
		t.Errorf("%d of %d arrived, %+v", len(seen), n, s)
	}
}

// A connection that has reached its age is replaced between messages; nothing is lost and nothing comes twice.
func TestConnAge(t *testing.T) {
	node := tcpNode(t, gelfd.TCPOptions{})
	h := handlerOf(t, "tcp://"+node.Addr().String(), gelf.Options{ConnAge: 20 * time.Millisecond})
	log := slog.New(h)
	n := 0
	wait(t, func() bool {
		log.Info("m", "n", n)
		n++
		return len(node.Conns()) >= 5
	}, func() string { return fmt.Sprintf("%d connections", len(node.Conns())) })
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	for i, m := range node.Messages() {
		if m.Fields["n"] != int64(i) {
			t.Fatalf("%v at %d", m.Fields["n"], i)
		}
	}
	s := h.Stats()
	if len(node.Messages()) != n || s.Delivered != uint64(n) || s.Resent != 0 || s.Reconnects != 0 || len(s.Endpoints[0].Errors) > 0 {
		t.Errorf("%d of %d, %+v", len(node.Messages()), n, s)
	}
	for _, c := range node.Conns() {
		if c.End != gelfd.EndFIN {
			t.Errorf("not an orderly end: %+v", c)
		}
	}
}

// A server that closes a connection for one message loses those behind it. None of ours is such a message: too long ones are shortened,
// NUL is escaped.
func TestServerNeverClosesForOurMessages(t *testing.T) {
	node := tcpNode(t, gelfd.TCPOptions{})
	h := handlerOf(t, "tcp://"+node.Addr().String(), gelf.Options{Delivery: delivery.Options{QueueBytes: 64 << 20}})
	log := slog.New(h)
	log.Info("")
	log.Info("a\x00b", "k\x00", "v\x00")
	log.Info(strings.Repeat("x", 3<<20))
	log.Info("{\x00" + strings.Repeat("\x00", 100))
	log.Info("last")
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if c := node.Conns(); len(c) != 1 || c[0].Frames != 5 || c[0].End != gelfd.EndFIN {
		t.Errorf("%+v", c)
	}
	if s := node.Stats(); s.Messages != 5 || len(s.Rejected) > 0 || len(s.Dropped) > 0 {
		t.Errorf("%+v", s)
	}
	if s := h.Stats(); s.Truncated != 1 || s.Delivered != 5 {
		t.Errorf("%+v", s)
	}
}

// R33: over TLS the target's name is verified at each of its addresses. What does not verify gets no byte, an error says why, and the
// records wait.
func TestR33_TLS(t *testing.T) {
	ca, other := authority.New(t), authority.New(t)
	for _, tc := range []struct {
		name    string
		cert    tls.Certificate
		roots   *authority.Authority
		failure string
	}{
		{"good", ca.Issue(time.Hour, "graylog.test"), ca, ""},
		{"wrong name", ca.Issue(time.Hour, "other.test"), ca, "valid for other.test, not graylog.test"},
		{"unknown authority", ca.Issue(time.Hour, "graylog.test"), other, "certificate signed by unknown authority"},
		{"expired", ca.Issue(-time.Hour, "graylog.test"), ca, "expired"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			nodes := tcpNodes(t, 3, &tls.Config{Certificates: []tls.Certificate{tc.cert}})
			var mu sync.Mutex
			var told []string
			h := handlerOf(t, "tls://graylog.test:12201", gelf.Options{
				Resolve: over(nodes...), TLSConfig: &tls.Config{RootCAs: tc.roots.Pool()},
				Delivery: delivery.Options{
					CloseTimeout: 100 * time.Millisecond, Backoff: jitter.Backoff{Base: time.Millisecond, Max: 10 * time.Millisecond},
					OnError: func(err error) { mu.Lock(); defer mu.Unlock(); told = append(told, err.Error()) },
				},
			})
			if tc.failure == "" {
				connected(t, h, nodes)
				for _, n := range nodes {
					if c := n.Conns(); len(c) != 1 || c[0].ServerName != "graylog.test" {
						t.Errorf("%+v", c)
					}
				}
				return
			}
			slog.New(h).Info("secret")
			err := h.Ready(t.Context())
			if err == nil || !strings.Contains(err.Error(), tc.failure) || !strings.HasPrefix(err.Error(), "gelf: ") {
				t.Errorf("Ready: %v", err)
			}
			if s := h.Stats(); s.Pending != 1 || s.Endpoints[0].Errors[delivery.CauseTLS]+s.Endpoints[1].Errors[delivery.CauseTLS]+s.Endpoints[2].Errors[delivery.CauseTLS] == 0 {
				t.Errorf("%+v", s)
			}
			h.Close()
			for _, n := range nodes {
				n.Close()
				for _, c := range n.Conns() {
					if c.Bytes > 0 || c.Frames > 0 {
						t.Errorf("%+v", c)
					}
				}
			}
			mu.Lock()
			defer mu.Unlock()
			if all := strings.Join(told, "\n"); !strings.Contains(all, tc.failure) || strings.Contains(all, "secret") {
				t.Errorf("told: %s", all)
			}
		})
	}
}

// R36: a server that demands a certificate gets it.
func TestR36_ClientCertificate(t *testing.T) {
	ca := authority.New(t)
	node := tcpNode(t, gelfd.TCPOptions{TLS: &tls.Config{
		Certificates: []tls.Certificate{ca.Issue(time.Hour, "127.0.0.1")}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ca.Pool(),
	}})
	h := handlerOf(t, "tls://"+node.Addr().String(), gelf.Options{TLSConfig: &tls.Config{
		RootCAs: ca.Pool(), Certificates: []tls.Certificate{ca.Issue(time.Hour, "client.test")},
	}})
	slog.New(h).Info("m")
	flushed(t, h)
	if err := node.Wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if c := node.Conns(); len(c) != 1 || !c[0].ClientCert || c[0].ServerName != "" {
		t.Errorf("%+v; R34: no SNI for an IP address", c)
	}
}

// R38, R39: a receiver that is down at the start and comes late, and again, needs no restart of ours.
func TestR38_R39_ReceiverComesLate(t *testing.T) {
	addr := place(t)
	h := handlerOf(t, "tcp://"+addr, gelf.Options{Delivery: delivery.Options{
		OnError: func(error) {}, Backoff: jitter.Backoff{Base: time.Millisecond, Max: 10 * time.Millisecond},
	}})
	log := slog.New(h)
	for i := range 3 {
		log.Info("m", "n", i)
		refused := func() uint64 { return h.Stats().Endpoints[0].Errors[delivery.CauseRefused] }
		before := uint64(0)
		wait(t, func() bool { return len(h.Stats().Endpoints) == 1 && refused() > before+3 }, func() string { return fmt.Sprintf("%+v", h.Stats()) })
		node, err := gelfd.ListenTCP(addr, gelfd.TCPOptions{})
		if err != nil {
			t.Fatal(err)
		}
		flushed(t, h)
		if err := node.Wait(t.Context(), 1); err != nil {
			t.Error(err)
		}
		node.Close()
	}
	if s := h.Stats(); s.Delivered != 3 || s.Dropped != 0 {
		t.Errorf("%+v", s)
	}
}
