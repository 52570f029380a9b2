//go:build linux

package interop

import (
	"context"
	"encoding/csv"
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/wholelog/wholelog/resolve"
)

// talker is an agent on loopback: it answers each connection with one line. It is also a service, which accepts and says nothing.
type talker struct {
	net.Listener
	mu    sync.Mutex
	line  string
	asked atomic.Int64
}

func startTalker(t *testing.T) *talker {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a := &talker{Listener: l}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			a.mu.Lock()
			_, _ = io.WriteString(conn, a.line)
			a.mu.Unlock()
			conn.Close()
			a.asked.Add(1)
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	return a
}

func (a *talker) say(line string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.line = line
}

func (a *talker) addr() netip.AddrPort { return a.Addr().(*net.TCPAddr).AddrPort() }

func (a *talker) port() string { return strconv.Itoa(int(a.addr().Port())) }

// observer is a running HAProxy that asks agent about service.
type observer struct{ socket string }

func startObserver(t *testing.T, service, agent *talker) *observer {
	t.Helper()
	path := find(t, "haproxy")
	version(t, path, "-v")
	dir := workDir(t)
	cmd := command(dir, path, "-db", "-f", script(t, dir, "haproxy.cfg"))
	cmd.Env = append(cmd.Env, "HAP_WORK="+dir, "HAP_SERVICE="+service.port(), "HAP_AGENT="+agent.port())
	p := run(t, cmd)
	o := &observer{filepath.Join(dir, "haproxy.sock")}
	until(t, "HAProxy asks the agent", func() bool {
		select {
		case <-p.exited:
			t.Fatalf("HAProxy has ended: %v", p.err)
		default:
		}
		return agent.asked.Load() > 0
	})
	return o
}

// sees returns HAProxy's status and weight of the server.
func (o *observer) sees(t *testing.T) (status string, weight int) {
	t.Helper()
	conn, err := net.Dial("unix", o.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "show stat service 4 -1\n"); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(conn).ReadAll()
	if err != nil || len(rows) != 2 {
		t.Fatalf("%q, %v", rows, err)
	}
	column := func(name string) string { return rows[1][slices.Index(rows[0], name)] }
	weight, err = strconv.Atoi(column("weight"))
	if err != nil {
		t.Fatal(err)
	}
	return column("status"), weight
}

// meaning brings HAProxy's status and weight into our words: with a weight of 0 a server drains.
func meaning(status string, weight int) string {
	switch {
	case strings.HasPrefix(status, "MAINT"):
		return "maint"
	case strings.HasPrefix(status, "DOWN"):
		return "down"
	case strings.HasPrefix(status, "DRAIN") || weight == 0:
		return "draining"
	case strings.HasPrefix(status, "UP"):
		return "up"
	}
	return status
}

// The same agent, observed by HAProxy and by AgentCheck: both come to the same state and weight, answer by answer.
func TestAgentCheckAgreesWithHAProxy(t *testing.T) {
	t.Parallel()
	service, agent := startTalker(t), startTalker(t)
	agent.say("up ready 100%\n")
	haproxy := startObserver(t, service, agent)
	check := resolve.AgentCheck(int(agent.addr().Port()))
	for _, step := range []struct {
		line   string
		state  string
		weight int
	}{
		{"up 100% ready\n", "up", 100},
		{"50%\n", "up", 50},
		{"0%\n", "draining", 0},
		{"up\n", "draining", 0},
		{"100% up ready # cpu=12 mem=34\n", "up", 100},
		{"drain\n", "draining", 100},
		{"up\n", "draining", 100},
		{"READY\n", "up", 100},
		{"maint\n", "maint", 100},
		{"up\n", "maint", 100},
		{"ready\n", "up", 100},
		{"down # reason\n", "down", 100},
		{"ready\n", "down", 100},
		{"up\n", "up", 100},
		{"fail # reason\n", "down", 100},
		{"Up\n", "up", 100},
		{"stopped\n", "down", 100},
		{"up\n", "up", 100},
		{"0% down # hec_8088_unhealthy\n", "down", 0},
		{"up\n", "draining", 0},
		{"100%\n", "up", 100},
		{"down#hec_8088\n", "up", 100},
		{"up, 75%,maxconn:30\n", "up", 75},
		{"quiesce\n", "up", 75},
		{"\n", "up", 75},
		{"", "up", 75},
		{"\tUP\t,60%\r\ndown\n", "up", 60},
		{"drain", "up", 60}, // a line has an end
		{"ready up 100%\n", "up", 100},
	} {
		agent.say(step.line)
		before := agent.asked.Load()
		// The first of these may have been answered before; the third shows that an answer to the second was read.
		until(t, "HAProxy has asked three times", func() bool { return agent.asked.Load() >= before+3 })
		var status string
		var weight int
		agrees := within(t, patience, func() bool {
			status, weight = haproxy.sees(t)
			return meaning(status, weight) == step.state && weight == step.weight
		})
		if !agrees {
			t.Errorf("%q: HAProxy says %s, weight %d; want %s, %d", step.line, status, weight, step.state, step.weight)
		}

		ctx, cancel := context.WithTimeout(t.Context(), patience)
		r, err := check.Check(ctx, agent.addr())
		cancel()
		if strings.TrimSpace(step.line) == "" || !strings.HasSuffix(step.line, "\n") {
			if err != nil || r.State != resolve.Unknown || r.Weight != 0 {
				t.Errorf("no answer: %+v, %v", r, err) // leaves things as they are
			}
			continue
		}
		if err != nil || r.State.String() != step.state || r.Weight != step.weight {
			t.Errorf("%q: AgentCheck says %+v, %v; want %s, %d", step.line, r, err, step.state, step.weight)
		}
	}
}
