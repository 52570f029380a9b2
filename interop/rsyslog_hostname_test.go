//go:build linux

package interop

import (
	"log/slog"
	"testing"

	"github.com/wholelog/wholelog/syslog"
)

// Whatever a host is called, rsyslog finds HOSTNAME, TAG and text of RFC 3164 where they belong.
func TestRsyslogHostnamesOfRFC3164(t *testing.T) {
	r := startRsyslog(t)
	for name, want := range map[string]string{
		"web-1.example.test": "web-1.example.test", "192.0.2.1": "192.0.2.1", "2001:db8::1": "2001_db8__1",
		"größe": "gr__e", "a/b": "a_b", "h_": "h", "-": "localhost", "<1>[x]: ": "_1__x",
	} {
		h := openSyslog(t, "tcp://127.0.0.1:"+r.tcp, syslog.Options{Format: syslog.RFC3164, Hostname: name, AppName: "app", ProcID: "7"})
		slog.New(h).Info("text")
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		if m := r.messages(t, 1)[0]; m.Host != want || m.App != "app" || m.ProcID != "7" || m.Msg != " text" {
			t.Errorf("%s: %+v", name, m)
		}
	}
}
