package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/gelf"
	"github.com/wholelog/wholelog/syslog"
)

// nobody is an address where nothing listens.
const nobody = "127.0.0.1:1"

// Troubles come first, and most of them pass: records wait. What is lost in the end is told with its reason. Both hooks are called by
// a goroutine of their own, never at once, and Close returns after the last call.
func ExampleOptions_hooks() {
	trouble := make(chan error, 1)
	lost := make(map[delivery.Reason]int)
	h, err := gelf.NewHandler("tcp://"+nobody, &gelf.Options{Delivery: delivery.Options{
		CloseTimeout: time.Millisecond,
		OnError: func(err error) {
			select {
			case trouble <- err:
			default: // the same again, a second later at the earliest
			}
		},
		OnDrop: func(d delivery.Drop) { lost[d.Reason] += d.Records },
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	log := slog.New(h)
	for i := range 3 {
		log.Info("order paid", "order", i)
	}
	fmt.Println(<-trouble)

	err = h.Close()
	fmt.Println(errors.Is(err, delivery.ErrClosed), lost)
	// Output:
	// gelf: connect to 127.0.0.1:1: connect: connection refused
	// true map[closed:3]
}

// With Sync the log call sends, and its error is the caller's to see where slog does not swallow it. There is nothing to flush: for
// programs that end or are frozen after any call.
func ExampleOptions_sync() {
	h, err := syslog.NewHandler("tcp://"+nobody, &syslog.Options{Delivery: delivery.Options{
		Sync:        true,
		SyncTimeout: time.Minute,    // a refused connection does not take that long
		OnError:     func(error) {}, // else standard error has a line of both
		OnDrop:      func(delivery.Drop) {},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Close()

	err = h.Handle(context.Background(), slog.NewRecord(time.Now(), slog.LevelInfo, "backup is done", 0))
	var d delivery.Drop
	if errors.As(err, &d) {
		fmt.Println(d.Records, d.Reason, d.Addr)
	}
	// Output: 1 sync_failed 127.0.0.1:1
}

// A log call never waits with DropNewest and DropOldest, and memory is bounded: what finds no room is counted by reason.
func ExampleOverflow() {
	h, err := gelf.NewHandler("tcp://"+nobody, &gelf.Options{Delivery: delivery.Options{
		QueueBytes:   512 << 10,
		Overflow:     delivery.DropNewest,
		CloseTimeout: time.Millisecond,
		OnError:      func(error) {},
		OnDrop:       func(delivery.Drop) {},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	log := slog.New(h)
	for range 1000 {
		log.Info(strings.Repeat("x", 2000))
	}
	s := h.Stats()
	fmt.Println("waits:", s.Waits, "kept:", s.Pending > 0, "dropped:", s.Reasons[delivery.ReasonQueueFull] == s.Dropped)
	_ = h.Close() // says how many were left

	s = h.Stats()
	fmt.Println("accepted", s.Accepted, "dropped", s.Dropped)
	// Output:
	// waits: 0 kept: true dropped: true
	// accepted 1000 dropped 1000
}

// What an alert is put on: nothing may ever be lost, and nothing may wait for long.
func ExampleStats() {
	alert := func(s delivery.Stats) string {
		switch {
		case s.Dropped > 0:
			return fmt.Sprintf("%d records lost: %v", s.Dropped, s.Reasons)
		case s.OldestPending > time.Minute:
			return fmt.Sprintf("%d records wait, the oldest for %v", s.Pending, s.OldestPending)
		}
		return "well"
	}
	fmt.Println(alert(delivery.Stats{Accepted: 10, Delivered: 10}))
	fmt.Println(alert(delivery.Stats{Accepted: 10, Delivered: 7, Pending: 3, OldestPending: 2 * time.Minute}))
	fmt.Println(alert(delivery.Stats{Accepted: 10, Delivered: 8, Dropped: 2, Reasons: map[delivery.Reason]uint64{delivery.ReasonClosed: 2}}))
	// Output:
	// well
	// 3 records wait, the oldest for 2m0s
	// 2 records lost: map[closed:2]
}
