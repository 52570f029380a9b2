package gelf_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/wholelog/wholelog/gelf"
	"github.com/wholelog/wholelog/internal/fake/gelfd"
)

// Attributes from the context of the log call stand beside those of the call, and ReplaceAttr hides what nobody may read.
func ExampleOptions() {
	graylog := must(gelfd.ListenTCP("", gelfd.TCPOptions{}))
	defer graylog.Close()

	type requestID struct{}
	level := new(slog.LevelVar)
	h, err := gelf.NewHandler("tcp://"+graylog.Addr().String(), &gelf.Options{
		Host:  "shop-1",
		Level: level,
		FromContext: func(ctx context.Context) []slog.Attr {
			if id, ok := ctx.Value(requestID{}).(string); ok {
				return []slog.Attr{slog.String("request_id", id)}
			}
			return nil
		},
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == "card" {
				return slog.String("card", "****")
			}
			return a
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(h.String() == `gelf.Handler{Target: "tcp://`+graylog.Addr().String()+`", Host: shop-1}`)

	log := slog.New(h)
	ctx := context.WithValue(context.Background(), requestID{}, "r-1")
	log.InfoContext(ctx, "paying", "card", "4111111111111111")
	log.Debug("not logged")
	level.Set(slog.LevelDebug)
	log.Debug("logged")
	if err := h.Close(); err != nil {
		fmt.Println(err)
	}

	show(graylog, 2)
	// Output:
	// true
	// map[card:**** level:6 message:paying request_id:r-1 source:shop-1]
	// map[level:7 message:logged source:shop-1]
}

// Sequence makes gaps visible, and AddSource the place of the log call.
func ExampleOptions_sequence() {
	graylog := must(gelfd.ListenTCP("", gelfd.TCPOptions{}))
	defer graylog.Close()

	h, err := gelf.NewHandler("tcp://"+graylog.Addr().String(), &gelf.Options{Sequence: true, AddSource: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	log := slog.New(h)
	log.Info("one")
	log.Info("two")
	if err := h.Close(); err != nil {
		fmt.Println(err)
	}

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := graylog.Wait(ctx, 2); err != nil {
		fmt.Println(err)
	}
	for _, m := range graylog.Messages() {
		run, _ := m.Fields["run"].(string) // the same in all messages of a handler
		fmt.Println(m.Fields["message"], m.Fields["seq"], len(run), m.Fields["source_function"])
	}
	// Output:
	// one 1 16 github.com/wholelog/wholelog/gelf_test.ExampleOptions_sequence
	// two 2 16 github.com/wholelog/wholelog/gelf_test.ExampleOptions_sequence
}

// A message that 128 datagrams cannot carry goes by TCP, which takes 2 MiB; all others stay on UDP.
func ExampleOptions_fallback() {
	udp := must(gelfd.Listen("", gelfd.Options{}))
	defer udp.Close()
	tcp := must(gelfd.ListenTCP("", gelfd.TCPOptions{}))
	defer tcp.Close()

	h, err := gelf.NewHandler("udp://"+udp.Addr().String(), &gelf.Options{
		Compression: gelf.CompressNone,
		Fallback:    "tcp://" + tcp.Addr().String(),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	log := slog.New(h)
	log.Info("a short line")
	log.Info("report\n" + strings.Repeat("a long line\n", 50_000))
	if err := h.Close(); err != nil {
		fmt.Println(err)
	}

	s := h.Stats()
	fmt.Println("delivered", s.Delivered, "diverted", s.Diverted, "truncated", s.Truncated)
	// Output: delivered 2 diverted 1 truncated 0
}

// Without a fallback such a message is cut at a character's boundary, marked with the number of bytes left out, and counted.
func ExampleOversize() {
	graylog := must(gelfd.Listen("", gelfd.Options{}))
	defer graylog.Close()

	h, err := gelf.NewHandler("udp://"+graylog.Addr().String(), &gelf.Options{
		Host: "web-1", ChunkSize: 512, Compression: gelf.CompressNone,
		Oversize: gelf.OversizeTruncate, // the default
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	slog.New(h).Info(strings.Repeat("x", 100_000))
	if err := h.Close(); err != nil {
		fmt.Println(err)
	}

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := graylog.Wait(ctx, 1); err != nil {
		fmt.Println(err)
		return
	}
	m := graylog.Messages()[0]
	cut, _ := m.Fields["truncated"].(int64)
	text, _ := m.Fields["message"].(string)
	fmt.Println(len(m.Sizes), "datagrams;", h.Stats().Truncated, "truncated;", int64(len(text))+cut, "bytes kept and cut")
	// Output: 128 datagrams; 1 truncated; 100000 bytes kept and cut
}
