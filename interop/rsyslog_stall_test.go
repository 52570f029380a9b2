//go:build linux

package interop

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/jitter"
	"github.com/wholelog/wholelog/resolve"
	"github.com/wholelog/wholelog/syslog"
)

// One of three rsyslog stops reading (SIGSTOP). No log call waits, the other two take over, and of everything that was accepted the
// place is known: at one of the two, or in the kernel of the one that does not read, by the counters. When it goes on, what it had
// is there as well, and it gets its share again.
func TestRsyslogStalledOneOfThree(t *testing.T) {
	const first, second, third, most = 300, 9000, 3000, 30_000
	c := newTally(most, filler(250), "ours")
	var nodes []*rsyslog
	var addrs []string
	for range 3 {
		r := newRsyslog(t)
		r.template = "msg"
		r.start(t)
		nodes, addrs = append(nodes, r), append(addrs, "127.0.0.1:"+r.tcp)
	}
	h, said := newSyslog(t, "tcp://logs.test:514", syslog.Options{
		Resolve: resolve.Options{Resolver: resolve.Static(addrs...), Check: resolve.TCPCheck(0), CheckEvery: 200 * time.Millisecond},
		Delivery: delivery.Options{
			SendTimeout: time.Second, // after which what it did not take goes elsewhere
			Backoff:     jitter.Backoff{Base: 10 * time.Millisecond, Max: 100 * time.Millisecond},
		},
	})
	log, logged := slog.New(h), 0
	send := func(n int) {
		for range n {
			log.Info(c.text("ours", logged))
			logged++
		}
	}
	lines := make([]int, len(nodes))
	read := func(only ...int) {
		for _, i := range only {
			all := nodes[i].lines(t, 0)
			lines[i] += len(all)
			c.add(t, all)
		}
	}
	missing := func() int {
		n, _ := c.missing("ours")
		return n - (most - logged)
	}

	send(first) // few: while a connection is young, the window that its receiver offers is small
	until(t, "all arrives", func() bool { read(0, 1, 2); return missing() == 0 })
	before := slices.Clone(lines)

	nodes[0].halt(t)
	send(second)
	flushSyslog(t, h)
	// All is settled. What the stalled one's kernel acknowledged is delivered, and not yet written; everything else is at the others.
	held := int(endpoint(h, addrs[0]).Delivered) - before[0]
	until(t, "everything else arrives", func() bool { read(1, 2); return missing() <= held })
	if read(0); missing() != held || lines[0] != before[0] {
		t.Errorf("%d are missing, want the %d that the stalled one holds; it wrote %d", missing(), held, lines[0]-before[0])
	}
	t.Logf("of %d records the stalled one's kernel has %d, the others wrote %d and %d", second, held, lines[1]-before[1], lines[2]-before[2])

	nodes[0].signal(t, syscall.SIGCONT)
	until(t, "what it held is written", func() bool { read(0, 1, 2); return missing() == 0 })
	back := endpoint(h, addrs[0]).Delivered
	until(t, "it is used again", func() bool { send(30); return endpoint(h, addrs[0]).Delivered > back || logged >= most-third })
	send(third)
	until(t, "all arrives", func() bool { read(0, 1, 2); return missing() == 0 })
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	s := h.Stats()
	_, twice := c.missing("ours")
	t.Logf("%d records, none is missing, %d came twice, %d were sent again; lines %v", logged, twice, s.Resent, lines)
	if s.Accepted != uint64(logged) || s.Delivered != s.Accepted || s.Dropped+s.Pending+s.Unconfirmed+s.Waits != 0 || twice > int(s.Resent) {
		t.Errorf("%d records, %d came twice; %+v", logged, twice, s)
	}
	if endpoint(h, addrs[0]).Delivered <= back || len(endpoint(h, addrs[0]).Errors) == 0 ||
		!said.of(func(err error) bool { return strings.Contains(err.Error(), addrs[0]) }) {
		t.Errorf("%+v; told: %v", s, said.errors)
	}
}

// endpoint is what the counters say of an address.
func endpoint(h *syslog.Handler, addr string) delivery.EndpointStats {
	for _, e := range h.Stats().Endpoints {
		if e.Addr == netip.MustParseAddrPort(addr) {
			return e
		}
	}
	return delivery.EndpointStats{}
}

// flushSyslog is flush for a syslog handler.
func flushSyslog(t *testing.T, h *syslog.Handler) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := h.Flush(ctx); err != nil {
		t.Fatalf("%v; %+v", err, h.Stats())
	}
}

// The only rsyslog there is stops reading, and five times as much is logged as may wait. The application goes on: no log call waits
// where it must not, and else a few do. What has no room is lost with a reason, and each record of it is told. When rsyslog goes on,
// it gets all the others.
func TestRsyslogStalledAlone(t *testing.T) {
	const records = 5000
	for _, tt := range []struct {
		overflow delivery.Overflow
		reason   delivery.Reason
		returned bool // the log call says that the record is lost
		waits    uint64
	}{
		{delivery.Block, delivery.ReasonQueueFull, true, 20}, // as long as the kernel takes something there is room now and then
		{delivery.DropNewest, delivery.ReasonQueueFull, true, 0},
		{delivery.DropOldest, delivery.ReasonEvicted, false, 0},
	} {
		t.Run(tt.overflow.String(), func(t *testing.T) {
			c := newTally(records, filler(1000), "ours")
			r := newRsyslog(t)
			r.template = "msg"
			r.start(t)
			h, said := newSyslog(t, "tcp://127.0.0.1:"+r.tcp, syslog.Options{Delivery: delivery.Options{
				QueueBytes: 1 << 20, Overflow: tt.overflow, SendTimeout: 2 * patience, // nothing is given up here
			}})
			logAt(t, h, slog.LevelInfo, c.text("ours", 0))
			flushSyslog(t, h)
			r.halt(t)
			refused := uint64(0)
			for n := 1; n < records; n++ {
				err := h.Handle(t.Context(), slog.NewRecord(time.Now(), slog.LevelInfo, c.text("ours", n), 0))
				drop, lost := errors.AsType[delivery.Drop](err)
				if err != nil && (!lost || drop.Reason != tt.reason || !errors.Is(err, delivery.ErrQueueFull)) {
					t.Fatal(err)
				}
				if lost {
					refused++
				}
			}
			s := h.Stats()
			if s.Dropped == 0 || s.Waits > tt.waits || s.Accepted != records || s.Accepted != s.Delivered+s.Dropped+s.Pending || s.PendingBytes > 1<<20 {
				t.Errorf("while it does not read: %+v", s)
			}
			r.signal(t, syscall.SIGCONT)
			flushSyslog(t, h)
			if err := h.Close(); err != nil {
				t.Error(err)
			}
			s = h.Stats()
			until(t, "the rest arrives", func() bool {
				c.add(t, r.lines(t, 0))
				missing, _ := c.missing("ours")
				return missing <= int(s.Dropped)
			})
			missing, twice := c.missing("ours")
			t.Logf("%d of %d records are missing", missing, records)
			want := map[delivery.Reason]uint64{tt.reason: uint64(missing)}
			if twice != 0 || s.Delivered != uint64(records-missing) || s.Pending+s.Resent+s.Unconfirmed != 0 || !maps.Equal(s.Reasons, want) || !maps.Equal(said.dropped(), want) {
				t.Errorf("%d are missing, %d came twice, %v are told to be lost; %+v", missing, twice, said.dropped(), s)
			}
			if tt.returned != (refused == uint64(missing)) {
				t.Errorf("%d log calls said that the record is lost", refused)
			}
		})
	}
}
