//go:build linux

package interop

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const messagesOfLoad = 3134

// loadtest is a run of examples/loadtest.
type loadtest struct {
	id, table string
}

// buildLoadtest returns the path of examples/loadtest.
func buildLoadtest(t *testing.T) string {
	t.Helper()
	path := filepath.Join(workDir(t), "loadtest")
	if out, err := exec.Command("go", "-C", "..", "build", "-o", path, "./examples/loadtest").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// runLoadtest sends as README.md shows it: 3134 messages, 5000 a second. The program fails when one is lost.
func runLoadtest(t *testing.T, path string, args ...string) loadtest {
	t.Helper()
	var said bytes.Buffer
	cmd := command("/", path, append(args, "-count", strconv.Itoa(messagesOfLoad), "-rate", "5000", "-wait", patience.String())...)
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, said.Bytes(), out)
	}
	return loadtest{id: strings.Fields(string(out))[2], table: string(out)}
}

// text is the i-th message of a run.
func (l loadtest) text(i int) string { return fmt.Sprintf("loadtest %s %d", l.id, i+1) }

// number returns what stands behind a word at the beginning of a line.
func (l loadtest) number(t *testing.T, word string) int {
	t.Helper()
	m := regexp.MustCompile(`(?m)^  ` + regexp.QuoteMeta(word) + ` +(\d+)`).FindStringSubmatch(l.table)
	if m == nil {
		t.Fatalf("no line of %s in\n%s", word, l.table)
	}
	n, _ := strconv.Atoi(m[1])
	return n
}

// undisturbed says whether nothing but balance decided where a message went: no address has troubles behind its state.
func (l loadtest) undisturbed(t *testing.T) bool {
	t.Helper()
	for _, row := range regexp.MustCompile(`(?m)^  127.*$`).FindAllString(l.table, -1) {
		if !strings.HasSuffix(row, " up") {
			return false
		}
	}
	return l.number(t, "resent")+l.number(t, "reconnects") == 0
}

// received lays the receivers' table beside the sender's.
func (l loadtest) received(t *testing.T, nodes []*rsyslog, shares []int) {
	t.Helper()
	table := fmt.Sprintf("%s\n  %-28s %9s  %6s\n", l.table, "rsyslog", "messages", "share")
	for i, n := range shares {
		table += fmt.Sprintf("  %-28s %9d  %.1f %%\n", "127.0.0.1:"+nodes[i].tcp, n, 100*float64(n)/messagesOfLoad)
		if off := n - messagesOfLoad/3; l.undisturbed(t) && (off < -2 || off > 2) {
			t.Errorf("%d messages are no third of %d", n, messagesOfLoad)
		}
	}
	t.Logf("\n%s", table)
}

// Both tables of examples/loadtest: one handler and three receivers, and the same through HAProxy on one connection, whose shares are
// not the sender's work. None is missing, and what the sender says of an address is what came there.
func TestR45_R47_Loadtest(t *testing.T) {
	t.Parallel()
	path := buildLoadtest(t)
	t.Run("three rsyslogs", func(t *testing.T) {
		t.Parallel()
		var nodes []*rsyslog
		var addrs []string
		for range 3 {
			node := startRsyslog(t)
			nodes, addrs = append(nodes, node), append(addrs, "127.0.0.1:"+node.tcp)
		}
		l := runLoadtest(t, path, "-target", "syslog+tcp://"+addrs[0], "-addr", strings.Join(addrs, ","))
		var shares []int
		seen := map[string]bool{}
		for i, node := range nodes {
			shares = append(shares, l.number(t, addrs[i]))
			for _, m := range node.messages(t, shares[i]) {
				seen[m.Msg] = true
			}
		}
		for i := range messagesOfLoad {
			if !seen[l.text(i)] {
				t.Errorf("number %d is missing", i+1)
			}
		}
		l.received(t, nodes, shares)
	})
	t.Run("log-forward", func(t *testing.T) {
		t.Parallel()
		r := startRelay(t)
		l := runLoadtest(t, path, "-target", "syslog+tcp://127.0.0.1:"+r.port)
		shares := r.shares(messagesOfLoad)
		for i, m := range r.next(t, messagesOfLoad) {
			if m.Msg != l.text(i) {
				t.Fatalf("message %d is %+v", i, m)
			}
		}
		l.received(t, r.nodes, shares)
	})
}
