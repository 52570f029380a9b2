package gelf_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/gelf"
	"github.com/wholelog/wholelog/internal/fake/gelfd"
	"github.com/wholelog/wholelog/internal/yardstick"
	"github.com/wholelog/wholelog/resolve"
)

// addresses lists where nodes listen.
func addresses(all ...*gelfd.HTTPServer) (list []string) {
	for _, s := range all {
		list = append(list, s.Addr().String())
	}
	return list
}

// R45, R47: 3134 records through one handler to three nodes, one request each, over sockets: no node's share is small, and
// every record arrives once. TestR45_HTTPThirds has the exact counts: there no machine is so busy that a node seems to be stuck.
func TestR45_HTTPShares(t *testing.T) {
	const n = 3134
	all := []*gelfd.HTTPServer{httpNode(t, gelfd.HTTPOptions{}), httpNode(t, gelfd.HTTPOptions{}), httpNode(t, gelfd.HTTPOptions{})}
	h := handlerOf(t, "http://graylog.test:12202", gelf.Options{
		Resolve:  resolve.Options{Resolver: resolve.Static(addresses(all...)...)},
		Delivery: delivery.Options{RecordRate: 2000, MaxBlock: time.Minute},
	})
	log := slog.New(h)
	for i := range n {
		log.Info("m", "n", i)
	}
	flushed(t, h)
	seen := map[any]int{}
	for i, s := range all {
		requests, messages := len(s.Requests()), s.Messages()
		if requests != len(messages) || requests < n/6 {
			t.Errorf("node %d: %d requests, %d messages of %d", i, requests, len(messages), n)
		}
		for _, m := range messages {
			seen[m.Fields["n"]]++
		}
		if s.Conns() > 8 {
			t.Errorf("node %d: %d connections", i, s.Conns())
		}
	}
	if s := h.Stats(); len(seen) != n || s.Delivered != n || s.Resent != 0 || s.Dropped != 0 {
		t.Errorf("%d different records arrived; %+v", len(seen), s)
	}
}

// R46, R50: one of three nodes is killed and started again three times while records flow. Every record that a server said yes to is
// there, every other arrives elsewhere; none is lost, and what arrives twice was counted as sent again.
func TestR46_HTTPNodeKilledAndRestarted(t *testing.T) {
	for _, bulk := range []bool{false, true} {
		t.Run(fmt.Sprintf("bulk=%v", bulk), func(t *testing.T) {
			t.Parallel()
			const n = 4000
			o := gelfd.HTTPOptions{Bulk: bulk}
			victim, err := gelfd.ListenHTTP(place(t), o)
			if err != nil {
				t.Fatal(err)
			}
			all := []*gelfd.HTTPServer{victim, httpNode(t, o), httpNode(t, o)}
			t.Cleanup(func() {
				for _, s := range all {
					s.Close()
				}
			})
			h := handlerOf(t, "http://graylog.test:12202", gelf.Options{
				Bulk:     bulk,
				Resolve:  resolve.Options{Resolver: resolve.Static(addresses(all...)...)},
				Delivery: quickly(delivery.Options{MaxBlock: time.Minute, Tries: 1000}),
			})
			log := slog.New(h)
			for i := range n {
				log.Info("m", "n", i)
				if i%1000 != 499 {
					continue
				}
				before := len(victim.Messages())
				wait(t, func() bool { return len(victim.Messages()) > before || h.Stats().Pending == 0 }, func() string { return fmt.Sprintf("%+v", h.Stats()) })
				victim.Close()
				for j := range 100 { // while it is away
					log.Info("m", "n", n+i/1000*100+j)
				}
				if victim, err = gelfd.ListenHTTP(victim.Addr().String(), o); err != nil {
					t.Fatal(err)
				}
				all = append(all, victim)
			}
			flushed(t, h)
			if err := h.Close(); err != nil {
				t.Error(err)
			}
			const sent = n + n/1000*100
			seen, total := map[any]int{}, uint64(0)
			for _, s := range all {
				for _, m := range s.Messages() {
					seen[m.Fields["n"]]++
					total++
				}
			}
			s := h.Stats()
			if len(seen) != sent || s.Delivered != sent || s.Dropped != 0 || total > sent+s.Resent {
				t.Errorf("%d of %d arrived, %d in all; %+v", len(seen), sent, total, s)
			}
		})
	}
}

// A message too large for datagrams goes by the fallback, whole, to the fallback's own host; the others stay on UDP.
func TestFallbackByHTTP(t *testing.T) {
	for _, inside := range []bool{false, true} {
		for _, x := range []struct {
			name                string
			o                   gelf.Options
			text                string
			diverted, truncated uint64
			dropped             uint64
		}{
			{"fits", gelf.Options{}, yardstick.Text(6000, 1), 0, 0, 0},
			{"plain", gelf.Options{}, yardstick.Text(30_000, 1), 1, 0, 0},
			{"as gzip", gelf.Options{}, yardstick.Text(150_000, 1), 1, 0, 0},
			{"as gzip, though datagrams are not compressed", gelf.Options{Compression: gelf.CompressNone}, yardstick.Text(150_000, 1), 1, 0, 0},
			{"cut there too", gelf.Options{}, yardstick.Text(1_000_000, 1), 1, 1, 0},
			{"dropped there", gelf.Options{Oversize: gelf.OversizeDrop}, yardstick.Text(1_000_000, 1), 1, 0, 1},
		} {
			t.Run(fmt.Sprintf("%s, Sync=%v", x.name, inside), func(t *testing.T) {
				t.Parallel()
				datagrams, requests := nodes(t, 1)[0], httpNode(t, gelfd.HTTPOptions{Auth: "Basic dTpw"})
				o := x.o
				o.ChunkSize = 64 // 6656 bytes in 128 chunks
				o.Fallback = "http://u:p@" + requests.Addr().String()
				o.Delivery = quickly(delivery.Options{Sync: inside, SyncTimeout: 30 * time.Second})
				h := handlerOf(t, "udp://"+datagrams.Addr().String(), o)
				log := slog.New(h)
				log.Info("small")
				log.Info(x.text)
				log.Info("small")
				flushed(t, h)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if err := datagrams.Wait(ctx, 3-int(x.diverted)); err != nil {
					t.Error(err)
				}
				s := h.Stats()
				if s.Diverted != x.diverted || s.Truncated != x.truncated || s.Dropped != x.dropped || s.Reasons[delivery.ReasonTooLarge] != x.dropped || s.Delivered != 3-x.dropped {
					t.Errorf("%+v", s)
				}
				messages := requests.Messages()
				if len(messages) != int(x.diverted-x.dropped) {
					t.Fatalf("%d messages by HTTP", len(messages))
				}
				for _, m := range messages {
					if got, _ := m.Fields["message"].(string); (got == x.text) != (x.truncated == 0) && m.Fields["full_message"] != x.text {
						t.Errorf("%.50s… of %d bytes, %v", got, len(got), m.Fields["truncated"])
					}
				}
			})
		}
	}
}

// Over TCP a message of megabytes is whole, and one that is too long for a frame is cut there.
func TestFallbackByTCP(t *testing.T) {
	datagrams := nodes(t, 1)[0]
	frames, err := gelfd.ListenTCP("", gelfd.TCPOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { frames.Close() })
	h := handlerOf(t, "udp://"+datagrams.Addr().String(), gelf.Options{
		Compression: gelf.CompressNone, Fallback: "tcp://" + frames.Addr().String(),
	})
	log := slog.New(h)
	texts := []string{yardstick.Text(200_000, 1), yardstick.Text(1_000_000, 2), yardstick.Text(3_000_000, 3)}
	for _, text := range texts {
		log.Info(text)
	}
	log.Info("small")
	flushed(t, h)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := errors.Join(frames.Wait(ctx, 3), datagrams.Wait(ctx, 1)); err != nil {
		t.Fatal(err)
	}
	for i, m := range frames.Messages() {
		want := strings.TrimSpace(texts[i]) // as the server does
		if got, _ := m.Fields["full_message"].(string); (got == want) != (i < 2) || !strings.HasPrefix(want, got) || i == 2 && len(m.Raw) != 2<<20 {
			t.Errorf("message %d: %.50s… of %d bytes", i, got, len(m.Raw))
		}
	}
	if s := h.Stats(); s.Diverted != 3 || s.Truncated != 1 || s.Delivered != 4 || s.Dropped != 0 {
		t.Errorf("%+v", s)
	}
}

// While the fallback is down, datagrams go on; what it is for waits, and arrives when it is back. It is looked up only when needed.
func TestFallbackIsDown(t *testing.T) {
	datagrams := nodes(t, 1)[0]
	addr := place(t)
	first, err := gelfd.ListenHTTP(addr, gelfd.HTTPOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	h := handlerOf(t, "udp://"+datagrams.Addr().String(), gelf.Options{ChunkSize: 64, Fallback: "http://" + addr, Delivery: quickly(delivery.Options{})})
	log := slog.New(h)
	log.Info("small")
	flushed(t, h)
	if s := h.Stats(); len(s.Endpoints) != 1 {
		t.Errorf("the fallback is looked up before it is needed: %+v", s.Endpoints)
	}
	first.Close()
	log.Info(yardstick.Text(30_000, 1))
	for range 10 {
		log.Info("small")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := datagrams.Wait(ctx, 11); err != nil {
		t.Error(err)
	}
	wait(t, func() bool {
		s := h.Stats()
		return s.Delivered == 11 && len(s.Endpoints) == 2 && s.Endpoints[1].Errors[delivery.CauseRefused] > 1
	}, func() string { return fmt.Sprintf("%+v", h.Stats()) })
	if s := h.Stats(); s.Pending != 1 || s.Diverted != 1 || s.Dropped != 0 {
		t.Errorf("%+v", s)
	}
	second, err := gelfd.ListenHTTP(addr, gelfd.HTTPOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	flushed(t, h)
	if len(second.Messages()) != 1 || h.Stats().Delivered != 12 {
		t.Errorf("%+v", h.Stats())
	}
}

// R42: when the name's answer changes, requests follow without a restart.
func TestR42_HTTPFollowsTheName(t *testing.T) {
	a, b := httpNode(t, gelfd.HTTPOptions{}), httpNode(t, gelfd.HTTPOptions{})
	r := &switching{to: a.Addr().String()}
	h := handlerOf(t, "http://graylog.test:12202", gelf.Options{
		Resolve: resolve.Options{Resolver: r, Refresh: 100 * time.Millisecond}, Delivery: quickly(delivery.Options{}),
	})
	log := slog.New(h)
	log.Info("first")
	flushed(t, h)
	if len(a.Messages()) != 1 {
		t.Errorf("%+v", h.Stats())
	}
	r.set(b.Addr().String())
	sent := 1
	wait(t, func() bool {
		log.Info("later")
		flushed(t, h)
		sent++
		return len(b.Messages()) > 0
	}, func() string { return fmt.Sprintf("%+v", h.Stats()) })
	if got := len(a.Messages()) + len(b.Messages()); got != sent || h.Stats().Resent != 0 {
		t.Errorf("%d of %d arrived; %+v", got, sent, h.Stats())
	}
}

// switching is a resolver with one address, which changes.
type switching struct {
	mu sync.Mutex
	to string
}

func (s *switching) set(to string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.to = to
}

func (s *switching) Resolve(context.Context) (resolve.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, err := netip.ParseAddrPort(s.to)
	return resolve.Answer{Endpoints: []resolve.Endpoint{{Addr: a}}}, err
}
