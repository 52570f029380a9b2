package gelf_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/gelf"
)

func ExampleNewHandler() {
	h, err := gelf.NewHandler("udp://graylog.example.org:12201", nil)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer h.Close() // sends what is left

	log := slog.New(h)
	log.Info("order paid", "order", 8731, "amount", 12.5)
}

// A wrong target or option is an error at once, and names what is wrong. A name that cannot be looked up is none: records wait
// for it.
func ExampleNewHandler_errors() {
	_, err := gelf.NewHandler("udp://graylog.example.org", nil)
	fmt.Println(err)
	_, err = gelf.NewHandler("udp://graylog.example.org:12201", &gelf.Options{ChunkSize: 100_000})
	fmt.Println(err)
	// Output:
	// gelf: target: no port; it is always required
	// gelf: option ChunkSize: 100000 is outside 64…65507
}

// Over TLS, with a private authority. A connection to each node behind the name lives for minutes, and messages take turns.
func ExampleNewHandler_tls() {
	pem, err := os.ReadFile("/etc/ssl/graylog-ca.pem")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	h, err := gelf.NewHandler("tls://graylog.example.org:12201", &gelf.Options{TLSConfig: &tls.Config{RootCAs: roots}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer h.Close()

	slog.New(h).Info("order paid", "order", 8731)
}

// By HTTPS each message is one request, or with Bulk part of one, and every node behind the name gets its share. User-info becomes
// Basic authentication; any other credentials are a header.
func ExampleNewHandler_https() {
	h, err := gelf.NewHandler("https://graylog.example.org:12202", &gelf.Options{
		Header: http.Header{"X-Log-Token": {os.Getenv("LOG_TOKEN")}},
		Bulk:   true, // only when the input has bulk receiving on
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer h.Close()

	slog.New(h).Info("order paid", "order", 8731)
}

// A message that 128 datagrams cannot carry goes by TCP, which takes 2 MiB; all others stay on UDP.
func ExampleOptions_fallback() {
	h, err := gelf.NewHandler("udp://graylog.example.org:12201", &gelf.Options{
		Fallback: "tcp://graylog.example.org:12201",
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer h.Close()

	slog.New(h).Info("report\n" + strings.Repeat("a long line\n", 50_000))
}

// In a process that may be frozen after any call, Sync sends inside the log call, and Ready looks the name up in the init phase.
func ExampleHandler_Ready() {
	h, err := gelf.NewHandler("udp://graylog.example.org:12201", &gelf.Options{
		Delivery: delivery.Options{Sync: true},
	})
	if err != nil {
		panic(err)
	}
	defer h.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := h.Ready(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "no log server yet:", err)
	}
}

// Attributes from the context of the log call stand beside those of the call.
func ExampleOptions() {
	type requestID struct{}
	h, err := gelf.NewHandler("udp://graylog.example.org:12201", &gelf.Options{
		Host:     "shop-1",
		Level:    slog.LevelDebug,
		Sequence: true,
		FromContext: func(ctx context.Context) []slog.Attr {
			if id, ok := ctx.Value(requestID{}).(string); ok {
				return []slog.Attr{slog.String("request_id", id)}
			}
			return nil
		},
		Delivery: delivery.Options{
			Overflow: delivery.DropOldest,
			OnDrop:   func(d delivery.Drop) { fmt.Fprintln(os.Stderr, d) },
		},
	})
	fmt.Println(h, err)
	if err == nil {
		h.Close()
	}
	// Output:
	// gelf.Handler{Target: "udp://graylog.example.org:12201", Host: shop-1} <nil>
}
