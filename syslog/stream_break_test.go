package syslog

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/fake/authority"
	"github.com/wholelog/wholelog/internal/fake/loopback"
	"github.com/wholelog/wholelog/jitter"
)

// A breaker is a receiver whose connections break, each after some bytes. In the end it has read all that its kernel ever acknowledged,
// unless it resets, so that its own count is exact: nothing may be missing.
type breaker struct {
	t      *testing.T
	addr   string
	breaks int // connections that break; those after them live
	tls    *tls.Config
	rng    *rand.Rand

	// then breaks a connection of which the first bytes were read, and reads what else there is.
	then func(b *breaker, c *net.TCPConn, got *bytes.Buffer)

	wg     sync.WaitGroup
	mu     sync.Mutex
	l      net.Listener
	closed bool
	conns  []*bytes.Buffer // complete when the connection has ended
	open   []net.Conn

	twice int // messages that arrived again, counted by check
}

func startBreaker(t *testing.T, seed uint64, breaks int, c *tls.Config, then func(*breaker, *net.TCPConn, *bytes.Buffer)) *breaker {
	t.Helper()
	addr, err := loopback.Addr()
	if err != nil {
		t.Fatal(err)
	}
	b := &breaker{t: t, addr: addr, breaks: breaks, tls: c, rng: rand.New(rand.NewPCG(seed, 1)), then: then}
	b.listen()
	t.Cleanup(b.stop)
	return b
}

// listen starts or restarts the receiver.
func (b *breaker) listen() {
	b.mu.Lock()
	defer b.mu.Unlock()
	l, err := net.Listen("tcp", b.addr)
	if err != nil {
		b.t.Error(err)
		return
	}
	if b.closed {
		l.Close()
		return
	}
	b.l = l
	b.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			b.take(c.(*net.TCPConn))
		}
	})
}

// take reads a connection up to where it breaks, if it does.
func (b *breaker) take(c *net.TCPConn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	got, n := new(bytes.Buffer), len(b.conns)
	limit := int64(b.rng.IntN(100_000))
	if n%3 == 0 {
		limit = int64(b.rng.IntN(40)) // somewhere in the first frame
	}
	b.conns, b.open = append(b.conns, got), append(b.open, c)
	var r io.Reader = c
	if b.tls != nil {
		r = tls.Server(c, b.tls)
	}
	b.wg.Go(func() {
		defer c.Close()
		if n < b.breaks {
			_ = c.SetReadBuffer(64 << 10) // so that something waits on our side, too
			if _, err := io.CopyN(got, r, limit); err != nil {
				return
			}
			b.then(b, c, got)
		}
		_, _ = io.Copy(got, r) // the end, or the reset of a client that gave up
	})
}

// count is how many connections there were, and the last of them.
func (b *breaker) count() (n int, last *bytes.Buffer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n = len(b.conns); n > 0 {
		last = b.conns[n-1]
	}
	return n, last
}

// stop ends everything and waits.
func (b *breaker) stop() {
	b.mu.Lock()
	b.closed = true
	b.l.Close()
	for _, c := range b.open {
		c.Close()
	}
	b.mu.Unlock()
	b.wg.Wait()
}

// frames takes what a connection brought apart, and returns the messages that are whole and what is left.
func frames(t *testing.T, framing Framing, s string) (whole []string, rest string) {
	t.Helper()
	for s != "" {
		if framing == Newline {
			line, after, ok := strings.Cut(s, "\n")
			if !ok {
				return whole, s
			}
			whole, s = append(whole, line), after
			continue
		}
		count, after, ok := strings.Cut(s, " ")
		if !ok && len(s) < 8 {
			return whole, s
		}
		n, err := strconv.Atoi(count)
		if err != nil || n <= 0 {
			t.Fatalf("behind %d frames: %.60q", len(whole), s)
		}
		if len(after) < n {
			return whole, s
		}
		whole, s = append(whole, after[:n]), after[n:]
	}
	return whole, ""
}

// check looks at all that arrived of n messages: every connection begins with a whole frame and goes on without a gap, every message is
// what was logged, and unless some may be missing, what was not read in full on one connection comes on the next before later ones. It
// returns those that never arrived, and in b.twice how many arrived again.
func (b *breaker) check(framing Framing, n int, text func(int) string, mayMiss bool) (missing []int) {
	b.t.Helper()
	times := make([]int, n+1)
	next := 1 // the one that must not come later
	for i, c := range b.conns {
		whole, rest := frames(b.t, framing, c.String())
		last := 0
		for j, raw := range whole {
			m := parsed(b.t, raw)
			v, _ := m.Param("meta", "sequenceId")
			seq, err := strconv.Atoi(v)
			if err != nil || seq < 1 || seq > n || m.Text != text(seq) {
				b.t.Fatalf("connection %d, frame %d is none of ours: %.200q", i, j, raw)
			}
			if j > 0 && seq != last+1 || j == 0 && seq > next && !mayMiss {
				b.t.Fatalf("connection %d, frame %d: %d follows %d, wanted %d at most", i, j, seq, last, next)
			}
			last = seq
			times[seq]++
		}
		next = max(next, last+1)
		if i == len(b.conns)-1 && rest != "" || framing == Newline && rest != "" && rest[0] != '<' {
			b.t.Errorf("connection %d ends with %.100q", i, rest)
		}
	}
	for seq, k := range times[1:] {
		if k == 0 {
			missing = append(missing, seq+1)
		}
		b.twice += max(k-1, 0)
	}
	return missing
}

// breakText is the text of message seq: of many lengths, some longer than what a peer's kernel takes.
func breakText(seq int) string {
	return fmt.Sprintf("%d:%s", seq, strings.Repeat(string(rune('a'+seq%26)), seq*7919%6000+seq%100/99*100_000))
}

// breakOptions are for a receiver at one address.
func breakOptions(framing Framing) Options {
	return Options{Framing: framing, Sequence: true, MaxSize: 200_000, Delivery: delivery.Options{
		QueueBytes: 1 << 20, MaxBlock: time.Minute, SendTimeout: 500 * time.Millisecond, Tries: 1000, OnError: func(error) {},
		Backoff: jitter.Backoff{Base: time.Millisecond, Max: 10 * time.Millisecond},
	}}
}

// R37, R40, R59: wherever in a frame a connection breaks, the message is sent again, whole, on the next one and before later ones; the
// sender's equation and the receiver's own count agree.
func TestR37_R40_R59_BrokenAnywhere(t *testing.T) {
	const n = 300
	ca := authority.New(t)
	for _, x := range []struct {
		scheme  string
		framing Framing
	}{{"tcp", OctetCounting}, {"tcp", Newline}, {"tls", OctetCounting}} {
		for how, then := range map[string]func(b *breaker, c *net.TCPConn, got *bytes.Buffer){
			"closed": func(_ *breaker, c *net.TCPConn, _ *bytes.Buffer) { _ = c.CloseWrite() },
			"stalled": func(b *breaker, c *net.TCPConn, got *bytes.Buffer) {
				// Nothing is read until the sender has given up and come again.
				eventually(b.t, func() bool { _, last := b.count(); return last != got })
			},
			"restarted": func(b *breaker, c *net.TCPConn, _ *bytes.Buffer) {
				b.mu.Lock()
				b.l.Close()
				b.mu.Unlock()
				_ = c.CloseWrite()
				<-time.After(20 * time.Millisecond) // some refusals; none is as good
				b.listen()
			},
		} {
			t.Run(fmt.Sprint(x.scheme, ", ", x.framing, ", ", how), func(t *testing.T) {
				t.Parallel()
				seed := rand.Uint64()
				t.Logf("seed %d", seed)
				breaks := 15
				if how == "stalled" {
					breaks = 3 // a SendTimeout each
				}
				o := breakOptions(x.framing)
				var c *tls.Config
				if x.scheme == "tls" {
					c, o.TLSConfig = certified(ca.Issue(time.Hour, "127.0.0.1")), &tls.Config{RootCAs: ca.Pool()}
				}
				b := startBreaker(t, seed, breaks, c, then)
				h := dialled(t, x.scheme+"://"+b.addr, o)
				log := slog.New(h)
				for i := range n {
					log.Info(breakText(i + 1))
				}
				logged, s := b.exhaust(h, n)
				if missing := b.check(x.framing, logged, breakText, false); len(missing) > 0 {
					t.Errorf("missing: %v", missing)
				}
				t.Logf("%d messages by %d connections, %d arrived twice, %d were sent again", logged, len(b.conns), b.twice, s.Resent)
				if s.Accepted != uint64(logged) || s.Delivered != uint64(logged) || s.Dropped != 0 || s.Pending != 0 || s.Unconfirmed != 0 {
					t.Errorf("of %d: %+v", logged, s)
				}
				if s.Resent < uint64(b.twice) || s.Reconnects == 0 {
					t.Errorf("%d arrived twice: %+v", b.twice, s)
				}
			})
		}
	}
}

// wait stops listening and returns when every connection has been read to its end.
func (b *breaker) wait() {
	b.mu.Lock()
	b.closed = true
	b.l.Close()
	b.mu.Unlock()
	b.wg.Wait()
}

// exhaust goes on logging until all connections have broken that are to, and closes h. It returns how many were logged in all.
func (b *breaker) exhaust(h *Handler, before int) (logged int, s delivery.Stats) {
	b.t.Helper()
	log := slog.New(h)
	logged = before
	eventually(b.t, func() bool {
		logged++
		log.Info(breakText(logged))
		conns, _ := b.count()
		return conns > b.breaks
	})
	if err := h.Flush(within(b.t)); err != nil {
		b.t.Fatalf("%v; %+v", err, h.Stats())
	}
	if err := h.Close(); err != nil {
		b.t.Error(err)
	}
	b.wait()
	return logged, h.Stats()
}
