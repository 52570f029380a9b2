package main

import (
	"context"
	"strings"
	"testing"

	"github.com/wholelog/wholelog/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

func TestArguments(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"more"}, `unexpected argument "more"`},
		{[]string{"-target", "udp://127.0.0.1:1", "-probe", "x.test"}, "-target and -probe cannot be combined"},
		{[]string{"-target", "127.0.0.1:1"}, "gelf: "},
		{[]string{"-target", "udp://127.0.0.1:1", "-probe", ""}, "-target and -probe cannot be combined"},
		{[]string{"-target="}, "-target is empty"},
		{[]string{"-probe", ""}, "-probe is empty"},
		{[]string{"-probe", "udp://x.test:12201"}, "-probe takes a name, not a URL"},
		{[]string{"-chunks", "3"}, "flag provided but not defined: -chunks"},
	} {
		var out, stderr strings.Builder
		err := run(t.Context(), tc.args, &out)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q: %v, want %q", tc.args, err, tc.want)
		}
		// A wrong target is gelf's finding; the command line was understood.
		wantCode, wantUsage := 2, 1
		if strings.HasPrefix(tc.want, "gelf") {
			wantCode, wantUsage = 1, 0
		}
		code := exitCode(err, &stderr)
		once := strings.Count(stderr.String(), tc.want) == 1 && strings.Count(stderr.String(), "Usage") == wantUsage
		if code != wantCode || !once || out.Len() > 0 {
			t.Errorf("%q: exit %d, stderr %q, stdout %q", tc.args, code, stderr.String(), out.String())
		}
	}
	var help strings.Builder
	if err := run(t.Context(), []string{"-h"}, &help); exitCode(err, &help) != 0 || !strings.Contains(help.String(), "-probe") {
		t.Errorf("-h: %v, %q", err, help.String())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := run(ctx, []string{"-probe", "quickstart.test"}, &help); err == nil {
		t.Error("a probe that was interrupted succeeds")
	}
}
