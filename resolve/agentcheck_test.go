package resolve

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"
)

// agentServer is an agent on loopback. It answers each connection with the next of its lines as they are; "-" hangs up.
type agentServer struct {
	net.Listener
	mu   sync.Mutex
	line string
}

func startAgent(t *testing.T) *agentServer {
	a := &agentServer{Listener: listen(t)}
	go func() {
		for {
			conn, err := a.Accept()
			if err != nil {
				return
			}
			a.mu.Lock()
			line := a.line
			a.mu.Unlock()
			for part := range strings.SplitSeq(line, "|") { // in pieces, as a network may deliver it
				_, _ = conn.Write([]byte(part))
			}
			conn.Close()
		}
	}()
	return a
}

func (a *agentServer) say(line string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.line = line
}

// What HAProxy 2.6 was seen to do with each answer, answer by answer.
func TestAgentCheckAgainstAnAgent(t *testing.T) {
	const noAnswer = "no answer from the agent: the agent's answer is empty"
	type step struct {
		line string
		want Report
	}
	down := func(note string) Report { return Report{State: Down, Note: note} }
	for name, steps := range map[string][]step{
		"words": {
			{"up 100% ready\n", Report{State: Up, Weight: 100}},
			{"READY Up\n", Report{State: Up, Weight: 100}},
			{"\t, 75%,,up\n", Report{State: Up, Weight: 75}},
			{"up, 75%,maxconn:30\r\nmaint\n", Report{State: Up, Weight: 75}},
			{"100% up ready # cpu=12 mem=34\n", Report{State: Up, Weight: 100, Note: "cpu=12 mem=34"}},
			{"dra|in|\n", Report{State: Draining, Weight: 100, Note: "the agent said drain"}},
		},
		"a weight alone": {
			{"50%\n", Report{State: Unknown, Weight: 50}},
			{"0%\n", Report{State: Draining, Note: "the agent said 0%"}},
			{"10%\n", Report{State: Up, Weight: 10}}, // Unknown would leave it Draining
			{"up\n", Report{State: Up, Weight: 10}},
			{"0%\n", Report{State: Draining, Note: "the agent said 0%"}},
			{"up ready\n", Report{State: Draining, Note: "the agent said up ready"}},
			{"1%\n", Report{State: Up, Weight: 1}},
		},
		"up does not undo drain": {
			{"drain\n", Report{State: Draining, Note: "the agent said drain"}},
			{"up\n", Report{State: Draining, Note: "the agent said up"}},
			{"ready\n", Report{State: Up}},
		},
		"maint": {
			{"maint\n", Report{State: Maint, Note: "the agent said maint"}},
			{"down\n", Report{State: Maint, Note: "the agent said down"}},
			{"ready\n", down("the agent said ready")},
			{"up\n", Report{State: Up}},
		},
		"down": {
			{"down # reason\n", down("reason")},
			{"ready\n", down("the agent said ready")},
			{"up\n", Report{State: Up}},
			{"fail # reason\n", down("reason")},
			{"up\n", Report{State: Up}},
			{"stopped\n", down("the agent said stopped")},
			{"drain\n", down("the agent said drain")},
			{"up\n", Report{State: Draining, Note: "the agent said up"}},
		},
		"weight stays 0": {
			{"0% down # hec_8088_unhealthy\n", down("hec_8088_unhealthy")},
			{"up\n", Report{State: Draining, Note: "the agent said up"}},
			{"100%\n", Report{State: Up, Weight: 100}},
		},
		"malformed": {
			{"up\n", Report{State: Up}},
			{"down#hec_8088\n", Report{State: Up, Warning: `the agent said what it does not mean anything by: ["down#hec_8088"]`}},
			{"50% 7 %|, -1%, maxconn:x 1e9% 99999999999% maint?\n", Report{
				State: Up, Weight: 50,
				Warning: `the agent said what it does not mean anything by: ["7" "%" "-1%" "maxconn:x" "1e9%" "99999999999%" "maint?"]`,
			}},
			{"quiesce drain\n", Report{
				State: Draining, Weight: 50, Note: "the agent said quiesce drain",
				Warning: `the agent said what it does not mean anything by: ["quiesce"]`,
			}},
			{"#down\n", Report{State: Draining, Weight: 50, Note: "down"}},
			{" , # \n", Report{State: Draining, Weight: 50, Note: "the agent said  , # "}},
		},
		"no answer": {
			{"drain 50%\n", Report{State: Draining, Weight: 50, Note: "the agent said drain 50%"}},
			{"\n", Report{Note: noAnswer}},
			{"", Report{Note: noAnswer}},
			{"\r\nup\n", Report{Note: noAnswer}},
			{"ready|, up", Report{Note: `no answer from the agent: the agent's answer is not a line: its end, \n or \r, is missing`}},
			{"up\n", Report{State: Draining, Weight: 50, Note: "the agent said up"}},
		},
		"the last word counts": {
			{"up down drain ready 1% 2%\n", Report{State: Down, Weight: 2, Note: "the agent said up down drain ready 1% 2%"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			agent := startAgent(t)
			check := AgentCheck(portOf(agent))
			for _, s := range steps {
				agent.say(s.line)
				r, err := checkNow(t, check, addrOf(agent))
				if err != nil || r != s.want {
					t.Errorf("%q: %+v, %v\nwant %+v", s.line, r, err, s.want)
				}
			}
		})
	}
}

// An agent that is away says nothing. What it said is forgotten after ten checks, and only for its own address.
func TestAgentCheckForgets(t *testing.T) {
	agent := startAgent(t)
	check := AgentCheck(portOf(agent))
	agent.say("drain 50%\n")
	drained := Report{State: Draining, Weight: 50, Note: "the agent said drain 50%"}
	here := addrOf(agent)
	there := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.2"), 1) // nobody listens
	for round, silent := range []int{9, 10} {
		if r, err := checkNow(t, check, here); err != nil || r != drained {
			t.Fatalf("%+v, %v", r, err)
		}
		agent.say("")
		for range silent {
			if r, err := checkNow(t, check, here); err != nil || r.State != Unknown || r.Weight != 0 || r.Note == "" {
				t.Errorf("%+v, %v", r, err)
			}
			if r, err := checkNow(t, check, there); err != nil || r.State != Unknown {
				t.Errorf("%+v, %v", r, err)
			}
		}
		agent.say("up\n")
		want := []Report{{State: Draining, Weight: 50, Note: "the agent said up"}, {State: Up}}[round]
		if r, err := checkNow(t, check, here); err != nil || r != want {
			t.Errorf("after %d checks without an answer: %+v, %v, want %+v", silent, r, err, want)
		}
		agent.say("drain 50%\n")
	}
}

// An answer without an end is read up to a limit, and one that comes slowly up to the end of the context.
func TestAgentCheckLimits(t *testing.T) {
	l := listen(t)
	ended := make(chan int, 2)
	go func() {
		for range 2 {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			n := 0
			for err == nil {
				var m int
				m, err = conn.Write([]byte(strings.Repeat("up ", 1000)))
				n += m
			}
			conn.Close()
			ended <- n
		}
	}()
	r, err := checkNow(t, AgentCheck(portOf(l)), addrOf(l))
	if err != nil || r.State != Unknown || !strings.HasSuffix(r.Note, "is missing") {
		t.Errorf("%+v, %v", r, err)
	}
	<-ended // it hung up

	slow := listen(t)
	go func() {
		if conn, err := slow.Accept(); err == nil {
			_, _ = conn.Write([]byte("maint"))
			_, _ = conn.Read(make([]byte, 1)) // until the check hangs up
			conn.Close()
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	r, err = AgentCheck(portOf(slow)).Check(ctx, addrOf(slow))
	if err != nil || r.State != Unknown || r.Weight != 0 || r.Note == "" {
		t.Errorf("half an answer: %+v, %v", r, err)
	}
}

// Addresses that came and went are forgotten.
func TestAgentCheckMemoryIsBounded(t *testing.T) {
	c := AgentCheck(9).(*agentCheck)
	old := time.Now().Add(-25 * time.Hour)
	for i := range 5000 {
		c.of(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 1)).asked = old
	}
	c.of(netip.MustParseAddrPort("192.0.2.1:1"))
	if n := len(c.known); n != 1 {
		t.Errorf("%d are remembered", n)
	}
}

func FuzzAgentLine(f *testing.F) {
	for _, seed := range []string{
		"up 100% ready", "50%", "100% up ready # cpu=12 mem=34", "down#hec_8088", "up, 75%,maxconn:30", "# x", "\x00\xff %", "maxconn:", "\t,,",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		a := agent{weight: -1}
		note, wrong := a.read(line)
		if !strings.Contains(line, note) || strings.ContainsAny(strings.Join(wrong, ""), " \t,") {
			t.Fatalf("%q: note %q, wrong words %q", line, note, wrong)
		}
		if a.weight < -1 || a.state() > Maint {
			t.Fatalf("%q: %+v", line, a)
		}
		again := a
		if n, w := again.read(line); again != a || n != note || fmt.Sprint(w) != fmt.Sprint(wrong) {
			t.Fatalf("%q: %+v, and again %+v", line, a, again)
		}
	})
}
