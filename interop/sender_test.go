//go:build linux

package interop

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/wholelog/wholelog/gelf"
	"github.com/wholelog/wholelog/internal/fake/gelfd"
	"github.com/wholelog/wholelog/resolve"
)

// sender logs messages one at a time, each when the nodes have the one before. So none waits in a receive buffer that might be too
// small, and a message that does not arrive was lost by the sender.
type sender struct {
	t       *testing.T
	nodes   []*gelfd.Server
	log     *slog.Logger
	sent    uint64
	slowest time.Duration // from the log call to the receiver's index
}

func newSender(t *testing.T, d *dnsmasq, nodes []*gelfd.Server, o gelf.Options) (*sender, *gelf.Handler) {
	t.Helper()
	target := fmt.Sprintf("%s:%d", service, nodes[0].Addr().Port())
	o.Resolve.Resolver = resolve.DNS(target, d.resolver())
	h := newHandler(t, "udp://"+target, o)
	return &sender{t: t, nodes: nodes, log: slog.New(h)}, h
}

func (s *sender) send(text string) {
	s.t.Helper()
	begin := time.Now()
	s.log.Info(text, "number", s.sent)
	s.sent++
	until(s.t, fmt.Sprintf("message %d arrives", s.sent), func() bool { return sum(s.nodes).messages == s.sent })
	s.slowest = max(s.slowest, time.Since(begin))
}

// sendUntil sends every 2 ms until done, and fails when that is not the case within limit. It returns how long it took.
func (s *sender) sendUntil(limit time.Duration, what string, done func() bool) time.Duration {
	s.t.Helper()
	begin := time.Now()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		s.send("short")
		if time.Since(begin) > limit {
			s.t.Fatalf("not within %v: %s", limit, what)
		}
		<-tick.C
	}
	return time.Since(begin)
}

// whole compares the receivers' counts with the handler's: all arrived, nothing in pieces, nothing twice.
func (s *sender) whole(h *gelf.Handler) {
	s.t.Helper()
	flush(s.t, h)
	got, st := sum(s.nodes), h.Stats()
	if got.messages != s.sent || got.waiting != 0 || got.refused != 0 {
		s.t.Errorf("of %d messages the nodes have %+v", s.sent, got)
	}
	if st.Accepted != s.sent || st.Delivered != s.sent || st.Dropped != 0 || st.Resent != 0 {
		s.t.Errorf("sent %d; %+v", s.sent, st)
	}
}
