package gelf_test

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/gelf"
	"github.com/wholelog/wholelog/jitter"
	"github.com/wholelog/wholelog/resolve"
)

// process is a GELF TCP receiver in a process of its own.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	addr  string
	done  chan struct{} // closed when all it said was read
}

// arrivals counts messages by number, from wherever they arrive.
type arrivals struct {
	mu  sync.Mutex
	got map[int]int
}

func (a *arrivals) add(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.got[n]++
}

// startProcess starts this test program as a receiver. What it is sent counts in a.
func startProcess(t *testing.T, addr string, a *arrivals) *process {
	t.Helper()
	p := &process{cmd: exec.Command(os.Args[0]), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), "WHOLELOG_TEST_NODE="+addr)
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() || strings.HasPrefix(lines.Text(), "error") {
		t.Fatalf("the node: %q, %v", lines.Text(), lines.Err())
	}
	p.addr = lines.Text()
	go func() {
		defer close(p.done)
		for lines.Scan() {
			if n, err := strconv.Atoi(lines.Text()); err == nil {
				a.add(n)
			}
		}
	}()
	return p
}

func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// end waits for a process that is told to end.
func (p *process) end() {
	_ = p.stdin.Close()
	<-p.done
	_ = p.cmd.Wait() // killed or not
}

// unread is how many bytes wait in the kernel for the process that listens on a port.
func unread(t *testing.T, addr string) (bytes int) {
	t.Helper()
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := strings.Cut(addr, ":")
	n, _ := strconv.Atoi(port)
	for line := range strings.Lines(string(table)) {
		f := strings.Fields(line) // number, local, remote, state, tx:rx
		if len(f) > 4 && strings.HasSuffix(f[1], fmt.Sprintf(":%04X", n)) && f[3] == "01" {
			_, rx, _ := strings.Cut(f[4], ":")
			queued, _ := strconv.ParseInt(rx, 16, 64)
			bytes += int(queued)
		}
	}
	return bytes
}

// One of three receivers is killed (SIGKILL, a process of its own) and restarted three times in the middle of a stream, each time when
// it has stopped reading and records wait for its kernel. All that its kernel had not acknowledged arrives elsewhere. What is missing is
// at most what the dead process had not read, or read and not yet told.
func TestNodeKilledThreeTimes(t *testing.T) {
	const readBuffer = 64 << 10
	a := &arrivals{got: make(map[int]int)}
	p := startProcess(t, place(t), a)
	others := tcpNodes(t, 2, nil)
	h := handlerOf(t, "tcp://graylog.test:12201", gelf.Options{
		Resolve: resolve.Options{
			Resolver: resolve.Static(p.addr, others[0].Addr().String(), others[1].Addr().String()),
			// It ends the time for which an address is left alone after failures, up to half a minute.
			Check: resolve.TCPCheck(0), CheckEvery: 100 * time.Millisecond,
		},
		Delivery: delivery.Options{
			QueueBytes: 1 << 20, RecordRate: 5000, MaxBlock: time.Minute, OnError: func(error) {},
			Backoff: jitter.Backoff{Base: 5 * time.Millisecond, Max: 50 * time.Millisecond},
		},
	})
	stop, logged := make(chan struct{}), make(chan int)
	go func() {
		log := slog.New(h)
		for n := 0; ; n++ {
			select {
			case <-stop:
				logged <- n
				return
			default:
				log.Info("a message of some length, so that a few hundred of them fill a buffer", "n", n)
			}
		}
	}()
	row := func() (e delivery.EndpointStats) {
		for _, e = range h.Stats().Endpoints {
			if e.Addr.String() == p.addr {
				return e
			}
		}
		return e
	}
	lost := 0
	for range 3 {
		before := row().Delivered
		wait(t, func() bool { return row().Delivered > before+300 }, func() string { return fmt.Sprintf("not in use: %+v", row()) })
		p.signal(t, syscall.SIGSTOP)
		// Its kernel acknowledges until there is no room, and then no more: what is unread stays as it is, and records wait.
		last, since := -1, time.Now()
		wait(t, func() bool {
			if q := unread(t, p.addr); q != last || row().PendingBytes == 0 {
				last, since = q, time.Now()
			}
			return time.Since(since) > 200*time.Millisecond
		}, func() string { return fmt.Sprintf("%d bytes unread, %+v", last, row()) })
		if last == 0 {
			t.Error("nothing is unread: this kills nobody")
		}
		lost += last + readBuffer
		t.Logf("killed with %d bytes unread and %d bytes on their way", last, row().PendingBytes)
		p.signal(t, syscall.SIGKILL)
		p.end()
		p = startProcess(t, p.addr, a)
	}
	close(stop)
	n := <-logged
	if err := h.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	p.end()
	shortest := 1 << 20
	for _, o := range others {
		o.Close()
		for _, m := range o.Messages() {
			a.add(int(m.Fields["n"].(int64)))
			shortest = min(shortest, m.Sizes[0]+1)
		}
	}
	s := h.Stats()
	missing, twice := n-len(a.got), 0
	for _, times := range a.got {
		twice += times - 1
	}
	t.Logf("of %d messages %d are missing (%d bytes at least) and %d arrived twice; %d were sent again", n, missing, missing*shortest, twice, s.Resent)
	if missing*shortest > lost {
		t.Errorf("%d bytes are missing; the dead had %d unread or in hand", missing*shortest, lost)
	}
	if s.Delivered != uint64(n) || s.Dropped != 0 || s.Resent == 0 || s.Reconnects < 2 || s.Unconfirmed != 0 {
		t.Errorf("%+v", s)
	}
}
