package gelfd

import (
	"bytes"
	"slices"
)

// bulkDecoder cuts what comes over one connection into messages, as a bulk receiving input does: at a line end outside of all braces,
// brackets and strings. It knows nothing of requests. So what follows the last line end of a body waits for the next one and is glued
// to it, and a line that opens more than it closes swallows those behind it.
type bulkDecoder struct {
	held    []byte
	depth   int
	quoted  bool
	escaped bool
}

// add takes the text of a body and returns the messages that are complete.
func (d *bulkDecoder) add(text []byte) (messages [][]byte) {
	for _, b := range text {
		if b == '\n' && d.depth <= 0 && !d.quoted {
			messages = append(messages, unfold(bytes.TrimSpace(d.held))...)
			d.held, d.depth = nil, 0
			continue
		}
		d.held = append(d.held, b)
		switch {
		case d.escaped:
			d.escaped = false
		case d.quoted && b == '\\':
			d.escaped = true
		case b == '"':
			d.quoted = !d.quoted
		case d.quoted:
		case b == '{', b == '[':
			d.depth++
		case b == '}', b == ']':
			d.depth--
		}
	}
	return messages
}

// end returns what a connection leaves behind.
func (d *bulkDecoder) end() [][]byte {
	return unfold(bytes.TrimSpace(d.held))
}

// unfold returns the elements of a JSON array, each a message, and anything else as it is. Blank lines are nothing.
func unfold(line []byte) [][]byte {
	if len(line) == 0 {
		return nil
	}
	if line[0] != '[' || line[len(line)-1] != ']' {
		return [][]byte{slices.Clone(line)}
	}
	var d bulkDecoder
	var elements [][]byte
	for _, b := range line[1 : len(line)-1] {
		if b == ',' && d.depth == 0 && !d.quoted {
			b = '\n'
		}
		elements = append(elements, d.add([]byte{b})...)
	}
	return append(elements, d.add([]byte{'\n'})...)
}
