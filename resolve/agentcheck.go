package resolve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// maxAgentLine is how much of an answer is read; the agents that exist send a few words.
	maxAgentLine = 4 << 10

	// agentSilence is the number of checks without an answer after which what the agent said before is forgotten. The caller forgets
	// its last report after as many.
	agentSilence = 10

	// agentForget ends the memory of an address that nobody asks for any more.
	agentForget = 24 * time.Hour
)

var (
	errNoAgentLine = errors.New("the agent's answer is empty")
	errNoLineEnd   = errors.New("the agent's answer is not a line: its end, \\n or \\r, is missing")
)

// AgentCheck asks an agent that speaks HAProxy's agent-check protocol on port, which must be from 1 to 65535, of each address. The
// agent is connected to and answers with one line, up to \n or \r. Its words stand in any order and case, separated by blanks,
// tabs or commas:
//
//	up                    it works
//	down, fail, stopped   it does not, until up
//	ready                 ends drain and maint
//	drain, maint          Draining, Maint, until ready: up does not end them
//	75%                   the weight from now on; 0% is Draining until another percentage comes
//	maxconn:30            is known and has no effect
//	# …                   the rest is a description, and shows in the statistics of the address
//
// A word that is missing leaves things as they are, so each answer may hold only what changed. A word that is none of these is left
// out and reported as [Report.Warning]; so is one with a # in it, as HAProxy reads it: write a blank before the #.
//
// No answer, an empty one, or one without a line end (some of it may be missing) is no failure: what the agent said last holds, for
// 10 checks. Handlers should not share an AgentCheck: each counts those checks.
func AgentCheck(port int) Check {
	return &agentCheck{port: port, known: make(map[netip.AddrPort]*agent)}
}

type agentCheck struct {
	port  int
	mu    sync.Mutex
	known map[netip.AddrPort]*agent
}

// agent is what the agent of one address said so far.
type agent struct {
	admin     string // "ready", "drain", "maint"; "": never said
	operation string // "up", "down", "fail", "stopped"; "": never said
	weight    int    // percent; below 0: never said
	emptied   bool   // it said 0% before, so any other percentage takes that back
	silent    int    // checks in a row without an answer
	asked     time.Time
}

// Validate says whether the port can be one.
func (c *agentCheck) Validate() error { return validPort("AgentCheck", c.port) }

// Check implements [Check].
func (c *agentCheck) Check(ctx context.Context, addr netip.AddrPort) (Report, error) {
	if err := c.Validate(); err != nil {
		return Report{}, err
	}
	line, err := c.ask(ctx, addr)
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.of(addr)
	if err != nil {
		if a.silent++; a.silent >= agentSilence {
			*a = agent{weight: -1, silent: a.silent, asked: a.asked}
		}
		return Report{Note: fmt.Sprintf("no answer from the agent: %v", err)}, nil
	}
	a.silent = 0
	note, wrong := a.read(line)
	r := Report{State: a.state(), Weight: max(a.weight, 0), Note: note}
	if note == "" && r.State >= Draining {
		r.Note = "the agent said " + line
	}
	if len(wrong) > 0 {
		r.Warning = fmt.Sprintf("the agent said what it does not mean anything by: %.200q", wrong)
	}
	return r, nil
}

// ask returns the agent's line without its end.
func (c *agentCheck) ask(ctx context.Context, addr netip.AddrPort) (string, error) {
	conn, err := dialCheck(ctx, addr, c.port)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	var answer []byte
	buf := make([]byte, 512)
	for err == nil && len(answer) < maxAgentLine && !bytes.ContainsAny(answer, "\r\n") {
		var n int
		n, err = conn.Read(buf)
		answer = append(answer, buf[:n]...)
	}
	switch end := bytes.IndexAny(answer, "\r\n"); {
	case end > 0:
		return string(answer[:end]), nil
	case ctx.Err() != nil:
		return "", ctx.Err()
	case end < 0 && len(answer) > 0:
		return "", errNoLineEnd
	case err != nil && !errors.Is(err, io.EOF):
		return "", err
	}
	return "", errNoAgentLine
}

// of returns what is known of addr. The caller holds mu.
func (c *agentCheck) of(addr netip.AddrPort) *agent {
	now := time.Now()
	a := c.known[addr]
	if a == nil {
		for other, b := range c.known { // addresses leave without a word
			if now.Sub(b.asked) > agentForget {
				delete(c.known, other)
			}
		}
		a = &agent{weight: -1}
		c.known[addr] = a
	}
	a.asked = now
	return a
}

// read takes a line in, and returns its description and the words that mean nothing. Of several words that contradict each other
// the last one counts.
func (a *agent) read(line string) (note string, wrong []string) {
	const blanks = " \t,"
	for {
		if line = strings.TrimLeft(line, blanks); line == "" {
			return "", wrong
		}
		if line[0] == '#' {
			return strings.Trim(line[1:], " \t"), wrong
		}
		end := strings.IndexAny(line+" ", blanks)
		if !a.word(strings.ToLower(line[:end])) {
			wrong = append(wrong, line[:end])
		}
		line = line[end:]
	}
}

// word takes one word in and says whether it means anything.
func (a *agent) word(w string) bool {
	switch w {
	case "ready", "drain", "maint":
		a.admin = w
		return true
	case "up", "down", "fail", "stopped":
		a.operation = w
		return true
	}
	if digits, ok := strings.CutPrefix(w, "maxconn:"); ok {
		_, err := strconv.ParseUint(digits, 10, 31)
		return err == nil
	}
	digits, ok := strings.CutSuffix(w, "%")
	percent, err := strconv.ParseUint(digits, 10, 31)
	if !ok || err != nil {
		return false
	}
	a.weight = int(percent)
	a.emptied = a.emptied || percent == 0
	return true
}

// state is what all that was said comes to.
func (a *agent) state() State {
	switch {
	case a.admin == "maint":
		return Maint
	case a.operation != "" && a.operation != "up":
		return Down
	case a.admin == "drain" || a.weight == 0:
		return Draining
	case a.admin == "" && a.operation == "" && !a.emptied:
		return Unknown // a weight alone says nothing of it
	}
	return Up
}
