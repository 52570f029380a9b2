package gelf_test

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/wholelog/wholelog/gelf"
	"github.com/wholelog/wholelog/internal/fake/gelfd"
)

func ExampleNewHandler() {
	graylog := must(gelfd.Listen("", gelfd.Options{}))
	defer graylog.Close()

	h, err := gelf.NewHandler("udp://"+graylog.Addr().String(), &gelf.Options{Host: "web-1"})
	if err != nil {
		fmt.Println(err) // the target or an option is wrong
		return
	}
	log := slog.New(h).With("service", "checkout")
	log.Info("order paid", "order", 8731, slog.Group("cart", "items", 3, "amount", 12.5))
	if err := h.Close(); err != nil { // delivers what is pending
		fmt.Println(err)
	}

	show(graylog, 1)
	// Output: map[cart_amount:12.5 cart_items:3 level:6 message:order paid order:8731 service:checkout source:web-1]
}

// Over TCP a record counts as delivered when the receiver's kernel has it. A connection to each address lives for minutes, and
// messages take turns over all of them.
func ExampleNewHandler_tcp() {
	graylog := must(gelfd.ListenTCP("", gelfd.TCPOptions{}))
	defer graylog.Close()

	h, err := gelf.NewHandler("tcp://"+graylog.Addr().String(), &gelf.Options{Host: "web-1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	slog.New(h).Warn("stock is low", "article", 17)
	if err := h.Close(); err != nil {
		fmt.Println(err)
	}

	show(graylog, 1)
	// Output: map[article:17 level:4 message:stock is low source:web-1]
}

// With a private authority. Certificates are verified always, for the name in the target.
func ExampleNewHandler_tls() {
	server, roots := certificate()
	graylog := must(gelfd.ListenTCP("", gelfd.TCPOptions{TLS: server}))
	defer graylog.Close()

	h, err := gelf.NewHandler("tls://"+graylog.Addr().String(), &gelf.Options{
		Host:      "web-1",
		TLSConfig: &tls.Config{RootCAs: roots},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	slog.New(h).Info("order paid", "order", 8731)
	if err := h.Close(); err != nil {
		fmt.Println(err)
	}

	show(graylog, 1)
	// Output: map[level:6 message:order paid order:8731 source:web-1]
}

// By HTTP each message is one request, or with Bulk part of one. User-info becomes Basic authentication; other credentials are
// header fields. Neither is ever shown.
func ExampleNewHandler_http() {
	graylog := must(gelfd.ListenHTTP("", gelfd.HTTPOptions{Auth: "Basic c2hvcDpzM2NyZXQ="}))
	defer graylog.Close()

	opts := gelf.Options{Host: "web-1", Header: http.Header{"X-Tenant": {"blue"}}}
	h, err := gelf.NewHandler("http://shop:s3cret@"+graylog.Addr().String()+"/gelf", &opts)
	if err != nil {
		fmt.Println(err)
		return
	}
	slog.New(h).Info("order paid", "order", 8731)
	if err := h.Close(); err != nil {
		fmt.Println(err)
	}

	show(graylog, 1)
	request := graylog.Requests()[0]
	fmt.Println(request.Method, request.URI, request.Header.Get("X-Tenant"), request.Status)
	fmt.Println(opts)
	// Output:
	// map[level:6 message:order paid order:8731 source:web-1]
	// POST /gelf blue 202
	// gelf.Options{Level: unset, ReplaceAttr: unset, FromContext: unset, Host: web-1, Header: {X-Tenant: ***}, TLSConfig: unset, Resolve: {Resolver: unset, Check: unset, Trace: unset}, Delivery: {OnDrop: unset, OnError: unset}}
}

// With bulk receiving switched on in the input, several messages share a request.
func ExampleNewHandler_bulk() {
	graylog := must(gelfd.ListenHTTP("", gelfd.HTTPOptions{Bulk: true}))
	defer graylog.Close()

	h, err := gelf.NewHandler("http://"+graylog.Addr().String(), &gelf.Options{Host: "web-1", Bulk: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	log := slog.New(h)
	for order := range 1000 {
		log.Info("order paid", "order", order)
	}
	if err := h.Close(); err != nil {
		fmt.Println(err)
	}

	fmt.Println(graylog.Stats().Messages, "messages")
	// Output: 1000 messages
}

// A wrong target or option is an error at once, and names what is wrong. A name that cannot be looked up is none: records wait
// for it.
func ExampleNewHandler_errors() {
	_, err := gelf.NewHandler("udp://graylog.example.org", nil)
	fmt.Println(err)
	_, err = gelf.NewHandler("udp://graylog.example.org:12201", &gelf.Options{ChunkSize: 100_000})
	fmt.Println(err)
	_, err = gelf.NewHandler("tcp://graylog.example.org:12201", &gelf.Options{Compression: gelf.CompressGzip})
	fmt.Println(err)
	// Output:
	// gelf: target: no port; it is always required
	// gelf: option ChunkSize: 100000 is outside 64…65507
	// gelf: option Compression: gzip does not apply to tcp
}
