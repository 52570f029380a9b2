package syslog

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/fake/flowlb"
	"github.com/wholelog/wholelog/internal/fake/loopback"
	"github.com/wholelog/wholelog/internal/fake/syslogd"
	"github.com/wholelog/wholelog/jitter"
)

// A balancer that hashes flows leaves a sender with one socket at one of the nodes behind its address. From a handler's sixteen ports
// every node that any of them is hashed to has its part, each port as much as the others, and every message is whole.
func TestFlowsReachNodesBehindABalancer(t *testing.T) {
	const each = 20
	for flows, least := range map[int]int{1: 1, defaultFlows: 2} {
		var nodes []*syslogd.Server
		var targets []netip.AddrPort
		for range 3 {
			s, _, _ := listen(t, "udp", "", syslogd.Options{}, Options{})
			nodes, targets = append(nodes, s), append(targets, netip.MustParseAddrPort(s.Addr()))
		}
		lb, err := flowlb.Listen([]string{"127.0.0.1:0"}, targets, flowlb.Options{})
		if err != nil {
			t.Fatal(err)
		}
		h := dialled(t, "udp://"+lb.VIPs()[0].String(), Options{Flows: flows})
		got := func() (sum uint64) {
			for _, s := range nodes {
				sum += s.Stats().Messages
			}
			return sum
		}
		for i := range each * flows {
			if err := h.Handle(t.Context(), info(fmt.Sprint(i))); err != nil {
				t.Fatal(err)
			}
			if i%10 == 9 { // a buffer that overruns would prove nothing
				eventually(t, func() bool { return got() == uint64(i+1) })
			}
		}
		if err := h.Flush(within(t)); err != nil {
			t.Fatal(err)
		}
		st := lb.Stats()
		reached, opened := 0, uint64(0)
		for i, s := range nodes {
			ports := st.UDPFlows[targets[i]]
			opened += ports
			if ports > 0 {
				reached++
			}
			if n := s.Stats().Messages; n != ports*each || len(s.Rejects()) > 0 {
				t.Errorf("%d messages by %d ports of %d; %v", n, ports, flows, s.Rejects())
			}
		}
		if opened != uint64(flows) || reached < least { // sixteen ports at one of three nodes: once in ten million runs
			t.Errorf("%d ports reach %d nodes", opened, reached)
		}
		if s := h.Stats(); s.Delivered != uint64(each*flows) || s.Dropped != 0 {
			t.Errorf("%+v", s)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		lb.Close()
	}
}

// What is sent while nobody listens is lost but for what the refusals bring back, and the equation holds. When the receiver is back,
// every record arrives.
func TestUDPReceiverAway(t *testing.T) {
	addr, err := loopback.Addr()
	if err != nil {
		t.Fatal(err)
	}
	first, target, _ := listen(t, "udp", addr, syslogd.Options{}, Options{})
	h := dialled(t, target, Options{Sequence: true, Delivery: delivery.Options{
		Backoff: jitter.Backoff{Base: time.Millisecond, Max: 10 * time.Millisecond}, OnError: func(error) {},
	}})
	log := slog.New(h)
	for i := range 2 * defaultFlows { // all flows exist
		log.Info("m")
		if err := first.Wait(within(t), i+1); err != nil {
			t.Fatal(err)
		}
	}
	first.Close()
	refused := func() uint64 { return h.Stats().Endpoints[0].Errors[delivery.CauseRefused] }
	logged := uint64(2 * defaultFlows)
	eventually(t, func() bool {
		log.Info("m")
		logged++
		return refused() >= 3
	})
	second, _, _ := listen(t, "udp", addr, syslogd.Options{}, Options{})
	before := logged
	eventually(t, func() bool {
		log.Info("m")
		logged++
		return second.Stats().Messages >= 50
	})
	if err := h.Flush(within(t)); err != nil {
		t.Fatal(err)
	}
	s := h.Stats()
	if s.Accepted != logged || s.Delivered != logged || s.Dropped != 0 || s.Pending != 0 {
		t.Errorf("of %d: %+v", logged, s)
	}
	// Everything that was logged after its return arrives, once.
	for seq := before + 1; seq <= logged; seq++ {
		want := fmt.Sprint(seq)
		times := func() (n int) {
			for _, m := range second.Messages() {
				if got, _ := m.Param("meta", "sequenceId"); got == want {
					n++
				}
			}
			return n
		}
		eventually(t, func() bool { return times() > 0 })
		if n := times(); n != 1 {
			t.Errorf("%s arrived %d times", want, n)
		}
	}
	if r := second.Rejects(); len(r) > 0 {
		t.Error(r)
	}
}

// Each size up to the largest that there can be arrives in one datagram as it was made, and a longer text is cut.
func TestUDPSizes(t *testing.T) {
	s, target, o := listen(t, "udp", "", syslogd.Options{Limit: maxMaxSizeUDP}, Options{MaxSize: maxMaxSizeUDP})
	h := dialled(t, target, o)
	for i, n := range []int{1, 480, 1432, 1473, 8192, 65_000, 70_000} {
		if err := h.Handle(t.Context(), info(strings.Repeat("x", n))); err != nil {
			t.Fatal(err)
		}
		if err := s.Wait(within(t), i+1); err != nil {
			t.Fatal(err)
		}
		m := s.Messages()[i]
		if size := len(m.Raw); n < 70_000 && (size != len(head)+len("- ")+n) || n == 70_000 && (size > maxMaxSizeUDP || size < maxMaxSizeUDP-markRoom) {
			t.Errorf("%d arrive as %d bytes", n, size)
		}
	}
	if err := h.Flush(within(t)); err != nil {
		t.Fatal(err)
	}
	if st := h.Stats(); st.Delivered != 7 || st.Truncated != 1 || len(s.Rejects()) > 0 {
		t.Errorf("%+v, %v", st, s.Rejects())
	}
}

// In Sync mode a log call learns that its address refuses, as far as the kernel tells, and the next call is not held up by it.
func TestUDPSyncRefused(t *testing.T) {
	addr, err := loopback.Addr()
	if err != nil {
		t.Fatal(err)
	}
	h := dialled(t, "udp://"+addr, Options{Delivery: delivery.Options{Sync: true, SyncTimeout: time.Minute, OnError: func(error) {}}})
	failed := 0
	eventually(t, func() bool {
		if h.Handle(context.Background(), info("m")) != nil {
			failed++
		}
		return failed > 0
	})
	s := h.Stats()
	if s.Reasons[delivery.ReasonSyncFailed] != uint64(failed) || s.Accepted != s.Delivered+s.Dropped || s.Endpoints[0].Errors[delivery.CauseRefused] == 0 {
		t.Errorf("%d failed: %+v", failed, s)
	}
}
