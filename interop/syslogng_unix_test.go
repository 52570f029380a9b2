//go:build linux

package interop

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/jitter"
	"github.com/wholelog/wholelog/syslog"
)

// soon keeps tests from waiting for a receiver that is back already.
func soon() delivery.Options {
	return delivery.Options{Backoff: jitter.Backoff{Base: 5 * time.Millisecond, Max: 20 * time.Millisecond}, CloseTimeout: patience}
}

// numbered logs the messages from, …, to-1.
func numbered(h slog.Handler, from, to int) {
	log := slog.New(h)
	for i := from; i < to; i++ {
		log.Info(strconv.Itoa(i))
	}
}

// leave stops syslog-ng, and removes what it leaves behind, as the start of a host does.
func (s *syslogNG) leave(t *testing.T) {
	t.Helper()
	s.stop(t, syscall.SIGTERM)
	for _, name := range []string{"stream", "dgram"} {
		if err := os.Remove(filepath.Join(s.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// A socket that is removed and made again, by a syslog-ng that ends and starts, costs nothing that syslog-ng had not taken: what is
// logged meanwhile waits, and arrives in order.
func TestR41_SyslogNGUnixSocket(t *testing.T) {
	t.Parallel()
	for _, source := range []string{"unix_stream", "unix_dgram"} {
		t.Run(source, func(t *testing.T) {
			t.Parallel()
			s := startSyslogNG(t)
			h := s.open(t, source, syslog.Options{Delivery: soon()})
			total := 0
			for range 3 {
				numbered(h, total, total+100)
				got := s.next(t, 100)
				s.leave(t)
				numbered(h, total+100, total+200)
				s.start(t)
				got = append(got, s.next(t, 100)...)
				for i, m := range got {
					if m.Source != source || m.Msg != strconv.Itoa(total+i) {
						t.Fatalf("message %d is %+v", total+i, m)
					}
				}
				total += 200
			}
			if err := h.Close(); err != nil {
				t.Error(err)
			}
			// Of a stream that ends the last second's messages are unconfirmed, though these were all read.
			if st := h.Stats(); st.Delivered != uint64(total) || st.Accepted != uint64(total) || st.Dropped+st.Resent != 0 {
				t.Errorf("%+v", st)
			}
		})
	}
}

// A syslog-ng that ends while messages are on their way takes along what its kernel had for it and it had not read. On a stream that is
// counted as unconfirmed, and of datagrams no more than the socket holds.
func TestSyslogNGUnixSocketEndsInBetween(t *testing.T) {
	t.Parallel()
	for _, source := range []string{"unix_stream", "unix_dgram"} {
		t.Run(source, func(t *testing.T) {
			t.Parallel()
			s := startSyslogNG(t)
			h := s.open(t, source, syslog.Options{Delivery: soon()})
			const total = 4000
			numbered(h, 0, total/2)
			s.leave(t)
			numbered(h, total/2, total)
			s.start(t)
			if err := h.Close(); err != nil {
				t.Error(err)
			}
			var got []parsed
			last := func(m parsed) bool { return m.Msg == strconv.Itoa(total-1) }
			until(t, "the last message arrives", func() bool { got = append(got, s.more(t)...); return slices.ContainsFunc(got, last) })
			times := map[string]int{}
			for _, m := range got {
				times[m.Msg]++
			}
			st, missing, twice := h.Stats(), total-len(times), len(got)-len(times)
			t.Logf("%d of %d messages are missing, %d came twice, %d unconfirmed, %d resent", missing, total, twice, st.Unconfirmed, st.Resent)
			if missing > int(st.Unconfirmed) || twice > int(st.Resent) {
				t.Errorf("more are missing than unconfirmed, or came twice than were resent: %+v", st)
			}
			if st.Accepted != total || st.Delivered != total || st.Dropped != 0 {
				t.Errorf("%+v", st)
			}
		})
	}
}
