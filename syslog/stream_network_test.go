package syslog

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/fake/authority"
	"github.com/wholelog/wholelog/internal/fake/loopback"
	"github.com/wholelog/wholelog/internal/fake/syslogd"
	"github.com/wholelog/wholelog/resolve"
)

// The first message after the peer closed an idle connection arrives, though the kernel would take it for the dead one.
func TestFirstMessageAfterAnIdleClose(t *testing.T) {
	for _, scheme := range []string{"tcp", "tls", "unix"} {
		s, target, o := listen(t, scheme, "", syslogd.Options{}, Options{Delivery: quick})
		h := dialled(t, target, o)
		for i := 1; i <= 5; i++ {
			slog.New(h).Info("after a pause")
			if err := errors.Join(h.Flush(within(t)), s.Wait(within(t), i)); err != nil {
				t.Fatal(err)
			}
			s.Hangup()
			eventually(t, func() bool { return refusals(h, delivery.CausePeerClosed) == uint64(i) })
		}
		if st := h.Stats(); st.Delivered != 5 || st.Resent != 0 || st.Reconnects != 4 || len(s.Messages()) != 5 {
			t.Errorf("%s: %+v", scheme, st)
		}
	}
}

// In Sync mode the log call itself goes on to the next address: no call fails, whether the end was noticed in time or not.
func TestSyncAfterAnIdleClose(t *testing.T) {
	var nodes []*syslogd.Server
	for range 2 {
		s, _, _ := listen(t, "tcp", "", syslogd.Options{}, Options{})
		nodes = append(nodes, s)
	}
	h := dialled(t, "tcp://logs.example.test:514", Options{Resolve: over(nodes...), Delivery: delivery.Options{
		Sync: true, SyncTimeout: time.Minute, OnError: func(error) {},
	}})
	const n = 20
	for i := range n {
		if err := h.Handle(t.Context(), info(fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
		eventually(t, func() bool { return nodes[0].Stats().Messages+nodes[1].Stats().Messages == uint64(i+1) })
		nodes[0].Hangup() // of both, a call might find neither
	}
	if s := h.Stats(); s.Delivered != n || s.Dropped != 0 {
		t.Errorf("%+v", s)
	}
}

// A connection that has reached its age is replaced between messages; nothing is lost, nothing comes twice, and order stays.
func TestConnAge(t *testing.T) {
	for _, scheme := range []string{"tcp", "tls"} {
		s, target, o := listen(t, scheme, "", syslogd.Options{}, Options{ConnAge: 20 * time.Millisecond})
		h := dialled(t, target, o)
		log, n := slog.New(h), 0
		eventually(t, func() bool {
			log.Info(fmt.Sprint(n))
			n++
			return len(s.Stats().Conns) >= 5
		})
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		if err := s.Wait(within(t), n); err != nil {
			t.Error(err)
		}
		for i, m := range s.Messages() {
			if m.Text != fmt.Sprint(i) {
				t.Fatalf("%s: %s at %d", scheme, m.Text, i)
			}
		}
		if st := h.Stats(); st.Delivered != uint64(n) || st.Resent != 0 || st.Reconnects != 0 || len(st.Endpoints[0].Errors) > 0 {
			t.Errorf("%s: %d of %d, %+v", scheme, len(s.Messages()), n, st)
		}
		eventually(t, func() bool { c := s.Stats().Conns; return !c[len(c)-1].Open })
		for _, c := range s.Stats().Conns {
			if c.Err != nil {
				t.Errorf("%s: not an orderly end: %+v", scheme, c)
			}
		}
	}
}

// R46, R48: a receiver that accepts and reads nothing holds nobody up: no log call fails or waits for it alone, the others take what it
// does not, Flush ends with its time, and the write deadline takes back what its kernel has not acknowledged.
func TestR46_R48_StalledReceiver(t *testing.T) {
	deaf, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer deaf.Close() // its kernel accepts
	var nodes []*syslogd.Server
	for range 2 {
		s, _, _ := listen(t, "tcp", "", syslogd.Options{Discard: true}, Options{})
		nodes = append(nodes, s)
	}
	r := resolve.Options{Resolver: resolve.Static(nodes[0].Addr(), nodes[1].Addr(), deaf.Addr().String())}
	h := dialled(t, "tcp://logs.example.test:514", Options{Resolve: r, Delivery: delivery.Options{
		QueueBytes: 1 << 20, MaxBlock: time.Minute, SendTimeout: time.Second, OnError: func(error) {},
	}})
	row := func() (e delivery.EndpointStats) {
		for _, e = range h.Stats().Endpoints {
			if e.Addr.String() == deaf.Addr().String() {
				return e
			}
		}
		return e
	}
	log, text, n := slog.New(h), strings.Repeat("x", 1000), 0
	for row().PendingBytes == 0 || n < 10_000 { // until something waits for the deaf one, however much its kernel takes
		log.Info(text)
		if n++; n > 1_000_000 {
			t.Fatal("it takes everything")
		}
	}
	if err := h.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := h.Stats()
	if s.Delivered != uint64(n) || s.Dropped != 0 || row().Errors[delivery.CauseTimeout] == 0 {
		t.Errorf("of %d: %+v", n, s)
	}
	got := func() uint64 { return nodes[0].Stats().Messages + nodes[1].Stats().Messages }
	want := uint64(n) - row().Delivered // what its kernel acknowledged counts as delivered, and is lost with it
	eventually(t, func() bool { return got() >= want })
	t.Logf("of %d messages the deaf receiver's kernel acknowledged %d, the others have %d", n, row().Delivered, got())
}

// R38, R39, R50: three receivers are killed and started again in turn while nothing is on its way to them. After each round the
// sender's equation and the sum of the receivers' own counts agree to the message.
func TestR38_R39_R50_ReceiversRestarted(t *testing.T) {
	for _, scheme := range []string{"tcp", "tls"} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			o := Options{Sequence: true, Delivery: quick}
			received := syslogd.Options{Framing: syslogd.Counted}
			if scheme == "tls" {
				ca := authority.New(t)
				received.TLS = certified(ca.Issue(time.Hour, "logs.example.test"))
				o.TLSConfig = &tls.Config{RootCAs: ca.Pool()}
			}
			var addrs []string
			for range 3 {
				addr, err := loopback.Addr()
				if err != nil {
					t.Fatal(err)
				}
				addrs = append(addrs, addr)
			}
			o.Resolve.Resolver = resolve.Static(addrs...)
			h := dialled(t, scheme+"://logs.example.test:514", o)
			var all []*syslogd.Server // the running ones are the last at their addresses
			running := make([]*syslogd.Server, 3)
			seen := func() (sum int) {
				for _, s := range all {
					sum += len(s.Messages())
				}
				return sum
			}
			log, logged := slog.New(h), 0
			for round := range 10 {
				i := round % 3
				if running[i] != nil {
					running[i].Close()
				}
				for range 100 {
					log.Info("m")
					logged++
				}
				s, err := syslogd.Listen("tcp", addrs[i], received)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { s.Close() })
				all, running[i] = append(all, s), s
				if err := h.Flush(within(t)); err != nil {
					t.Fatalf("round %d: %v; %+v", round, err, h.Stats())
				}
				eventually(t, func() bool { return seen() >= logged })
				if s := h.Stats(); seen() != logged || s.Accepted != uint64(logged) || s.Delivered != uint64(logged) || s.Dropped+s.Pending+s.Unconfirmed != 0 {
					t.Fatalf("round %d: %d of %d have arrived, %+v", round, seen(), logged, s)
				}
			}
			if err := h.Close(); err != nil {
				t.Error(err)
			}
			for _, s := range all {
				if r := s.Rejects(); len(r) > 0 {
					t.Error(r)
				}
			}
		})
	}
}
