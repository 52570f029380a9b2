package yardstick

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	for _, size := range []int{1, 5, 50, 500, 5_000, 50_000} {
		text := Text(size, 1)
		if len(text) != size || strings.TrimSpace(text) != text {
			t.Errorf("size %d: %d characters, begins and ends with %q %q", size, len(text), text[:1], text[size-1:])
		}
		if text != Text(size, 1) || size > 5 && text == Text(size, 2) {
			t.Errorf("size %d: the same seed must give the same text, and another another", size)
		}
	}
	// It compresses as real logs do: three to four times at 50 KB.
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	w.Write([]byte(Text(50_000, 1)))
	w.Close()
	if ratio := 50_000 / float64(z.Len()); ratio < 2 || ratio > 5 {
		t.Errorf("compresses %.1f times", ratio)
	}
}

func TestRecord(t *testing.T) {
	r := Record()
	if r.NumAttrs() != 10 || len(r.Message) != 80 {
		t.Errorf("%d attributes, %d bytes of message", r.NumAttrs(), len(r.Message))
	}
}
