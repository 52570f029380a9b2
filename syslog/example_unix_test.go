//go:build unix

package syslog_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/wholelog/wholelog/internal/fake/syslogd"
	"github.com/wholelog/wholelog/syslog"
)

// The local daemon, by its socket. One that is removed and made again, as by a daemon that restarts, is found again.
func ExampleNewHandler_unix() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "log") // in the place of /dev/log
	receiver := listen("unixgram", socket, syslogd.Options{})
	defer receiver.Close()

	h, err := syslog.NewHandler("unix://"+socket, &syslog.Options{Facility: syslog.Daemon})
	if err != nil {
		fmt.Println(err)
		return
	}
	slog.New(h).Info("started")
	if err := h.Close(); err != nil {
		fmt.Println(err)
	}

	for _, m := range received(receiver, 1) {
		fmt.Println(m.Facility, m.Text)
	}
	// Output: 3 started
}
