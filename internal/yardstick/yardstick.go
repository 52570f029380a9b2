// Package yardstick holds what tests, benchmarks and examples measure with, so that all of them mean the same by "a record".
package yardstick

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"time"
)

// Record is a record as services log it: a message of 80 bytes and ten attributes, a group among them.
func Record() slog.Record {
	r := slog.NewRecord(time.Date(2026, 3, 1, 12, 30, 45, 123456789, time.UTC), slog.LevelInfo, Message, 0)
	r.AddAttrs(Attrs()...)
	return r
}

// Message is the text of [Record].
const Message = "request completed: the upstream answered within its budget, nothing was retried."

// Attrs are the attributes of [Record].
func Attrs() []slog.Attr {
	return []slog.Attr{
		slog.String("service", "checkout"),
		slog.String("method", "POST"),
		slog.String("path", "/api/v1/orders/8731/payments"),
		slog.Int("status", 201),
		slog.Duration("elapsed", 18*time.Millisecond),
		slog.Int64("bytes_in", 1834),
		slog.Float64("cpu_ms", 3.25),
		slog.String("trace_id", "4bf92f3577b34da6a3ce929d0e0e4736"),
		slog.Group("user", slog.String("id", "u-19283"), slog.String("plan", "business")),
		slog.String("remote", "203.0.113.17:51882"),
	}
}

// Text is size characters of a service's log, all ASCII, the same for the same size and seed: lines that share words and form but
// repeat no line, so that it compresses as real logs do. A text of one character many times over would shrink to a single datagram
// and show nothing. It neither begins nor ends with white space, which receivers trim.
func Text(size int, seed uint64) string {
	r := rand.New(rand.NewPCG(uint64(size), seed))
	var b strings.Builder
	b.Grow(size + 256)
	for kind := 0; b.Len() < size; kind = r.IntN(4) {
		line(&b, r, kind)
	}
	text := strings.TrimRight(b.String()[:size], " \n")
	return text + strings.Repeat(".", size-len(text))
}

// line appends one log line of one of four kinds; the first begins without white space.
func line(b *strings.Builder, r *rand.Rand, kind int) {
	verb := pick(r, "GET", "GET", "GET", "POST", "PUT", "DELETE")
	thing := pick(r, "orders", "carts", "customers", "invoices", "payments", "shipments", "sessions", "stock", "prices", "returns")
	at := fmt.Sprintf("12:%02d:%02d.%03d", r.IntN(60), r.IntN(60), r.IntN(1000))
	switch kind {
	case 0:
		fmt.Fprintf(b, "%s /api/v2/%s/%d?page=%d %d %dB %d.%dms 10.%d.%d.%d at %s trace=%016x\n",
			verb, thing, r.IntN(1e6), r.IntN(40), 200+100*r.IntN(4)+r.IntN(5), r.IntN(90000), r.IntN(400), r.IntN(10),
			r.IntN(4), r.IntN(256), r.IntN(256), at, r.Uint64())
	case 1:
		fmt.Fprintf(b, "%s SELECT id, state, total FROM %s WHERE customer_id = %d AND updated_at > '%s' rows=%d took=%dus\n",
			at, thing, r.IntN(1e7), at, r.IntN(500), r.IntN(1e6))
	case 2:
		fmt.Fprintf(b, "%s worker-%d retrying %s of %s %d: attempt %d, %s, next in %d ms\n",
			at, r.IntN(32), strings.ToLower(verb), thing, r.IntN(1e6), 1+r.IntN(5),
			pick(r, "connection reset by peer", "deadline exceeded", "503 from upstream", "lock wait timeout"), r.IntN(30000))
	default:
		fmt.Fprintf(b, "    at app.%s.%sService.%s(%sService.java:%d) [%s-%d.%d.jar]\n",
			thing, thing, pick(r, "load", "store", "validate", "publish", "reserve"), thing, r.IntN(900), thing, r.IntN(9), r.IntN(40))
	}
}

func pick(r *rand.Rand, words ...string) string { return words[r.IntN(len(words))] }
