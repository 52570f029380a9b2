package stream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/fake/loopback"
	"github.com/wholelog/wholelog/internal/ship"
)

// errRefused is the framing function's for a record that begins with "!". One that begins with "?" is cut to its first byte.
var errRefused = errors.New("refused")

// lines is a framing for tests: a record and a line feed.
func lines(dst, record []byte) ([]byte, bool, error) {
	switch {
	case bytes.HasPrefix(record, []byte("!")):
		return append(dst, "to be forgotten"...), false, errRefused
	case bytes.HasPrefix(record, []byte("?")):
		return append(dst, "?\n"...), true, nil
	}
	return append(append(dst, record...), '\n'), false, nil
}

func refused(err error) ship.Outcome {
	return ship.Outcome{Do: ship.Drop, Reason: delivery.ReasonTooLarge, Err: err}
}

// rig is a link and all it says.
type rig struct {
	t    testing.TB
	link *link

	mu          sync.Mutex
	outcomes    []string // of the records in order of batches; "" while a record is unsettled
	wire        int
	wires       int
	truncated   int
	unconfirmed int
	chosen      []string
}

// config is that of most tests. No test may depend on how long 30 s are.
func config() Config {
	return Config{Frame: lines, Refused: refused, SendTimeout: 30 * time.Second, PerAddr: 1}
}

// meter records what a link reports.
func (r *rig) meter() *ship.Meter {
	return ship.NewMeter(ship.Recorder{
		Wire: func(n int) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.wire += n
			r.wires++
		},
		Truncated: func(n int) { r.truncated += n },
		Unconfirmed: func(n int) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.unconfirmed += n
		},
		Chose: func(_ netip.AddrPort, records, bytes int, why string) {
			r.chosen = append(r.chosen, fmt.Sprintf("%d records, %d bytes, %s", records, bytes, why))
		},
	})
}

// dialRig opens a link to addr.
func dialRig(t testing.TB, tr *Transport, addr netip.AddrPort) *rig {
	t.Helper()
	r := &rig{t: t}
	l, err := tr.Dial(t.Context(), addr, r.meter())
	if err != nil {
		t.Fatal(err)
	}
	r.link = l.(*link)
	t.Cleanup(func() { r.link.Close() })
	return r
}

// batch makes a batch whose outcomes the rig keeps.
func (r *rig) batch(records ...string) *ship.Batch {
	data := make([][]byte, len(records))
	for i, s := range records {
		data[i] = []byte(s)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	base := len(r.outcomes)
	r.outcomes = append(r.outcomes, make([]string, len(records))...)
	return ship.NewBatch(data, func(from, to int, o ship.Outcome) {
		r.mu.Lock()
		defer r.mu.Unlock()
		for i := base + from; i < base+to; i++ {
			if r.outcomes[i] != "" {
				r.t.Errorf("record %d is settled twice: %s, then %s", i, r.outcomes[i], word(o))
			}
			r.outcomes[i] = word(o)
		}
	})
}

func word(o ship.Outcome) string {
	names := map[ship.Do]string{ship.Delivered: "delivered", ship.Requeue: "requeue", ship.Drop: "drop"}
	return strings.TrimSpace(names[o.Do] + " " + string(o.Reason) + string(o.Cause))
}

func (r *rig) send(records ...string) error {
	return r.link.Send(context.Background(), r.batch(records...))
}

// settled returns the outcomes in runs: "2 delivered, 1 unsettled".
func (r *rig) settled() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for i := 0; i < len(r.outcomes); {
		n := i
		for n < len(r.outcomes) && r.outcomes[n] == r.outcomes[i] {
			n++
		}
		what := r.outcomes[i]
		if what == "" {
			what = "unsettled"
		}
		out = append(out, fmt.Sprintf("%d %s", n-i, what))
		i = n
	}
	return strings.Join(out, ", ")
}

// delivered counts.
func (r *rig) delivered() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range r.outcomes {
		if o == "delivered" {
			n++
		}
	}
	return n
}

// eventually waits until settled says want.
func (r *rig) eventually(want string) {
	r.t.Helper()
	wait(r.t, func() bool { return r.settled() == want }, func() string { return fmt.Sprintf("%s, want %s", r.settled(), want) })
}

// wait polls until done, or fails with what say says.
func wait(t testing.TB, done func() bool, say func() string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !done(); {
		if time.Now().After(end) {
			t.Fatal(say())
		}
		<-time.After(time.Millisecond)
	}
}

// gone waits for the end of the stream and returns why.
func (r *rig) gone() error {
	r.t.Helper()
	select {
	case <-r.link.Gone():
	case <-time.After(time.Minute):
		r.t.Fatal("the link does not notice")
	}
	return r.link.Err()
}

// listener accepts connections.
type listener struct {
	net.Listener
	addr netip.AddrPort
}

func listen(t testing.TB) *listener {
	t.Helper()
	addr, err := loopback.Addr() // that of a listener which is closed refuses
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return &listener{l, l.Addr().(*net.TCPAddr).AddrPort()}
}

// accept returns the next connection.
func (l *listener) accept(t testing.TB) *net.TCPConn {
	t.Helper()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c.(*net.TCPConn)
}

// pair returns a link over TCP and the peer's end.
func pair(t testing.TB, c Config) (*rig, *net.TCPConn) {
	t.Helper()
	l := listen(t)
	r := dialRig(t, New(c), l.addr)
	return r, l.accept(t)
}

// read reads exactly n bytes.
func read(t testing.TB, c io.Reader, n int) string {
	t.Helper()
	b := make([]byte, n)
	if _, err := io.ReadFull(c, b); err != nil {
		t.Fatalf("%q, %v", b, err)
	}
	return string(b)
}

// is checks that an error has a cause and says something.
func is(t testing.TB, err error, cause delivery.Cause, text string) {
	t.Helper()
	if ship.CauseOf(err) != cause || err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("%v: %v; want %s: …%s…", ship.CauseOf(err), err, cause, text)
	}
}
