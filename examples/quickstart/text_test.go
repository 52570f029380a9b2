package main

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"
)

func TestTextIsWhatWasAskedFor(t *testing.T) {
	seen := map[string]bool{}
	for _, b := range load() {
		for i := range b.count {
			text := message{b.size, i}.text()
			if len(text) != b.size || strings.TrimSpace(text) != text {
				t.Errorf("message %d of %d characters has %d, or white space at an end: %.20q…", i, b.size, len(text), text)
			}
			if text != (message{b.size, i}).text() {
				t.Errorf("message %d of %d characters is another one when made again", i, b.size)
			}
			if b.size >= 50 && seen[text] {
				t.Errorf("message %d of %d characters repeats another", i, b.size)
			}
			seen[text] = true
		}
	}
}

// Real logs shrink to between a third and a tenth; were it much less or much more, the number of chunks would flatter one side.
func TestTextCompressesLikeLogs(t *testing.T) {
	text := message{50_000, 0}.text()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	w.Write([]byte(text))
	w.Close()
	if ratio := float64(len(text)) / float64(packed.Len()); ratio < 3 || ratio > 10 {
		t.Errorf("50 000 characters shrink by %.1f", ratio)
	}
	lines := strings.Split(text, "\n")
	unique := map[string]bool{}
	for _, l := range lines {
		unique[l] = true
	}
	if len(unique) < len(lines)*99/100 {
		t.Errorf("only %d of %d lines differ", len(unique), len(lines))
	}
}

// The sizes have to be what the table says of them: the longest but one fits 128 chunks, the last does not.
func TestLoadFits(t *testing.T) {
	for _, b := range load() {
		payload, err := encode(message{b.size, 0})
		if err != nil {
			t.Fatal(err)
		}
		if room := 128 * (chunkSize - 12); (len(payload) > room) != (b.size > longestUDP) {
			t.Errorf("%d characters become %d bytes, and 128 chunks hold %d", b.size, len(payload), room)
		}
	}
}
