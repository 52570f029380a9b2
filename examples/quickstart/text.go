package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// message is one of those that go out both ways. Its text can be made again from size and number alone, so that what a node
// received is compared with what was logged, character by character.
type message struct {
	size   int // characters of text; all are ASCII
	number int // from 0, among those of the same size
}

// text is a piece of a service's log: lines that share words and form but repeat no line, so that it compresses as real logs do.
// A text of one character many times over would shrink to a single datagram and show nothing.
func (m message) text() string {
	r := rand.New(rand.NewPCG(uint64(m.size), uint64(m.number)))
	var b strings.Builder
	b.Grow(m.size + 256)
	for kind := 0; b.Len() < m.size; kind = r.IntN(4) {
		line(&b, r, kind)
	}
	// GELF receivers trim white space, which the first kind of line does not begin with; nor may the cut leave it at the end.
	text := strings.TrimRight(b.String()[:m.size], " \n")
	return text + strings.Repeat(".", m.size-len(text))
}

// line appends one log line of one of four kinds.
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
