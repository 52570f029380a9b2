package gelf

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/fake/gelfd"
)

// From the log call to the index of the receiver, over a socket.
func TestNewHandlerReachesTheReceiver(t *testing.T) {
	server, err := gelfd.Listen("127.0.0.1:0", gelfd.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	h, err := NewHandler("udp://"+server.Addr().String(), &Options{Host: "h", Compression: CompressNone})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := h.Ready(ctx); err != nil {
		t.Fatal(err)
	}

	long := strings.Repeat("€ and more\n", 3000)
	log := slog.New(h).With("service", "shop").WithGroup("g")
	log.Info("short", "ok", true)
	log.Error(long, "n", 7)
	log.Warn(strings.Repeat("huge ", 200_000), "n", 8)
	if err := h.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	if err := server.Wait(ctx, 3); err != nil {
		t.Fatalf("%v: %+v", err, server.Stats())
	}

	messages := server.Messages()
	for i, want := range []map[string]any{
		{"message": "short", "source": "h", "level": int64(6), "service": "shop", "g_ok": "true"},
		{"message": "€ and more", "full_message": strings.TrimSpace(long), "level": int64(3), "g_n": int64(7)},
		{"level": int64(4), "g_n": int64(8), "service": "shop"},
	} {
		for name, value := range want {
			if got := messages[i].Fields[name]; got != value {
				t.Errorf("message %d: %s is %.100v, want %.100v", i, name, got, value)
			}
		}
		if len(messages[i].Dropped) > 0 || len(messages[i].From) != 1 {
			t.Errorf("message %d: dropped %v, from %v", i, messages[i].Dropped, messages[i].From)
		}
	}
	cut, _ := messages[2].Fields["truncated"].(int64)
	if text := messages[2].Fields["message"].(string); cut == 0 || len(messages[2].Sizes) > 128 || int64(len(text))+cut < 999_000 {
		t.Errorf("the huge message: %d chunks, %d bytes left, %d cut", len(messages[2].Sizes), len(text), cut)
	}
	if st := h.Stats(); st.Accepted != 3 || st.Delivered != 3 || st.Repaired != 1 || st.Truncated != 1 {
		t.Errorf("%+v", st)
	}
}

// A record that the encoder cuts and then the link is one record that was cut, and its _truncated is the sum.
func TestTruncatedTwiceCountsOnce(t *testing.T) {
	server, err := gelfd.Listen("127.0.0.1:0", gelfd.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	// A quarter of the queue is the most that a record may have.
	h, err := NewHandler("udp://"+server.Addr().String(), &Options{
		ChunkSize: 100, Compression: CompressNone, Delivery: delivery.Options{QueueBytes: 512 << 10},
	})
	if err != nil {
		t.Fatal(err)
	}
	const length = 200_000
	slog.New(h).Info("m", "text", noise(length))
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if err := server.Wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	fields := server.Messages()[0].Fields
	text, _ := fields["text"].(string)
	if cut, _ := fields["truncated"].(int64); len(text) == 0 || len(text) > 128*88 || int(cut)+len(text) != length {
		t.Errorf("%d bytes left and %d cut of %d", len(text), cut, length)
	}
	if s := h.Stats(); s.Truncated != 1 || s.Delivered != 1 {
		t.Errorf("%+v", s)
	}
}
