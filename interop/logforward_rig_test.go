//go:build linux

package interop

import (
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strconv"
	"testing"
)

// relay is a HAProxy that forwards each message to one of three rsyslogs, in rotation.
type relay struct {
	*program
	port  string // of both UDP and TCP
	nodes []*rsyslog
	seen  int // messages that next has returned
}

func startRelay(t *testing.T) *relay {
	t.Helper()
	path := find(t, "haproxy")
	version(t, path, "-v")
	dir := workDir(t)
	r := &relay{port: strconv.Itoa(freePort(t))}
	cmd := command(dir, path, "-db", "-f", script(t, dir, "haproxy-log-forward.cfg"))
	cmd.Env = append(cmd.Env, "HAP_WORK="+dir, "HAP_IN="+r.port)
	for i := range 3 {
		node := startRsyslog(t)
		r.nodes = append(r.nodes, node)
		cmd.Env = append(cmd.Env, fmt.Sprintf("HAP_%d=%s", i+1, node.tcp))
	}
	r.program = run(t, cmd)
	// Its sockets are there when it answers a question. To try one would cost a session.
	until(t, "HAProxy answers", func() bool {
		select {
		case <-r.exited:
			t.Fatalf("HAProxy has ended: %v", r.err)
		default:
		}
		conn, err := net.Dial("unix", filepath.Join(dir, "haproxy.sock"))
		if err != nil {
			return false
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "show info\n")
		n, _ := conn.Read(make([]byte, 1))
		return n > 0
	})
	return r
}

// next waits for n more messages, and returns them in the order in which HAProxy had them. They are where its rotation has put them,
// and nowhere else.
func (r *relay) next(t *testing.T, n int) (all []received) {
	t.Helper()
	shares := r.shares(n)
	here := make([][]received, len(r.nodes))
	for i, node := range r.nodes {
		if here[i] = node.messages(t, shares[i]); len(here[i]) != shares[i] {
			t.Fatalf("node %d has %d messages more, want %d", i, len(here[i]), shares[i])
		}
	}
	for range n {
		i := r.seen % len(r.nodes)
		all, here[i] = append(all, here[i][0]), here[i][1:]
		r.seen++
	}
	return all
}

// shares is how many of the next n messages each node gets.
func (r *relay) shares(n int) []int {
	shares := make([]int, len(r.nodes))
	for i := range n {
		shares[(r.seen+i)%len(shares)]++
	}
	return shares
}
