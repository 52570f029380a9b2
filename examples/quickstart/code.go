package main

import (
	"embed"
	"fmt"
	"io"
	"strings"
)

// sources are the two files whose difference is the point. Printing from them keeps the lines shown and the lines run the same.
//
//go:embed control.go whole.go
var sources embed.FS

// renderCode prints the marked lines of both ways.
func renderCode(out io.Writer) error {
	for _, part := range []struct{ title, file string }{
		{"What loses messages: the name is looked up inside the loop over the chunks", "control.go"},
		{"What does not: the handler knows all addresses and chooses once per message", "whole.go"},
	} {
		code, err := excerpt(part.file)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s\n\n%s\n", part.title, code)
	}
	return nil
}

// excerpt returns the lines of a file between its marks, without their common indentation.
func excerpt(file string) (string, error) {
	src, err := sources.ReadFile(file)
	if err != nil {
		return "", err
	}
	_, rest, opened := strings.Cut(string(src), "\t// <difference>\n")
	code, _, closed := strings.Cut(rest, "\t// </difference>\n")
	if !opened || !closed {
		return "", fmt.Errorf("%s has no marked lines", file)
	}
	var b strings.Builder
	for line := range strings.Lines(code) {
		line = strings.TrimPrefix(line, "\t")
		b.WriteString("    " + strings.ReplaceAll(line, "\t", "    "))
	}
	return b.String(), nil
}
