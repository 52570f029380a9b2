package syslog

import (
	"errors"
	"io/fs"
	"log/slog"
	"math"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/wholelog/wholelog/delivery"
)

// A receiver that ends takes along what it has not read. The handler cannot know what that was, but how many at most, and says so with
// the first message that is refused.
func TestR50_LocalReceiverEndsUnread(t *testing.T) {
	for name, x := range map[string]struct{ logged, read, want int }{
		"everything was read":  {logged: 5, read: 5, want: 1}, // the last: nobody asked after it
		"the last two are not": {logged: 7, read: 5, want: 2},
		"nothing was":          {logged: 4, read: 0, want: 4},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "log")
			receiver := receive(t, path)
			h := dialled(t, "unix://"+path, Options{Delivery: delivery.Options{OnError: func(error) {}}})
			log := slog.New(h)
			for i := range x.logged {
				log.Info("m")
				if err := h.Flush(within(t)); err != nil { // the kernel has it
					t.Fatal(err)
				}
				if i < x.read {
					read(t, receiver)
				}
			}
			closed(t, receiver, path)
			again := receive(t, path)
			defer again.Close()
			log.Info("m")
			if err := h.Flush(within(t)); err != nil {
				t.Fatal(err)
			}
			read(t, again)
			if s := h.Stats(); s.Unconfirmed != uint64(x.want) || s.Delivered != uint64(x.logged+1) || s.Dropped != 0 || s.Pending != 0 {
				t.Errorf("%d are unconfirmed, want %d: %+v", s.Unconfirmed, x.want, s)
			}
		})
	}
}

func receive(t *testing.T, path string) *net.UnixConn {
	t.Helper()
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func read(t *testing.T, c *net.UnixConn) {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1024)); err != nil {
		t.Fatal(err)
	}
}

// closed ends a receiver and removes what it leaves behind.
func closed(t *testing.T, c *net.UnixConn, path string) {
	t.Helper()
	if err := errors.Join(c.Close(), os.Remove(path)); err != nil {
		t.Fatal(err)
	}
}

func TestBacklog(t *testing.T) {
	unread := 0
	k := backlog{bytes: func() (int, bool) { return unread, true }, most: 3}
	batch := func(n int) {
		k.ask()
		for range n {
			k.sent()
		}
	}
	is := func(step string, want int) {
		t.Helper()
		if got := k.lost(os.NewSyscallError("write", errRefused)); got != want {
			t.Errorf("%s: %d, want %d", step, got, want)
		}
	}
	is("nothing was sent", 0)
	batch(1)
	is("one", 1)
	batch(2)
	is("two, after the first was read", 2)
	unread = 1000
	batch(1)
	is("one more, and the others are not read", 3)
	batch(5)
	is("more than the socket holds", 3)
	unread = 0
	k.ask()
	is("a receiver that is gone looks like one that has read everything", 3)
	k.sent()
	is("this one is not gone", 1)
	for _, err := range []error{nil, errBusy, os.ErrDeadlineExceeded, net.ErrClosed} {
		if n := k.lost(err); n != 0 {
			t.Errorf("%v: %d", err, n)
		}
	}
	k.bytes = newBacklog(nil).bytes
	batch(2)
	is("nobody can tell", 3)
	if k := newBacklog(nil); k.most != 0 {
		t.Errorf("without a kernel that can be asked up to %d are counted", k.most)
	}
}

func TestQueueLength(t *testing.T) {
	for setting, want := range map[string]int{"10\n": 11, "512": 513, "0": 1, "": math.MaxInt, "x": math.MaxInt, "-1": math.MaxInt, "9223372036854775807": math.MaxInt} {
		if got := queueLength([]byte(setting), nil); got != want {
			t.Errorf("%q: %d, want %d", setting, got, want)
		}
	}
	if got := queueLength([]byte("10"), fs.ErrPermission); got != math.MaxInt {
		t.Errorf("%d", got)
	}
}
