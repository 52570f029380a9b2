package syslog_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/wholelog/wholelog/internal/fake/syslogd"
	"github.com/wholelog/wholelog/syslog"
)

func ExampleNewHandler() {
	receiver, err := syslogd.Listen("tcp", "", syslogd.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer receiver.Close()

	h, err := syslog.NewHandler("tcp://"+receiver.Addr(), &syslog.Options{Facility: syslog.Local3})
	if err != nil {
		fmt.Println(err)
		return
	}
	log := slog.New(h)
	log.Warn("disk is\nnearly full", "free", 0.03, slog.Group("disk", "name", "sda1"))
	if err := h.Close(); err != nil { // delivers what is pending
		fmt.Println(err)
	}

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := receiver.Wait(ctx, 1); err != nil {
		fmt.Println(err)
		return
	}
	m := receiver.Messages()[0]
	fmt.Println(m.Facility, m.Severity, m.Elements, m.Text)
	// Output: 19 4 [{attrs@32473 [{free 0.03} {disk.name sda1}]}] disk is\nnearly full
}
