package syslog

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wholelog/wholelog/internal/fake/syslogd"
)

// The longest path that the kernel takes works, and a longer one is an error of NewHandler.
func TestLongestPath(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "wholelog") // that of the test is long already
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, strings.Repeat("x", maxPath-len(dir)-len("/")))
	for _, network := range []string{"unixgram", "unix"} {
		s, target, o := listen(t, network, path, syslogd.Options{}, Options{})
		h := dialled(t, target, o)
		slog.New(h).Info("m")
		if err := errors.Join(h.Flush(within(t)), s.Wait(within(t), 1), h.Close(), s.Close()); err != nil {
			t.Errorf("%s: %v", network, err)
		}
		_ = os.Remove(path)
	}
	if h, err := NewHandler("unix://"+path+"x", nil); h != nil || err == nil || !strings.Contains(err.Error(), "longer than 107 bytes") {
		t.Errorf("%v, %v", h, err)
	}
}
