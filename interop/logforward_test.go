//go:build linux

package interop

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wholelog/wholelog/syslog"
)

// open makes a handler that sends to HAProxy by UDP or TCP. Its connection stays, because HAProxy 2.6 never gives back one that the
// client closes.
func (r *relay) open(t *testing.T, scheme string, o syslog.Options) *syslog.Handler {
	t.Helper()
	o.Hostname, o.AppName, o.ProcID, o.MsgID, o.MaxSize = "host.example", "app", "7", "id", 8192
	if scheme == "tcp" {
		o.ConnAge = -1
	}
	rate := o.Delivery.RecordRate
	o.Delivery = soon()
	o.Delivery.RecordRate = rate
	return openSyslog(t, scheme+"://127.0.0.1:"+r.port, o)
}

// One connection that lives long, and HAProxy in front of three receivers: each message is whole at one of them, each of them has a
// third, and all fields are as they were logged.
func TestR47_LogForwardThirds(t *testing.T) {
	t.Parallel()
	r := startRelay(t)
	const total = 3134
	var o syslog.Options
	o.Delivery.RecordRate = 5000
	h := r.open(t, "tcp", o)
	log := slog.New(h).With("k", `a"b\c]d`)
	began := time.Now().Truncate(time.Microsecond) // as TIMESTAMP has it
	for i := range total {
		log.Info(strconv.Itoa(i), "i", i)
	}
	ended := time.Now()
	closeInTime(t, h)
	shares := r.shares(total)
	for i, m := range r.next(t, total) {
		sd := fmt.Sprintf(`[attrs@32473 k="a\"b\\c\]d" i="%d"]`, i)
		at, err := time.Parse(time.RFC3339Nano, m.Time)
		if !m.whole() || m.SD != sd || m.Msg != strconv.Itoa(i) || err != nil || at.Before(began) || at.After(ended) {
			t.Fatalf("message %d is %+v", i, m)
		}
	}
	if st := h.Stats(); st.Delivered != total || st.Reconnects+st.Resent+st.Dropped != 0 {
		t.Errorf("%+v", st)
	}
	t.Logf("%d messages on one connection, shares %v", total, shares)
}

// The same by datagrams, in groups that any receive buffer holds.
func TestR47_LogForwardThirdsUDP(t *testing.T) {
	t.Parallel()
	r := startRelay(t)
	const total, group = 3134, 100
	h := r.open(t, "udp", syslog.Options{})
	shares := r.shares(total)
	for from := 0; from < total; from += group {
		to := min(from+group, total)
		numbered(h, from, to)
		for i, m := range r.next(t, to-from) {
			if !m.whole() || m.SD != "-" || m.Msg != strconv.Itoa(from+i) {
				t.Fatalf("message %d is %+v", from+i, m)
			}
		}
	}
	closeInTime(t, h)
	t.Logf("%d messages, shares %v", total, shares)
}

// whole says whether the header is the one of [relay.open].
func (m received) whole() bool {
	return m.PRI == "134" && m.Version == "1" && m.Host == "host.example" && m.App == "app" && m.ProcID == "7" && m.MsgID == "id"
}

// HAProxy passes on what senders get wrong as it was logged, whatever the form.
func TestR25_R26_R28_R29_R83_LogForward(t *testing.T) {
	t.Parallel()
	r := startRelay(t)
	for _, scheme := range []string{"tcp", "udp"} {
		for _, form := range []struct {
			attrs syslog.Attrs
			judge func(received, [2]string, int) string
		}{
			{syslog.AttrsStructured, judgeStructured},
			{syslog.AttrsJSON, judgeJSON},
			{syslog.AttrsText, judgeText},
		} {
			t.Run(fmt.Sprint(scheme, " ", form.attrs), func(t *testing.T) {
				n := logHostile(t, scheme+"://127.0.0.1:"+r.port, syslog.Options{Attrs: form.attrs, MaxSize: 8192})
				for i, m := range r.next(t, n) {
					if bad := form.judge(m, hostile()[i], i); bad != "" || !m.whole() {
						t.Errorf("%d: %s: %+v", i, bad, m)
					}
				}
			})
		}
		t.Run(scheme+" size", func(t *testing.T) { r.size(t, scheme) })
	}
	t.Run("half-close", r.halfClose)
	t.Run("half-close standing still", func(t *testing.T) {
		r.signal(t, syscall.SIGSTOP)
		defer r.signal(t, syscall.SIGCONT)
		r.halfClose(t)
	})
}

// size sends messages up to the default of MaxSize, which arrive whole, and one that is longer and says what it lacks.
func (r *relay) size(t *testing.T, scheme string) {
	h := r.open(t, scheme, syslog.Options{})
	send := func(size int) received {
		slog.New(h).Info(strings.Repeat("x", size))
		return r.next(t, 1)[0]
	}
	header := len(send(1).Raw) - 1
	for _, size := range []int{480, 1023, 1024, 1025, 1432, 4096, 8191, 8192} {
		if m := send(size - header); len(m.Raw) != size || m.Msg != strings.Repeat("x", size-header) {
			t.Errorf("%d bytes of %d", len(m.Raw), size)
		}
	}
	m := send(9000)
	_, mark, _ := strings.Cut(m.Msg, "…[truncated ")
	if len(m.Raw) < 8150 || mark != fmt.Sprintf("%d bytes]", 9000-strings.Count(m.Msg, "x")) {
		t.Errorf("%d bytes, %q", len(m.Raw), mark)
	}
}

// halfClose closes a connection to HAProxy, which answers a half-close with nothing, ever. What was logged arrives all the same.
func (r *relay) halfClose(t *testing.T) {
	h := r.open(t, "tcp", syslog.Options{})
	numbered(h, 0, 300)
	closeInTime(t, h)
	r.signal(t, syscall.SIGCONT)
	for i, m := range r.next(t, 300) {
		if m.Msg != strconv.Itoa(i) {
			t.Fatalf("message %d is %+v", i, m)
		}
	}
}
