// Package benchmarks measures the library against what else there is. Only ratios mean anything; see the program in ratios.
package benchmarks

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"

	gogelf "github.com/Graylog2/go-gelf/gelf"

	"github.com/wholelog/wholelog/internal/yardstick"
)

// message is the yardstick record as a go-gelf program has it in hand, ready to be marshalled.
func message() *gogelf.Message {
	r := yardstick.Record()
	m := &gogelf.Message{Version: "1.1", Host: "h", Short: r.Message, TimeUnix: 1772368245.123, Level: 6, Extra: make(map[string]any)}
	for _, a := range yardstick.Attrs() {
		if a.Value.Kind() != slog.KindGroup {
			m.Extra["_"+a.Key] = a.Value.Any()
			continue
		}
		for _, b := range a.Value.Group() {
			m.Extra["_"+a.Key+"."+b.Key] = b.Value.Any()
		}
	}
	return m
}

func BenchmarkGoGELFMarshal(b *testing.B) {
	m := message()
	var buf bytes.Buffer
	b.ReportAllocs()
	for b.Loop() {
		buf.Reset()
		if err := m.MarshalJSONBuf(&buf); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSlogJSONHandle(b *testing.B) {
	h := slog.NewJSONHandler(io.Discard, nil)
	r := yardstick.Record()
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if err := h.Handle(ctx, r); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAtomicPick is the cheapest choice there could be: an atomic load of the set and a counter.
func BenchmarkAtomicPick(b *testing.B) {
	var set atomic.Pointer[[]int]
	set.Store(&[]int{1, 2, 3})
	var n atomic.Uint64
	sum := 0
	b.ReportAllocs()
	for b.Loop() {
		s := *set.Load()
		sum += s[n.Add(1)%uint64(len(s))]
	}
	if sum == 0 {
		b.Fatal("nothing was chosen")
	}
}
