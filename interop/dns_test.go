//go:build linux

package interop

import (
	"fmt"
	"net"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/wholelog/wholelog/chunk"
	"github.com/wholelog/wholelog/gelf"
	"github.com/wholelog/wholelog/internal/fake/gelfd"
	"github.com/wholelog/wholelog/internal/yardstick"
	"github.com/wholelog/wholelog/resolve"
)

const (
	refresh = 2 * time.Second
	// effect is how soon a changed answer is followed: the interval and its jitter, and what a loaded machine may add.
	effect = refresh*12/10 + 500*time.Millisecond
)

// What began it all, with a real name server. A client that hands each chunk to the network by name loses every chunked message; with
// the same name and nodes, and chunks of the same size, ours all arrive, in equal shares.
func TestR16_StrictRotation(t *testing.T) {
	t.Parallel()
	nodes, port := listenTogether(t, 3)
	d := startDNSMasq(t, 0, addrsOf(nodes)...)
	const each, size = 30, 1420

	conn, err := net.ListenUDP("udp4", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r := d.resolver()
	id, datagrams, incomplete := uint64(0), uint64(0), uint64(0)
	for n := 1; n <= 6; n++ {
		for range each {
			id++
			payload := fmt.Sprintf(`{"host":"control","short_message":"%s"}`, filler(n*(size-chunk.HeaderSize)-40))
			parts, err := chunk.Split([]byte(payload), size, id)
			if err != nil {
				t.Fatal(err)
			}
			for part := range parts {
				to := &net.UDPAddr{IP: lookup(t, r)[0].AsSlice(), Port: int(port)}
				if _, err := conn.WriteToUDP(part, to); err != nil {
					t.Fatal(err)
				}
				datagrams++
			}
			if n > 1 {
				incomplete += uint64(min(n, len(nodes))) // each node that has a chunk waits for the others
			}
			until(t, "all datagrams arrive", func() bool { return sum(nodes).datagrams == datagrams })
		}
	}
	if got := sum(nodes); got.messages != each || got.waiting != incomplete {
		t.Errorf("control: the nodes have %+v; want the %d messages of one datagram and %d pieces", got, each, incomplete)
	}
	t.Logf("a look-up for each chunk: 0 of %d chunked messages arrived, %d of %d short ones", 5*each, each, each)

	fresh, _ := listenTogether(t, 3)
	s, h := newSender(t, d, fresh, gelf.Options{ChunkSize: size})
	for n := 1; n <= 6; n++ {
		for i := range each {
			s.send(yardstick.Text(n*(size-chunk.HeaderSize)*2, uint64(i)))
		}
	}
	s.whole(h)
	for _, share := range shares(fresh) {
		if share != 6*each/3 {
			t.Errorf("shares %v", shares(fresh))
		}
	}
	t.Logf("wholelog: %d of %d arrived, shares %v", sum(fresh).messages, s.sent, shares(fresh))
}

// An answer that changes is followed within the refresh interval, both ways, and nothing is lost meanwhile.
func TestR42_ChangingAnswer(t *testing.T) {
	t.Parallel()
	nodes, _ := listenTogether(t, 5)
	addrs := addrsOf(nodes)
	d := startDNSMasq(t, 0, addrs[:3]...)
	s, h := newSender(t, d, nodes, gelf.Options{Resolve: resolve.Options{Refresh: refresh}})
	has := func(i int) uint64 { return nodes[i].Stats().Messages }

	s.sendUntil(effect, "the first three have traffic", func() bool { return has(0) > 10 && has(1) > 10 && has(2) > 10 })
	if has(3)+has(4) > 0 {
		t.Errorf("shares %v", shares(nodes))
	}
	begin := time.Now()
	d.set(t, addrs[2:]...)
	s.sendUntil(effect, "the new ones have traffic", func() bool { return has(3) > 0 && has(4) > 0 })
	t.Logf("new addresses had traffic after %v, the interval is %v", time.Since(begin), refresh)
	// The old ones are given up when a second answer lacks them too.
	s.sendUntil(effect, "the old ones have none", func() bool { return time.Since(begin) > effect })
	old, kept := has(0)+has(1), has(2)
	s.sendUntil(effect, "100 more on the node that stayed", func() bool { return has(2) >= kept+100 })
	if now := has(0) + has(1); now != old {
		t.Errorf("%d messages went to addresses that were gone", now-old)
	}
	s.whole(h)
	t.Logf("%d messages, shares %v, slowest %v, %d look-ups", s.sent, shares(nodes), s.slowest, h.Stats().Lookups)
}

// A name that vanishes, and a server that says nothing at all: the last good answer serves, no message waits for a look-up, and a
// good answer counts again when there is one.
func TestLastGoodAnswerServes(t *testing.T) {
	for name, trouble := range map[string]struct {
		begin, end func(*testing.T, *dnsmasq, []*gelfd.Server)
	}{
		"vanishing name": {
			func(t *testing.T, d *dnsmasq, _ []*gelfd.Server) { d.set(t) },
			func(t *testing.T, d *dnsmasq, all []*gelfd.Server) { d.set(t, addrsOf(all)...) },
		},
		"silent server": {
			func(t *testing.T, d *dnsmasq, _ []*gelfd.Server) { d.signal(t, syscall.SIGSTOP) },
			func(t *testing.T, d *dnsmasq, all []*gelfd.Server) {
				d.signal(t, syscall.SIGCONT)
				d.set(t, addrsOf(all)...)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodes, _ := listenTogether(t, 4)
			d := startDNSMasq(t, 0, addrsOf(nodes[:3])...)
			s, h := newSender(t, d, nodes, gelf.Options{Resolve: resolve.Options{Refresh: time.Second}})
			s.sendUntil(patience, "all have traffic", func() bool { return slices.Min(shares(nodes[:3])) > 10 })
			if n := h.Stats().LookupErrors; n != 0 {
				t.Errorf("%d look-ups failed before the trouble", n)
			}

			trouble.begin(t, d, nodes)
			s.sendUntil(patience, "several look-ups fail", func() bool { return h.Stats().LookupErrors >= 3 })
			if age := h.Stats().AnswerAge; age < time.Second {
				t.Errorf("the answer in use is only %v old", age)
			}
			s.send(yardstick.Text(20_000, 1)) // chunked ones as well
			if got := shares(nodes[:3]); slices.Max(got)-slices.Min(got) > 1 {
				t.Errorf("shares %v", got)
			}

			trouble.end(t, d, nodes)
			s.sendUntil(patience, "the new address has traffic", func() bool { return nodes[3].Stats().Messages > 0 })
			s.whole(h)
			// A look-up may take 2 s. Who waits for one shows here.
			if s.slowest > time.Second {
				t.Errorf("a message needed %v", s.slowest)
			}
			t.Logf("%d messages, slowest %v, %d of %d look-ups failed", s.sent, s.slowest, h.Stats().LookupErrors, h.Stats().Lookups)
		})
	}
}

// Messages logged before the name server answers wait for it, within the budget, and then all leave.
func TestR43_SilentAtStart(t *testing.T) {
	t.Parallel()
	nodes, _ := listenTogether(t, 3)
	d := startDNSMasq(t, 0, addrsOf(nodes)...)
	d.signal(t, syscall.SIGSTOP)
	s, h := newSender(t, d, nodes, gelf.Options{})
	const count = 60
	for i := range count {
		s.log.Info(yardstick.Text(1000, uint64(i)))
	}
	s.sent = count
	until(t, "a look-up fails", func() bool { return h.Stats().LookupErrors > 0 })
	if st := h.Stats(); st.Pending != count || st.Delivered != 0 || st.Dropped != 0 {
		t.Errorf("while the server is silent: %+v", st)
	}
	d.signal(t, syscall.SIGCONT)
	flush(t, h)
	until(t, "all arrive", func() bool { return sum(nodes).messages == count })
	s.whole(h)
}
