package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/ship"
)

// R26, R57: the frames of a batch, and nothing else, with one write.
func TestR26_BatchIsOneWrite(t *testing.T) {
	r, peer := pair(t, config())
	if err := r.send("a", "bb", "ccc"); err != nil {
		t.Fatal(err)
	}
	if err := r.send("d"); err != nil {
		t.Fatal(err)
	}
	if got := read(t, peer, 11); got != "a\nbb\nccc\nd\n" {
		t.Errorf("%q", got)
	}
	r.eventually("4 delivered")
	if r.wires != 2 || r.wire != 11 {
		t.Errorf("%d bytes with %d writes", r.wire, r.wires)
	}
	want := []string{"3 records, 9 bytes, new connection", "1 records, 2 bytes, open connection"}
	if fmt.Sprint(r.chosen) != fmt.Sprint(want) {
		t.Errorf("trace: %q", r.chosen)
	}
}

// What the framing function refuses is settled as its protocol says, and leaves no byte; the others leave in order.
func TestRefusedRecords(t *testing.T) {
	for _, tc := range []struct {
		records      []string
		bytes, after string
	}{
		{[]string{"a", "!", "b"}, "a\nb\n", "1 delivered, 1 drop too_large, 1 delivered"},
		{[]string{"!", "a"}, "a\n", "1 drop too_large, 1 delivered"},
		{[]string{"a", "!", "!"}, "a\n", "1 delivered, 2 drop too_large"},
		{[]string{"!"}, "", "1 drop too_large"},
		{[]string{"?long", "a"}, "?\na\n", "2 delivered"},
	} {
		r, peer := pair(t, config())
		if err := r.send(tc.records...); err != nil {
			t.Fatal(err)
		}
		r.eventually(tc.after)
		if err := r.link.Close(); err != nil {
			t.Error(err)
		}
		if got, err := io.ReadAll(peer); string(got) != tc.bytes || err != nil {
			t.Errorf("%q: %q, %v", tc.records, got, err)
		}
		if want := strings.Count(tc.bytes, "?"); r.truncated != want {
			t.Errorf("%q: %d truncated, want %d", tc.records, r.truncated, want)
		}
	}
}

// The reader notices the end of a stream when it comes, whatever it is, and not with the next write.
func TestGone(t *testing.T) {
	for name, tc := range map[string]struct {
		end   func(*net.TCPConn) error
		cause delivery.Cause
		text  string
	}{
		"close":      {func(c *net.TCPConn) error { return c.Close() }, delivery.CausePeerClosed, "the peer closed the connection"},
		"half-close": {func(c *net.TCPConn) error { return c.CloseWrite() }, delivery.CausePeerClosed, "the peer closed the connection"},
		"reset":      {func(c *net.TCPConn) error { return errors.Join(c.SetLinger(0), c.Close()) }, delivery.CauseReset, ""},
		"speaks": {
			func(c *net.TCPConn) error { _, err := c.Write([]byte("HTTP/1.1 400 Bad Request\r\n")); return err },
			delivery.CauseProtocol, `says "HTTP/1.1 400 Bad Request\r\n"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, peer := pair(t, config())
			if err := r.send("a"); err != nil {
				t.Fatal(err)
			}
			read(t, peer, 2)
			r.eventually("1 delivered")
			if err := tc.end(peer); err != nil {
				t.Fatal(err)
			}
			if runtime.GOOS == "windows" && tc.cause == delivery.CauseReset {
				tc.cause = ship.CauseOf(r.gone())
			}
			is(t, r.gone(), tc.cause, tc.text)
			// The first record after it goes elsewhere: the kernel would have taken it, and nobody read it.
			is(t, r.send("b"), tc.cause, tc.text)
			if got := r.settled(); got != "1 delivered, 1 requeue" {
				t.Error(got)
			}
			// Who speaks is a server of another kind, which threw the record away.
			if r.link.Close(); tc.cause == delivery.CauseProtocol && r.unconfirmed != 1 {
				t.Errorf("%d unconfirmed", r.unconfirmed)
			}
		})
	}
}

// A caller whose time is up has not found anything out about the peer: the link lives on.
func TestSendAfterItsTime(t *testing.T) {
	r, peer := pair(t, config())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.link.Send(ctx, r.batch("a")); err != nil || r.settled() != "1 requeue" {
		t.Errorf("%v, %s", err, r.settled())
	}
	if err := r.send("b"); err != nil || read(t, peer, 2) != "b\n" {
		t.Error(err)
	}
}

func TestDialRefused(t *testing.T) {
	l := listen(t)
	l.Close()
	_, err := New(config()).Dial(t.Context(), l.addr, nil)
	is(t, err, delivery.CauseRefused, "refused")
	if strings.Contains(err.Error(), l.addr.String()) {
		t.Errorf("names the address, which the engine does: %v", err)
	}
}

// R35: the caller's time limits the connecting.
func TestR35_DialTimeout(t *testing.T) {
	tr := New(config())
	tr.dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := tr.Dial(ctx, netip.MustParseAddrPort("192.0.2.1:1"), nil)
	is(t, err, delivery.CauseTimeout, "")
}

// A SendTimeout that is longer than the kernel can hold is none that keeps us from connecting.
func TestLongSendTimeout(t *testing.T) {
	c := config()
	c.SendTimeout = 1000 * time.Hour
	r, peer := pair(t, c)
	if err := r.send("a"); err != nil || read(t, peer, 2) != "a\n" {
		t.Error(err)
	}
}

// A connection that cannot be set up is closed and reported.
func TestTuneFails(t *testing.T) {
	l := listen(t)
	tr := New(config())
	tr.tune = func(net.Conn, *Config) (queue, error) { return nil, errors.New("no such option") }
	_, err := tr.Dial(t.Context(), l.addr, nil)
	is(t, err, delivery.CauseOther, "no such option")
	if _, err := l.accept(t).Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("left open: %v", err)
	}
}

// fill sends batches of 64 records of 1 KiB until one fails, and returns the error and the number of records.
func fill(r *rig, most int) (n int, err error) {
	batch := make([]string, 64)
	for i := range batch {
		batch[i] = strings.Repeat("x", 1023)
	}
	for n < most {
		n += len(batch)
		if err = r.send(batch...); err != nil {
			return n, err
		}
	}
	return n, nil
}

// A peer that accepts and never reads: the write deadline ends the link. What its kernel acknowledged is delivered, what ours holds is
// bounded and goes back, and what was never handed over is requeued.
func TestPeerThatNeverReads(t *testing.T) {
	c := config()
	c.SendTimeout = 300 * time.Millisecond
	r, peer := pair(t, c)
	if err := peer.SetReadBuffer(64 << 10); err != nil {
		t.Fatal(err)
	}
	n, err := fill(r, 64<<10)
	is(t, err, delivery.CauseTimeout, "")
	if err := r.link.Close(); err != nil {
		t.Error(err)
	}
	r.mu.Lock()
	count := map[string]int{}
	last := ""
	for _, o := range r.outcomes {
		count[o]++
		if o != last && (o == "delivered" || last == "requeue") {
			if last != "" {
				t.Errorf("%q follows %q", o, last)
			}
		}
		last = o
	}
	r.mu.Unlock()
	if count["delivered"]+count[""]+count["requeue"] != n || len(count) > 3 {
		t.Errorf("%v of %d", count, n)
	}
	// Twice the send buffer is what Linux grants.
	if held := count[""] << 10; runtime.GOOS == "linux" && (held == 0 || held > 1<<20) {
		t.Errorf("our kernel held %d bytes; %v", held, count)
	}
	if sofar, err := io.ReadAll(peer); len(sofar)>>10 < count["delivered"] {
		t.Errorf("%d bytes arrived of %d records said to be delivered; %v", len(sofar), count["delivered"], err)
	}
}

// The same when the rest fits our kernel's buffer, so that no write waits: the kernel is asked without one.
func TestPeerThatNeverReadsALittle(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Log("settled at the write: nothing waits")
		return
	}
	c := config()
	c.SendTimeout = 300 * time.Millisecond
	r, peer := pair(t, c)
	if err := peer.SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	// The first part fills what the peer's kernel has room for, before it knows that its buffer is small; then a little follows.
	for r.delivered() == len(r.outcomes) {
		if _, err := fill(r, 64); err != nil {
			t.Fatal(err)
		}
		select {
		case <-r.link.Gone():
			t.Fatal(r.link.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
	is(t, r.gone(), delivery.CauseTimeout, "the peer takes nothing")
}

// Close ends a Send that waits, and nothing is settled once it has returned.
func TestCloseEndsSend(t *testing.T) {
	r, _ := pair(t, config())
	done := make(chan error, 1)
	go func() {
		_, err := fill(r, 1<<30)
		done <- err
	}()
	wait(t, func() bool { r.mu.Lock(); defer r.mu.Unlock(); return r.wire > 256<<10 }, func() string { return "nothing is written" })
	if err := r.link.Close(); err != nil {
		t.Error(err)
	}
	is(t, <-done, delivery.CauseTimeout, "given up")
	before := r.settled()
	r.link.Nudge()
	r.link.poll()
	if err := r.link.Close(); err == nil || r.settled() != before {
		t.Errorf("closed twice: %v; settled %s, then %s", err, before, r.settled())
	}
}

// Frames that the peer's kernel acknowledged are delivered although a RST follows: SIOCOUTQ still answers.
func TestBreakByReset(t *testing.T) {
	r, peer := pair(t, config())
	for i := range 10 {
		if err := r.send(fmt.Sprintf("record %d", i)); err != nil {
			t.Fatal(err)
		}
	}
	read(t, peer, 10*9)
	// Before anybody asks: the question comes after the RST.
	if err := errors.Join(peer.SetLinger(0), peer.Close()); err != nil {
		t.Fatal(err)
	}
	_ = r.gone()
	if err := r.link.Close(); err != nil {
		t.Error(err)
	}
	if got := r.settled(); got != "10 delivered" {
		t.Error(got)
	}
}

// An orderly goodbye: FIN behind the last frame, the peer reads all and answers, all is settled.
func TestDrain(t *testing.T) {
	r, peer := pair(t, config())
	if err := r.send("a", "b"); err != nil {
		t.Fatal(err)
	}
	got := make(chan string, 1)
	go func() {
		all, err := io.ReadAll(peer)
		if err != nil {
			t.Error(err)
		}
		got <- string(all)
		peer.Close()
	}()
	if err := r.link.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	if err := r.link.Close(); err != nil {
		t.Error(err)
	}
	if all := <-got; all != "a\nb\n" || r.settled() != "2 delivered" {
		t.Errorf("%q, %s", all, r.settled())
	}
	if r.unconfirmed != 0 {
		t.Errorf("%d unconfirmed after an orderly goodbye", r.unconfirmed)
	}
}

// A goodbye from a peer that does not read ends with its time, or with Close.
func TestDrainOfAStalledPeer(t *testing.T) {
	for name, end := range map[string]func(*rig, context.CancelFunc){
		"its time": func(_ *rig, cancel context.CancelFunc) { cancel() },
		"Close":    func(r *rig, _ context.CancelFunc) { r.link.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := pair(t, config())
			r.link.mu.Lock()
			r.link.ledger.unacked = func() (int, bool) { return 1 << 20, true } // nothing is ever acknowledged
			r.link.mu.Unlock()
			if err := r.send("a"); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := make(chan error, 1)
			go func() { done <- r.link.Drain(ctx) }()
			end(r, cancel)
			if err := <-done; err == nil {
				t.Error("no error, though a record is unsettled")
			}
			if got := r.settled(); got != "1 unsettled" {
				t.Error(got)
			}
		})
	}
}

// A stream that is over has nobody to say goodbye to.
func TestDrainOfABrokenStream(t *testing.T) {
	r, peer := pair(t, config())
	peer.Close()
	_ = r.gone()
	is(t, r.link.Drain(t.Context()), delivery.CausePeerClosed, "")
}

// panics is a connection whose reads run user code that panics.
type panics struct{ net.Conn }

func (panics) Read([]byte) (int, error) { panic("oops") }

// Nothing that the reader meets gets out.
func TestReaderPanics(t *testing.T) {
	a, b := net.Pipe()
	defer b.Close()
	tr := New(config())
	tr.dial = func(context.Context, string, string) (net.Conn, error) { return panics{a}, nil }
	r := dialRig(t, tr, netip.AddrPort{})
	is(t, r.gone(), delivery.CauseOther, "panic: oops")
}

// Once the buffers are there, a batch costs no allocation.
func TestSendAllocatesNothing(t *testing.T) {
	r, peer := pair(t, config())
	go func() { _, _ = io.Copy(io.Discard, peer) }()
	data := make([][]byte, 100)
	for i := range data {
		data[i] = []byte("a record of some length")
	}
	left := make(chan int, 1000)
	b := ship.NewBatch(data, func(from, to int, _ ship.Outcome) { left <- to - from })
	send := func() {
		if err := r.link.Send(context.Background(), b); err != nil {
			t.Fatal(err)
		}
		for n := 0; n < len(data); n += <-left {
		}
	}
	send()
	r.link.meter = nil
	r.link.wire.meter = nil
	if n := testing.AllocsPerRun(100, send); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// A giant passes, and its buffer is not kept.
func TestGiant(t *testing.T) {
	r, peer := pair(t, config())
	giant := strings.Repeat("x", 2<<20)
	done := make(chan error, 1)
	go func() { done <- r.send("a", giant, "b") }()
	if got := read(t, peer, len(giant)+5); got != "a\n"+giant+"\nb\n" {
		t.Error("the bytes differ")
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	r.eventually("3 delivered")
	if r.link.buf != nil {
		t.Errorf("%d bytes are kept", cap(r.link.buf))
	}
}

func TestLimits(t *testing.T) {
	c := config()
	c.PerAddr, c.MaxAge = 3, time.Minute
	want := ship.Limits{LinksPerAddr: 3, BatchBytes: 64 << 10, Window: 2*256<<10 + 64<<10, Faint: true, MaxAge: time.Minute}
	if got := New(c).Limits(); got != want {
		t.Errorf("%+v", got)
	}
}
