package pool

import (
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wholelog/wholelog/resolve"
)

// An agent that says nothing but percentages drains its address with 0%, and brings it back with the next one.
func TestAgentDrainsByWeightAlone(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var line atomic.Value
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte(line.Load().(string)))
			conn.Close()
		}
	}()
	addr := l.Addr().(*net.TCPAddr).AddrPort()
	check := resolve.AgentCheck(int(addr.Port()))
	h := health{percent: fullPercent}
	for _, step := range []struct {
		line    string
		want    resolve.State
		percent int
	}{
		{"50%\n", resolve.Unknown, 50},
		{"0%\n", resolve.Draining, 50},
		{"75%\n", resolve.Up, 75},
		{"0%\n", resolve.Draining, 75},
		{"10%\n", resolve.Up, 10},
	} {
		line.Store(step.line)
		r, err := check.Check(t.Context(), netip.AddrPortFrom(addr.Addr(), 9))
		if h.judge(r, err, time.Now()); h.state() != step.want || h.percent != step.percent {
			t.Fatalf("%q: %v with %d %%, want %v with %d %%", step.line, h.state(), h.percent, step.want, step.percent)
		}
	}
}
