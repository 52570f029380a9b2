//go:build linux

package interop

import (
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/wholelog/wholelog/syslog"
)

// Close says goodbye by half: what it returned for has arrived, and it returns when syslog-ng has said so or, when syslog-ng stands
// still, soon enough.
func TestR53_SyslogNGHalfClose(t *testing.T) {
	t.Parallel()
	s := startSyslogNG(t)
	for _, source := range []string{"syslog_tcp", "syslog_tls", "network_tcp", "unix_stream"} {
		for _, still := range []bool{false, true} {
			name, more := source, 5000
			if still {
				name, more = source+" standing still", 300 // which its kernel takes
			}
			t.Run(name, func(t *testing.T) {
				h := s.open(t, source, syslog.Options{Delivery: soon()})
				numbered(h, 0, 100)
				s.next(t, 100)
				if still {
					s.signal(t, syscall.SIGSTOP)
					defer s.signal(t, syscall.SIGCONT)
				}
				numbered(h, 100, 100+more)
				closeInTime(t, h)
				s.signal(t, syscall.SIGCONT)
				for i, m := range s.next(t, more) {
					if m.Msg != strconv.Itoa(100+i) {
						t.Fatalf("message %d is %+v", 100+i, m)
					}
				}
			})
		}
	}
}

// closeInTime closes h, which has to deliver everything within its CloseTimeout of [patience].
func closeInTime(t *testing.T, h *syslog.Handler) {
	t.Helper()
	begin := time.Now()
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	took := time.Since(begin)
	t.Logf("Close took %v", took.Round(time.Millisecond))
	if took > patience {
		t.Error("which is too long")
	}
	if st := h.Stats(); st.Delivered != st.Accepted || st.Resent+st.Unconfirmed != 0 {
		t.Errorf("%+v", st)
	}
}
