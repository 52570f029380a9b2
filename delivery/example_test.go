package delivery_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/wholelog/wholelog/delivery"
)

// A service that must not wait for its logs, and wants to hear of every loss.
func ExampleOptions() {
	opts := delivery.Options{
		QueueBytes:   64 << 20,
		Overflow:     delivery.DropOldest,
		CloseTimeout: 2 * time.Second,
		OnDrop: func(d delivery.Drop) {
			fmt.Println(d)
		},
	}
	fmt.Println(opts)
	opts.OnDrop(delivery.Drop{Records: 3, Bytes: 1200, Reason: delivery.ReasonEvicted})
	// Output:
	// delivery.Options{QueueBytes: 67108864, Overflow: DropOldest, CloseTimeout: 2s, OnDrop: set, OnError: unset}
	// delivery: 3 records (1.2 kB) dropped: evicted
}

func ExampleDrop() {
	var err error = delivery.Drop{Records: 1, Bytes: 250, Reason: delivery.ReasonQueueFull, Err: delivery.ErrQueueFull}

	var d delivery.Drop
	if errors.As(err, &d) {
		fmt.Println(d.Reason, d.Bytes)
	}
	fmt.Println(errors.Is(err, delivery.ErrQueueFull))
	// Output:
	// queue_full 250
	// true
}
