package benchmarks

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	stdsyslog "log/syslog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/RackSec/srslog"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/yardstick"
	"github.com/wholelog/wholelog/syslog"
)

// drainStreams is sink for TCP: it reads every connection and throws away what comes.
func drainStreams(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				// Not io.Copy to io.Discard: its 8 KiB at a time would make the sink the bottleneck.
				buf := make([]byte, 256<<10)
				for {
					if _, err := conn.Read(buf); err != nil {
						return
					}
				}
			}()
		}
	}()
	return nil
}

// ready is a text of 330 bytes that needs no escapes, as applications log it.
var ready = strings.ReplaceAll(yardstick.Text(330, 1), "\n", " ")

// BenchmarkSrslogFormat is srslog's RFC 5424 formatter alone.
func BenchmarkSrslogFormat(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		srslog.RFC5424Formatter(srslog.LOG_INFO|srslog.LOG_LOCAL0, "host", "tag", ready)
	}
}

// BenchmarkSrslogFrame is the same with the octet count in front.
func BenchmarkSrslogFrame(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		srslog.RFC5425MessageLengthFramer(srslog.RFC5424Formatter(srslog.LOG_INFO|srslog.LOG_LOCAL0, "host", "tag", ready))
	}
}

// BenchmarkSyslogTCP is what one message costs its sender over loopback, from the call to the kernel: of ready text, and with the
// ten attributes of the yardstick, which the peers get as text from slog's handler because they know none.
//
// The peers' Write stands below a logger. Its counterpart is Handle, of a record made for each message because the peers take the time
// themselves as well.
func BenchmarkSyslogTCP(b *testing.B) {
	ctx := context.Background()
	as := yardstick.Attrs()
	for name, call := range map[string]func(h slog.Handler, log *slog.Logger){
		"handle": func(h slog.Handler, _ *slog.Logger) {
			_ = h.Handle(ctx, slog.NewRecord(time.Now(), slog.LevelInfo, ready, 0))
		},
		"text":  func(_ slog.Handler, log *slog.Logger) { log.LogAttrs(ctx, slog.LevelInfo, ready) },
		"attrs": func(_ slog.Handler, log *slog.Logger) { log.LogAttrs(ctx, slog.LevelInfo, yardstick.Message, as...) },
	} {
		b.Run(name+"_ours", func(b *testing.B) { oursTCP(b, call) })
	}
	for name, dial := range map[string]func(addr string) (io.WriteCloser, error){
		"srslog": func(addr string) (io.WriteCloser, error) {
			w, err := srslog.Dial("tcp", addr, srslog.LOG_INFO|srslog.LOG_LOCAL0, "tag")
			if err != nil {
				return nil, err
			}
			w.SetFormatter(srslog.RFC5424Formatter)
			w.SetFramer(srslog.RFC5425MessageLengthFramer)
			return w, nil
		},
		"std": func(addr string) (io.WriteCloser, error) {
			return stdsyslog.Dial("tcp", addr, stdsyslog.LOG_INFO|stdsyslog.LOG_LOCAL0, "tag")
		},
	} {
		b.Run("text_"+name, func(b *testing.B) {
			text := []byte(ready)
			theirsTCP(b, dial, func(w io.Writer) func() error {
				return func() error { _, err := w.Write(text); return err }
			})
		})
		b.Run("attrs_"+name, func(b *testing.B) {
			as := yardstick.Attrs()
			theirsTCP(b, dial, func(w io.Writer) func() error {
				log := slog.New(slog.NewTextHandler(w, nil))
				return func() error { log.LogAttrs(ctx, slog.LevelInfo, yardstick.Message, as...); return nil }
			})
		})
	}
}

// oursTCP fails when a message was not delivered, so the calls need not look at errors.
func oursTCP(b *testing.B, call func(slog.Handler, *slog.Logger)) {
	h, err := syslog.NewHandler("tcp://"+startSink(b, "tcp"), &syslog.Options{Delivery: delivery.Options{MaxBlock: time.Minute}})
	if err != nil {
		b.Fatal(err)
	}
	defer h.Close()
	ctx := context.Background()
	if err := h.Ready(ctx); err != nil {
		b.Fatal(err)
	}
	log := slog.New(h)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		call(h, log)
	}
	if err := h.Flush(ctx); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	if s := h.Stats(); s.Delivered < uint64(b.N) || s.Resent > 0 {
		b.Fatalf("%+v", s)
	}
}

func theirsTCP(b *testing.B, dial func(addr string) (io.WriteCloser, error), caller func(io.Writer) func() error) {
	w, err := dial(startSink(b, "tcp"))
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	call := caller(w)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if err := call(); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
}
