//go:build linux

package interop

import (
	"fmt"
	"log/slog"
	stdsyslog "log/syslog"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/jitter"
	"github.com/wholelog/wholelog/resolve"
	"github.com/wholelog/wholelog/syslog"
)

// tally counts numbered messages of senders by sender and number, from the lives of one receiver or from several.
type tally struct {
	padding string
	times   map[string][]int
}

// newTally expects the numbers from 0 up to records of each sender.
func newTally(records int, padding string, senders ...string) *tally {
	c := &tally{padding, map[string][]int{}}
	for _, s := range senders {
		c.times[s] = make([]int, records)
	}
	return c
}

// text is a message as a sender logs it.
func (c *tally) text(sender string, number int) string {
	return fmt.Sprintf("%s %06d %s", sender, number, c.padding) // all have one length
}

// add takes lines, none of which may be anything else than a whole message that was logged.
func (c *tally) add(t *testing.T, lines [][]byte) {
	t.Helper()
	for _, line := range lines {
		f := strings.Fields(string(line))
		if len(f) != 3 || f[2] != c.padding {
			t.Errorf("a line that nobody logged: %.200q", line)
			continue
		}
		times, n := c.times[f[0]], -1
		if i, err := strconv.Atoi(f[1]); err == nil && fmt.Sprintf("%06d", i) == f[1] {
			n = i
		}
		if n < 0 || n >= len(times) {
			t.Errorf("a message that nobody logged: %.200q", line)
			continue
		}
		times[n]++
	}
}

// missing is how many messages of a sender never arrived, and twice how often others came again.
func (c *tally) missing(sender string) (missing, twice int) {
	for _, n := range c.times[sender] {
		if n == 0 {
			missing++
		} else {
			twice += n - 1
		}
	}
	return missing, twice
}

// has says whether a message has arrived.
func (c *tally) has(sender string, number int) bool { return c.times[sender][number] > 0 }

// pace calls f with the numbers up to records, 5 000 a second at most, and keeps sent at what was done. Before a number that is in
// gates it waits for that one to open.
func pace(records int, sent *atomic.Int64, gates map[int]chan struct{}, f func(n int)) {
	const each = 10 * time.Millisecond
	tick := time.NewTicker(each)
	defer tick.Stop()
	for n := range records {
		if n%int(5000*each/time.Second) == 0 {
			<-tick.C
		}
		if gate := gates[n]; gate != nil {
			<-gate
		}
		f(n)
		sent.Add(1)
	}
}

// unread is how many bytes wait in the kernel for whoever listens on port, on the connection from peer and on all others.
func unread(t *testing.T, port string, peer netip.AddrPort) (ours, others int) {
	t.Helper()
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		t.Fatal(err)
	}
	local, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(table)) {
		f := strings.Fields(line) // number, local, remote, state, tx:rx
		if len(f) < 5 || f[3] == listening || !strings.HasSuffix(f[1], fmt.Sprintf(":%04X", local)) {
			continue
		}
		_, rx, _ := strings.Cut(f[4], ":")
		queued, err := strconv.ParseInt(rx, 16, 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if strings.HasSuffix(f[2], fmt.Sprintf(":%04X", peer.Port())) {
			ours += int(queued)
		} else {
			others += int(queued)
		}
	}
	return ours, others
}

// listening is a state in /proc/net/tcp.
const listening = "0A"

// rsyslog is killed and started again three times in the middle of a stream: the first time when it has not read for a while, then out
// of full activity. Beside ours, log/syslog sends as much to the same process; it is asked again until it reports no error.
//
// What is missing of ours is at most what the dead had not read, or read and not yet written. That is known: the kernel tells what was
// unread, and from then on the counters tell what it acknowledged. log/syslog loses what was on its way besides.
func TestRsyslogKilledThreeTimes(t *testing.T) {
	const (
		records = 20_000
		inHand  = 128<<10 + 8<<10 // imtcp's buffer, and a message that it has begun to put together
		outage  = 1000            // records that are logged until it is there again
	)
	kills := []struct{ at, stopped, killed int }{
		{100, 100, 3100}, // while a connection is young, the window that its receiver offers is small
		{7000, 7500, 7500},
		{14_000, 14_500, 14_500},
	}
	gates := map[int]chan struct{}{}
	for _, k := range kills {
		gates[k.at], gates[k.killed+outage] = make(chan struct{}), make(chan struct{})
	}
	c := newTally(records, filler(250), "ours", "control")
	r := newRsyslog(t)
	r.template = "msg"
	r.start(t)

	var last atomic.Pointer[resolve.Choice]
	h, _ := newSyslog(t, "tcp://127.0.0.1:"+r.tcp, syslog.Options{
		Resolve:  resolve.Options{Trace: func(c resolve.Choice) { last.Store(&c) }},
		Delivery: delivery.Options{Backoff: jitter.Backoff{Base: 5 * time.Millisecond, Max: 50 * time.Millisecond}},
	})
	control, err := stdsyslog.Dial("tcp", "127.0.0.1:"+r.tcp, stdsyslog.LOG_INFO|stdsyslog.LOG_LOCAL0, "control")
	if err != nil {
		t.Fatal(err)
	}
	var ours, theirs, refused atomic.Int64
	var senders sync.WaitGroup
	senders.Go(func() {
		log := slog.New(h)
		pace(records, &ours, gates, func(n int) { log.Info(c.text("ours", n)) })
	})
	senders.Go(func() {
		pace(records, &theirs, gates, func(n int) {
			for control.Info(c.text("control", n)) != nil {
				refused.Add(1)
				<-time.After(time.Millisecond)
			}
		})
	})
	arrived := func(n int) func() bool {
		return func() bool {
			c.add(t, r.lines(t, 0))
			return c.has("ours", n) && c.has("control", n)
		}
	}
	failures := func() (n uint64) {
		for _, e := range h.Stats().Endpoints {
			for _, times := range e.Errors {
				n += times
			}
		}
		return n
	}
	most := 0
	for _, k := range kills {
		until(t, "it has what there is", arrived(k.at-1))
		close(gates[k.at])
		until(t, "both send", func() bool { return int(min(ours.Load(), theirs.Load())) >= k.stopped })
		r.halt(t)
		until(t, "it falls behind", func() bool { return int(ours.Load()) >= k.killed })
		before := failures()
		acknowledged := h.Stats().Delivered // first: what is acknowledged in between counts twice, and never not at all
		choice := *last.Load()
		left, others := unread(t, r.tcp, choice.Local)
		r.stop(t, os.Kill)
		until(t, "the end of the connection is noticed", func() bool { return failures() > before })
		late := int(h.Stats().Delivered - acknowledged)
		size := choice.Bytes / choice.Records
		most += (left+inHand)/size + late
		c.add(t, r.lines(t, 0))
		t.Logf("killed after %d messages, with %d bytes of ours unread and %d of the control's; %d of ours were acknowledged just then",
			ours.Load(), left, others, late)
		r.start(t)
		close(gates[k.killed+outage])
	}
	senders.Wait()
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if err := control.Close(); err != nil {
		t.Error(err)
	}
	until(t, "the last messages arrive", arrived(records-1))
	s := h.Stats()
	missing, twice := c.missing("ours")
	silent, _ := c.missing("control")
	t.Logf("ours:       of %d records %d are missing (%d at most) and %d came twice; %d were sent again", records, missing, most, twice, s.Resent)
	t.Logf("log/syslog: of %d records %d are missing, none of which it reported; %d calls returned an error", records, silent, refused.Load())
	if s.Accepted != records || s.Delivered != records || s.Dropped+s.Pending+s.Unconfirmed != 0 || s.Waits != 0 || s.Reconnects < 3 {
		t.Errorf("%+v", s)
	}
	if missing > most || twice > int(s.Resent) {
		t.Errorf("%d are missing, want %d at most; %d came twice, %d were sent again", missing, most, twice, s.Resent)
	}
	if missing > silent {
		t.Errorf("%d of ours are missing, and %d of the control's", missing, silent)
	}
}
