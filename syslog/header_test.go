package syslog

import "testing"

// RFC 3164 has a HOSTNAME on the network, and on a local socket where somebody asks for one.
func TestLocalHostname(t *testing.T) {
	for _, x := range []struct {
		o     Options
		local bool
		want  string
	}{
		{Options{Format: RFC3164, Hostname: "h"}, false, " h app[7]: "},
		{Options{Format: RFC3164, Hostname: "h"}, true, " h app[7]: "},
		{Options{Format: RFC3164}, false, " " + systemName(RFC3164) + " app[7]: "},
		{Options{Format: RFC3164}, true, " app[7]: "},
		{Options{Hostname: "h"}, true, " h app 7 - "},
		{Options{}, true, " " + systemName(RFC5424) + " app 7 - "},
	} {
		x.o.AppName, x.o.ProcID = "app", "7"
		if h := newHeader(x.o, x.local); h.names != x.want {
			t.Errorf("%v, local %v: %q, want %q", x.o, x.local, h.names, x.want)
		}
	}
}
