package syslog

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/fake/syslogd"
)

// What stands at the path instead of a socket is named in the error, and when a receiver takes its place the records arrive.
func TestUnixPathThatIsNoSocket(t *testing.T) {
	for name, x := range map[string]struct {
		make  func(path string) error
		want  string
		cause delivery.Cause
	}{
		"nothing":     {func(string) error { return nil }, "no such file", delivery.CauseRefused},
		"a file":      {func(p string) error { return os.WriteFile(p, nil, 0o600) }, "no socket: ", delivery.CauseRefused},
		"a directory": {func(p string) error { return os.Mkdir(p, 0o700) }, "no socket: ", delivery.CauseRefused},
		"a dead link": {func(p string) error { return os.Symlink(p+".gone", p) }, "no such file", delivery.CauseRefused},
		"an old socket": {
			func(p string) error {
				l, err := net.ListenPacket("unixgram", p)
				if err != nil {
					return err
				}
				return l.Close() // the file stays, as after a crash
			}, "refused", delivery.CauseRefused,
		},
		"another kind": {
			func(p string) error {
				l, err := net.Listen("unixpacket", p)
				if err == nil {
					t.Cleanup(func() { l.Close() })
				}
				return err
			}, "wrong type for socket", delivery.CauseOther,
		},
	} {
		path := filepath.Join(t.TempDir(), "log")
		if err := x.make(path); err != nil {
			t.Fatal(err)
		}
		h := dialled(t, "unix://"+path, Options{Delivery: quick})
		slog.New(h).Info("m")
		err := h.Ready(within(t))
		if err == nil || !strings.Contains(err.Error(), x.want) || !strings.HasPrefix(err.Error(), "syslog: ") {
			t.Errorf("%s: %v", name, err)
		}
		if refusals(h, x.cause) == 0 {
			t.Errorf("%s: %+v", name, h.Stats())
		}
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		s, _, _ := listen(t, "unixgram", path, syslogd.Options{}, Options{})
		if err := errors.Join(h.Flush(within(t)), s.Wait(within(t), 1)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if st := h.Stats(); st.Accepted != 1 || st.Delivered != 1 {
			t.Errorf("%s: %+v", name, st)
		}
	}
}

// A receiver that does not read fills its queue: then the socket takes nothing, records wait, and no log call does. Each write is given
// up after SendTimeout. When the receiver reads again it gets every record, once and in order.
func TestUnixSlowReceiver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	d := quick
	d.SendTimeout = 50 * time.Millisecond
	h := dialled(t, "unix://"+path, Options{Delivery: d})
	log, n := slog.New(h), 0
	eventually(t, func() bool { // the kernel has room for a while
		for range 10 { // at most ten thousand a second, which our own queue takes for long
			log.Info(fmt.Sprint(n))
			n++
		}
		return refusals(h, delivery.CauseTimeout)+refusals(h, delivery.CauseBusy) >= 3
	})
	if s := h.Stats(); s.Waits != 0 || s.Dropped != 0 || s.Pending == 0 || s.Delivered == 0 {
		t.Errorf("%+v", s)
	}
	if err := l.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 8192)
	for i := range n {
		size, err := l.Read(buf)
		if err != nil {
			t.Fatalf("%d of %d: %v", i, n, err)
		}
		if m := parsed(t, string(buf[:size])); m.Text != fmt.Sprint(i) {
			t.Fatalf("%s at %d", m.Text, i)
		}
	}
	if err := h.Flush(within(t)); err != nil {
		t.Fatal(err)
	}
	if s := h.Stats(); s.Accepted != uint64(n) || s.Delivered != uint64(n) || s.Resent != 0 || s.Dropped != 0 {
		t.Errorf("of %d: %+v", n, s)
	}
}

// Close does not wait for such a receiver beyond its time, and counts what it had to drop.
func TestUnixCloseWhileTheReceiverIsSlow(t *testing.T) {
	for _, network := range []string{"unixgram", "unix"} {
		path := filepath.Join(t.TempDir(), "log")
		var l interface{ Close() error }
		var err error
		if network == "unix" {
			l, err = net.Listen(network, path)
		} else {
			l, err = net.ListenPacket(network, path)
		}
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		d := quick
		d.QueueBytes, d.CloseTimeout, d.MaxBlock, d.OnDrop = 1<<20, 100*time.Millisecond, time.Nanosecond, func(delivery.Drop) {}
		h := dialled(t, "unix://"+path, Options{Delivery: d})
		log := slog.New(h)
		eventually(t, func() bool {
			for range 100 {
				log.Info(strings.Repeat("x", 1000))
			}
			return h.Stats().Dropped > 0 // until our own queue is full as well
		})
		err = h.Close()
		s := h.Stats()
		if !errors.Is(err, delivery.ErrClosed) || s.Reasons[delivery.ReasonClosed] == 0 || s.Accepted != s.Delivered+s.Dropped || s.Pending != 0 {
			t.Errorf("%s: %v, %+v", network, err, s)
		}
	}
}

// A message that the socket cannot carry is one drop that says why, and those around it arrive.
func TestUnixTooLong(t *testing.T) {
	for _, sync := range []bool{false, true} {
		var drops []delivery.Drop
		s, target, o := listen(t, "unixgram", "", syslogd.Options{}, Options{MaxSize: 4 << 20, Delivery: delivery.Options{
			Sync: sync, SyncTimeout: time.Minute, OnDrop: func(d delivery.Drop) { drops = append(drops, d) },
		}})
		h := dialled(t, target, o)
		for i := range 30 {
			size := 100
			if i%10 == 5 {
				size = 3 << 20
			}
			err := h.Handle(t.Context(), info(strings.Repeat("x", size), slog.Int("i", i)))
			var d delivery.Drop
			if lost := errors.As(err, &d); lost != (sync && size > 100) || lost && (d.Reason != delivery.ReasonTooLarge || !strings.Contains(err.Error(), "too long")) {
				t.Errorf("Sync %v, %d: %v", sync, i, err)
			}
		}
		if err := errors.Join(h.Flush(within(t)), s.Wait(within(t), 27), h.Close()); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range s.Messages() {
			i, _ := m.Param("attrs@32473", "i")
			got = append(got, i)
		}
		var want []string
		for i := range 30 {
			if i%10 != 5 {
				want = append(want, fmt.Sprint(i))
			}
		}
		st := h.Stats()
		if !slices.Equal(got, want) || st.Delivered != 27 || st.Reasons[delivery.ReasonTooLarge] != 3 || st.Dropped != 3 || st.Resent != 0 {
			t.Errorf("Sync %v: %v, %+v", sync, got, st)
		}
		sum := 0
		for _, d := range drops {
			sum += d.Records
			if d.Reason != delivery.ReasonTooLarge || !strings.Contains(d.Err.Error(), "too long") {
				t.Errorf("Sync %v: %v", sync, d)
			}
		}
		if sum != 3 {
			t.Errorf("Sync %v: OnDrop heard of %d", sync, sum)
		}
	}
}

// A new receiver at the same path is found when the old one is gone, and the old one has everything until then.
func TestR41_ReceiverReplaced(t *testing.T) {
	for _, network := range []string{"unixgram", "unix"} {
		path := filepath.Join(t.TempDir(), "log")
		h := dialled(t, "unix://"+path, Options{Delivery: quick})
		log := slog.New(h)
		before, _, _ := listen(t, network, path, syslogd.Options{Framing: syslogd.Lines}, Options{})
		total := 0
		for round := range 5 {
			for range 10 {
				log.Info(fmt.Sprint(total))
				total++
			}
			if err := errors.Join(h.Flush(within(t)), before.Wait(within(t), 10)); err != nil {
				t.Fatal(err)
			}
			for i, m := range before.Messages() {
				if m.Text != fmt.Sprint(round*11+i) {
					t.Errorf("%s, round %d: %s at %d", network, round, m.Text, i)
				}
			}
			if err := os.Rename(path, path+".old"); err != nil {
				t.Fatal(err)
			}
			log.Info(fmt.Sprint(total)) // it is connected, and knows nothing of names
			total++
			if err := errors.Join(h.Flush(within(t)), before.Wait(within(t), 11)); err != nil {
				t.Fatal(err)
			}
			before.Close()
			before, _, _ = listen(t, network, path, syslogd.Options{Framing: syslogd.Lines}, Options{})
		}
		if s := h.Stats(); s.Delivered != uint64(total) || s.Dropped != 0 {
			t.Errorf("%s: %+v", network, s)
		}
	}
}
