package main

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	barWidth  = 40 // characters, of as many requests as there are hosts
	nameWidth = 32
)

// bars prints the peak of every way. All bars have one scale, so that they can be compared across scenes.
func bars(results []result) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "%d hosts; the most requests that reach the server within 100 ms\n", hosts)
	title := ""
	for _, r := range results {
		if r.scene.title != title {
			title = r.scene.title
			fmt.Fprintf(&out, "\n%s\n", title)
		}
		pad := strings.Repeat(" ", max(nameWidth-utf8.RuneCountInString(r.way.name), 0))
		fmt.Fprintf(&out, "  %s%s %5d  %s\n", r.way.name, pad, r.peak(), bar(r.peak()))
	}
	return out.Bytes()
}

// bar is at least a sliver, since no peak is nothing.
func bar(n int) string {
	if full := n * barWidth / hosts; full > 0 {
		return strings.Repeat("█", full)
	}
	return "▏"
}
