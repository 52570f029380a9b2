//go:build linux || darwin

package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wholelog/wholelog/internal/fake/cluster"
	"github.com/wholelog/wholelog/internal/fake/gelfd"
	"github.com/wholelog/wholelog/internal/leak"
)

// binary is the function, built as for a deployment.
var binary string

func TestMain(m *testing.M) { os.Exit(run(m)) }

// run is TestMain with deferred calls, and leak.Main in the middle of it.
func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "lambda-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary = filepath.Join(dir, "bootstrap") // the name that Lambda's runtimes for Go look for
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	code := m.Run()
	if code != 0 {
		return code
	}
	if left := leak.Find(patience); len(left) > 0 {
		fmt.Fprintf(os.Stderr, "%d goroutines left after the tests\n\n%s\n", len(left), strings.Join(left, "\n\n"))
		return 1
	}
	return 0
}

// function is a running function: its environment in the state between two invocations, which is frozen.
type function struct {
	*process
	api   *runtimeAPI
	count int // invocations so far
}

// start brings a function through its init phase.
func start(t *testing.T, url string, nodes ...string) *function {
	t.Helper()
	f := &function{api: startRuntimeAPI(t)}
	f.process = startProcess(t, "AWS_LAMBDA_RUNTIME_API="+f.api.addr, "GRAYLOG_URL="+url, "GRAYLOG_NODES="+strings.Join(nodes, ","))
	wait(t, f.process, f.api.extensions, "no extension registers, so that no SIGTERM would come")
	wait(t, f.process, f.api.asked, "the init phase does not end")
	f.freeze(t)
	return f
}

// invoke thaws the function for one invocation. check runs when the answer has been posted and not yet accepted, with the process
// frozen: what is not on its way by then can no longer be sent.
func (f *function) invoke(t *testing.T, o order, check func(id string, a answer)) {
	t.Helper()
	event, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	f.count++
	id := fmt.Sprintf("8476a536-e9f4-11e8-9739-%012d", f.count)
	f.thaw(t)
	f.api.next <- invocation{id, event}
	a := wait(t, f.process, f.api.answers, "the function does not answer")
	f.freeze(t)
	if a.id != id {
		t.Errorf("answer to %s, want %s", a.id, id)
	}
	check(id, a)
	f.thaw(t)
	a.accept()
	wait(t, f.process, f.api.asked, "the function does not ask for another invocation")
	f.freeze(t)
}

// arrived waits until the nodes have n messages in all, and returns them with the addresses of the nodes that have any.
func arrived(t *testing.T, nodes []*gelfd.Server, n int) (all []gelfd.Message, at []netip.AddrPort) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); ; <-tick.C {
		all, at = nil, nil
		for _, node := range nodes {
			if m := node.Messages(); len(m) > 0 {
				all, at = append(all, m...), append(at, node.Addr())
			}
		}
		if len(all) >= n {
			return all, at
		}
		if time.Now().After(end) {
			for _, node := range nodes {
				t.Logf("%v: %+v", node.Addr(), node.Stats())
			}
			t.Fatalf("%d messages arrived, want %d: %q", len(all), n, texts(all))
		}
	}
}

// texts returns what each message says, in full, and for which invocation, sorted.
func texts(all []gelfd.Message) (texts []string) {
	for _, m := range all {
		text, long := m.Fields["full_message"]
		if !long {
			text = m.Fields["message"]
		}
		texts = append(texts, fmt.Sprint(m.Fields["request_id"], " ", text))
	}
	slices.Sort(texts)
	return texts
}

// document returns text that compresses by a quarter only, so that its chunks are many.
func document(r *rand.ChaCha8, n int) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	text := make([]byte, n)
	for i := range text {
		text[i] = letters[r.Uint64()%uint64(len(letters))]
	}
	return string(text)
}

func startCluster(t *testing.T) (c *cluster.Cluster, addrs []string) {
	t.Helper()
	c, err := cluster.Start(3, gelfd.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, node := range c.Nodes {
		addrs = append(addrs, node.Addr().String())
	}
	return c, addrs
}

// Everything that an invocation logged is on its way before its answer is, and all of it goes to one node. The documents of one
// invocation come to about 80 datagrams: enough that pacing stretches them over some milliseconds, so that they would not be through
// without Flush, and fewer than a receive buffer holds, so that a slow test loses none.
func TestEverythingHasArrivedBeforeTheResponse(t *testing.T) {
	c, addrs := startCluster(t)
	f := start(t, "udp://"+addrs[0], addrs...)
	r := rand.NewChaCha8([32]byte{1})
	var want []string
	for i := range 6 {
		o := order{ID: fmt.Sprintf("o-%d", i), Documents: []string{document(r, 70_000), "short", document(r, 30_000)}}
		f.invoke(t, o, func(id string, a answer) {
			if a.kind != "response" || a.body != `"accepted `+o.ID+`"` {
				t.Errorf("posted to %s: %s", a.kind, a.body)
			}
			want = append(want, id+" order received", id+" order accepted")
			for _, text := range o.Documents {
				want = append(want, id+" order document\n"+text)
			}
			slices.Sort(want)
			all, at := arrived(t, c.Nodes, len(want))
			if !slices.Equal(texts(all), want) {
				t.Fatalf("other texts than were logged: %d messages", len(all))
			}
			if len(at) != 1 {
				t.Fatalf("messages of one process at %v, want one node", at)
			}
		})
	}
	all, _ := arrived(t, c.Nodes, len(want))
	chunked := 0
	for _, m := range all {
		if len(m.Sizes) > 1 {
			chunked++
		}
	}
	if chunked != 12 {
		t.Errorf("%d messages were chunked, want 12", chunked)
	}

	f.terminate(t)
	all, at := arrived(t, c.Nodes, len(want)+1)
	if last := all[len(all)-1].Fields["message"]; last != "environment ends" || len(at) != 1 {
		t.Errorf("the last record is %q, at %v", last, at)
	}
	if said := f.said(t); said != "" {
		t.Errorf("nothing went wrong, and the function said: %s", said)
	}
}

// An invocation that fails is the one whose records matter most.
func TestEverythingHasArrivedBeforeTheError(t *testing.T) {
	c, addrs := startCluster(t)
	f := start(t, "udp://"+addrs[0], addrs...)
	text := document(rand.NewChaCha8([32]byte{2}), 70_000)
	f.invoke(t, order{Documents: []string{text}}, func(id string, a answer) {
		if a.kind != "error" || !strings.Contains(a.body, "an order needs an id") {
			t.Errorf("posted to %s: %s", a.kind, a.body)
		}
		want := []string{id + " order document\n" + text, id + " order received", id + " order refused"}
		if all, _ := arrived(t, c.Nodes, len(want)); !slices.Equal(texts(all), want) {
			t.Errorf("got %d messages, not those that were logged", len(all))
		}
	})
	f.terminate(t)
	arrived(t, c.Nodes, 4)
}

// A receiver that is started after the function gets everything that is logged from then on.
func TestReceiverAwayDuringInit(t *testing.T) {
	c, addrs := startCluster(t)
	node := c.Nodes[0]
	if err := node.Close(); err != nil {
		t.Fatal(err)
	}
	f := start(t, "udp://"+addrs[0])
	node, err := gelfd.Listen(addrs[0], gelfd.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = node.Close() }()
	for i := range 3 {
		f.invoke(t, order{ID: "late"}, func(_ string, a answer) {
			if a.kind != "response" {
				t.Errorf("posted to %s: %s", a.kind, a.body)
			}
			arrived(t, []*gelfd.Server{node}, 2*(i+1))
		})
	}
	f.terminate(t)
	arrived(t, []*gelfd.Server{node}, 7)
}

// A receiver that dies costs the few records that show it. From then on the process keeps another one.
func TestReceiverDiesBetweenInvocations(t *testing.T) {
	c, addrs := startCluster(t)
	f := start(t, "udp://"+addrs[0], addrs...)
	const each = 2
	f.invoke(t, order{ID: "first"}, func(string, answer) { arrived(t, c.Nodes, each) })
	_, at := arrived(t, c.Nodes, each)
	dead := slices.IndexFunc(c.Nodes, func(n *gelfd.Server) bool { return n.Addr() == at[0] })
	if err := c.Nodes[dead].Close(); err != nil {
		t.Fatal(err)
	}
	left := slices.Delete(slices.Clone(c.Nodes), dead, dead+1)

	logged := 0
	for whole, end := false, time.Now().Add(patience); !whole; {
		if time.Now().After(end) {
			t.Fatal("no invocation's records reach another receiver")
		}
		logged += each
		f.invoke(t, order{ID: "next"}, func(id string, _ answer) {
			all, _ := arrived(t, left, 0)
			own := slices.DeleteFunc(all, func(m gelfd.Message) bool { return m.Fields["request_id"] != id })
			whole = len(own) == each
		})
	}
	all, at := arrived(t, left, each)
	if len(at) != 1 {
		t.Errorf("messages at %v, want one node", at)
	}
	// Three refusals show that a receiver is away. Through the default of 16 source ports they would cost 16 records and more.
	if lost := logged - len(all); lost >= 16 {
		t.Errorf("%d of %d records lost", lost, logged)
	}
	f.terminate(t)
	arrived(t, left, len(all)+1)
}

// A name that cannot be looked up fails neither the init phase nor an invocation. The records wait until the environment ends, and
// then their loss is told. Names below onion are never asked of a DNS server (RFC 7686, section 2), so this needs no network.
func TestNameAwayDuringInit(t *testing.T) {
	f := start(t, "udp://graylog.onion:12201")
	for range 2 {
		f.invoke(t, order{ID: "nowhere"}, func(_ string, a answer) {
			if a.kind != "response" || a.body != `"accepted nowhere"` {
				t.Errorf("posted to %s: %s", a.kind, a.body)
			}
		})
	}
	f.terminate(t)
	said := f.said(t)
	if n := strings.Count(said, "not ready, logs will wait"); n != 1 {
		t.Errorf("told %d times that the init phase was not ready, want once", n)
	}
	if !strings.Contains(said, "5 records dropped") {
		t.Error("the loss of 2 records for each of two invocations and of one at the end is not told")
	}
}
