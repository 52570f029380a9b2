package benchmarks

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	gogelf "github.com/Graylog2/go-gelf/gelf"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/gelf"
	"github.com/wholelog/wholelog/internal/yardstick"
)

const sinkEnv = "WHOLELOG_BENCHMARK_SINK"

// sink reads datagrams or streams and throws them away, in a process of its own so that its work is not charged to the sender. It says
// where it listens, and ends with its standard input.
func sink(network string) {
	drain := drainDatagrams
	if network == "tcp" {
		drain = drainStreams
	}
	if err := drain("127.0.0.1:0"); err != nil {
		fmt.Println("error:", err)
		return
	}
	for in := bufio.NewReader(os.Stdin); ; {
		if _, err := in.ReadByte(); err != nil {
			return
		}
	}
}

func drainDatagrams(addr string) error {
	conn, err := net.ListenPacket("udp", addr)
	if err != nil {
		return err
	}
	_ = conn.(*net.UDPConn).SetReadBuffer(8 << 20) // as much as the kernel gives
	fmt.Println(conn.LocalAddr())
	go func() {
		buf := make([]byte, 65536)
		for {
			if _, _, err := conn.ReadFrom(buf); err != nil {
				return
			}
		}
	}()
	return nil
}

// startSink starts this very program as a sink for a network and returns its address.
func startSink(b *testing.B, network string) string {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), sinkEnv+"="+network)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		stdin.Close()
		_ = cmd.Wait() // it ends with its input
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	addr := strings.TrimSpace(line)
	if err != nil || strings.HasPrefix(addr, "error") {
		b.Fatalf("sink: %q, %v", addr, err)
	}
	return addr
}

// sizes of the text of a message. 300 B is one datagram as it stands, 8 KB are six chunks, 100 KB are 72.
func sizes() map[string]int {
	return map[string]int{"300B": 300 - 120, "8KB": 8 << 10, "100KB": 100 << 10}
}

// texts are different messages of one size, so that nobody compresses the same one again and again.
func texts(size int) []string {
	all := make([]string, 16)
	for i := range all {
		all[i] = yardstick.Text(size, uint64(i))
	}
	return all
}

// BenchmarkUDP is what one message costs its sender, from the log call to the kernel, in datagrams of 1420 bytes. Neither side paces:
// it is the cost of sending that is measured, and not what arrives.
func BenchmarkUDP(b *testing.B) {
	for name, size := range sizes() {
		all := texts(size)
		for mode, c := range map[string]gelf.Compression{"gzip": gelf.CompressAuto, "none": gelf.CompressNone} {
			b.Run(name+"_"+mode+"_ours", func(b *testing.B) { ours(b, all, c) })
		}
		for mode, c := range map[string]gogelf.CompressType{"gzip": gogelf.CompressGzip, "none": gogelf.CompressNone} {
			b.Run(name+"_"+mode+"_gogelf", func(b *testing.B) { theirs(b, all, c) })
		}
	}
}

func ours(b *testing.B, texts []string, c gelf.Compression) {
	run(b, texts, "udp", gelf.Options{ChunkSize: 1420, PacketRate: -1, Compression: c}, logged)
}

// logged is a log call, handled what a peer's writer is given: a record, or its message, that somebody else has made.
func logged(_ slog.Handler, log *slog.Logger, text string) {
	log.LogAttrs(context.Background(), slog.LevelInfo, text)
}

func handled(h slog.Handler, _ *slog.Logger, text string) {
	_ = h.Handle(context.Background(), slog.NewRecord(time.Now(), slog.LevelInfo, text, 0))
}

// run is the cost of a call, from the call to the last message's delivery.
func run(b *testing.B, texts []string, network string, o gelf.Options, call func(slog.Handler, *slog.Logger, string)) {
	o.Host, o.Delivery = "h", delivery.Options{MaxBlock: time.Minute}
	h, err := gelf.NewHandler(network+"://"+startSink(b, network), &o)
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
	for i := range b.N {
		call(h, log, texts[i%len(texts)])
	}
	if err := h.Flush(ctx); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	if s := h.Stats(); s.Delivered < uint64(b.N) {
		b.Fatalf("%+v", s)
	}
}

func theirs(b *testing.B, texts []string, c gogelf.CompressType) {
	w, err := gogelf.NewUDPWriter(startSink(b, "udp"))
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	w.CompressionType = c
	write(b, texts, w)
}

// write is the cost of a message written by w.
func write(b *testing.B, texts []string, w gogelf.Writer) {
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		short, _, more := strings.Cut(texts[i%len(texts)], "\n")
		m := gogelf.Message{Version: "1.1", Host: "h", Short: short, TimeUnix: float64(time.Now().UnixMilli()) / 1000, Level: 6}
		if more {
			m.Full = texts[i%len(texts)]
		}
		if err := w.WriteMessage(&m); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
}
