package main

import (
	"strings"
	"testing"
)

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

// Repeated text would shrink to fewer chunks than real logs need, and the control would look better than it is.
func TestLoadDoesNotRepeat(t *testing.T) {
	lines, unique := 0, map[string]bool{}
	for _, b := range load()[1:] {
		for i := range b.count {
			for line := range strings.Lines(message{b.size, i}.text()) {
				lines++
				unique[line] = true
			}
		}
	}
	if len(unique) < lines*99/100 {
		t.Errorf("only %d of %d lines differ", len(unique), lines)
	}
}
