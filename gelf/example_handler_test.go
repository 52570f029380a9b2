package gelf_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/gelf"
	"github.com/wholelog/wholelog/internal/fake/gelfd"
	"github.com/wholelog/wholelog/resolve"
)

// Messages spread over all addresses of a name, or of a list. Stats tells how many each of them got.
func ExampleHandler_Stats() {
	var addrs []string
	for range 3 {
		graylog := must(gelfd.Listen("", gelfd.Options{}))
		defer graylog.Close()
		addrs = append(addrs, graylog.Addr().String())
	}

	h, err := gelf.NewHandler("udp://graylog.example.org:12201", &gelf.Options{
		Resolve: resolve.Options{Resolver: resolve.Static(addrs...)},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	log := slog.New(h)
	for i := range 300 {
		log.Info("order paid", "order", i)
	}
	if err := h.Close(); err != nil {
		fmt.Println(err)
	}

	s := h.Stats() // also after Close
	fmt.Println("accepted", s.Accepted, "delivered", s.Delivered, "dropped", s.Dropped, "pending", s.Pending)
	var sum uint64
	for _, e := range s.Endpoints {
		sum += e.Delivered
	}
	fmt.Println(len(s.Endpoints), "addresses got", sum)
	// Output:
	// accepted 300 delivered 300 dropped 0 pending 0
	// 3 addresses got 300
}

// A function that is frozen between calls: Ready in its init code, Flush before each call returns.
func ExampleHandler_Flush() {
	graylog := must(gelfd.Listen("", gelfd.Options{}))
	defer graylog.Close()

	h, err := gelf.NewHandler("udp://"+graylog.Addr().String(), &gelf.Options{
		Host:    "lambda",
		Flows:   1, // each of many processes keeps to one address and one flow
		Resolve: resolve.Options{Policy: resolve.PerProcess},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := h.Ready(ctx); err != nil {
		fmt.Println("no log server yet:", err) // no reason to fail: records wait for it
	}

	handle := func(ctx context.Context, order int) error {
		slog.New(h).InfoContext(ctx, "order paid", "order", order)
		return h.Flush(ctx)
	}
	fmt.Println(handle(ctx, 8731))
	show(graylog, 1)
	// Output:
	// <nil>
	// map[level:6 message:order paid order:8731 source:lambda]
}

// What a server answers is an error of the kind StatusError. Credentials that it does not accept are no loss yet: records wait.
func ExampleStatusError() {
	graylog := must(gelfd.ListenHTTP("", gelfd.HTTPOptions{Auth: "Basic c2hvcDpzM2NyZXQ="}))
	defer graylog.Close()

	wrong := make(chan error, 1)
	h, err := gelf.NewHandler("http://shop:0ld@"+graylog.Addr().String(), &gelf.Options{
		Delivery: delivery.Options{
			CloseTimeout: 100 * time.Millisecond,
			OnDrop:       func(delivery.Drop) {}, // else a line on standard error
			OnError: func(err error) {
				select {
				case wrong <- err:
				default:
				}
			},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	slog.New(h).Info("order paid")

	var status *gelf.StatusError
	if errors.As(<-wrong, &status) {
		fmt.Println(status.Status, status.Status == http.StatusUnauthorized)
	}
	err = h.Close()
	fmt.Println(errors.Is(err, delivery.ErrClosed), h.Stats().Reasons)
	// Output:
	// 401 true
	// true map[closed:1]
}

// Where each message went, and from which source port: Trace is told every choice, by the goroutine that sends.
func ExampleOptions_trace() {
	graylog := must(gelfd.Listen("", gelfd.Options{}))
	defer graylog.Close()

	ports := make(map[uint16]int)
	h, err := gelf.NewHandler("udp://"+graylog.Addr().String(), &gelf.Options{
		Flows: 2,
		Resolve: resolve.Options{Trace: func(c resolve.Choice) {
			ports[c.Local.Port()]++
			fmt.Println(c.Records, "record to the only address:", c.Addr == graylog.Addr())
		}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	log := slog.New(h)
	for range 3 {
		log.Info("order paid")
	}
	if err := h.Close(); err != nil {
		fmt.Println(err)
	}
	fmt.Println("from", len(ports), "source ports")
	// Output:
	// 1 record to the only address: true
	// 1 record to the only address: true
	// 1 record to the only address: true
	// from 2 source ports
}
