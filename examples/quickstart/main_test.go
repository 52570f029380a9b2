package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
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
		{[]string{"-chunks", "3"}, "flag provided but not defined: -chunks"},
	} {
		err := run(t.Context(), tc.args, &bytes.Buffer{})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q: %v, want %q", tc.args, err, tc.want)
		}
	}
	var help strings.Builder
	if err := run(t.Context(), []string{"-h"}, &help); !errors.Is(err, flag.ErrHelp) || !strings.Contains(help.String(), "-probe") {
		t.Errorf("-h: %v, %q", err, help.String())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := run(ctx, []string{"-probe", "quickstart.test"}, &help); err == nil {
		t.Error("a probe that was interrupted succeeds")
	}
}
