package gelf

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"sort"
	"strconv"

	"github.com/wholelog/wholelog/chunk"
)

const (
	// smallText is how much of every text survives while another one still has more than this. A request id is worth more than
	// the last bytes of a stack trace, and costs less.
	smallText = 256
	// fullEnough ends the search for the longest text that fits: this share of the room, in percent, is in use. Every further
	// step would compress the whole message once more for less than one chunk in fifty.
	fullEnough = 98
)

// truncate returns a shortened copy of a record that fits 128 datagrams of size bytes, packed as pack does it, or false when no
// cut makes it fit.
func (c *compressor) truncate(data []byte, size int) ([]byte, bool) {
	return shorten(data, chunk.MaxChunks*(size-chunk.HeaderSize), c.mode != CompressNone, func(p []byte) []byte { return c.pack(p, size) })
}

// shorten returns a cut copy of a record, as pack makes it ready to leave, of at most limit bytes then; false when no cut makes it
// fit. squeezes says that pack compresses. These go, in this order: full_message; the longest texts down to smallText; short_message
// down to the same; the rest of all texts, of short_message last and never to a blank; then fields that are no text, the largest
// first. host, version, timestamp and level stay as they are. _truncated says how many bytes of text went.
//
// Compressed text can be weighed only after compression, so this searches by halving. A copy grows with every byte kept, and by
// one character at most, which makes the search exact for plain text and close for compressed text.
func shorten(data []byte, limit int, squeezes bool, pack func([]byte) []byte) ([]byte, bool) {
	r, ok := parseRecord(data)
	if !ok {
		return nil, false
	}
	room := func(keep, without int) int { return limit - len(pack(r.cut(keep, without))) }

	// The fewest fields that must go besides all text: usually none.
	without := sort.Search(len(r.others), func(n int) bool { return room(0, n) >= 0 })
	if room(0, without) < 0 {
		return nil, false
	}
	keep, tooMuch := 0, r.text+1
	for tooMuch-keep > 1 {
		middle := keep + (tooMuch-keep)/2
		left := room(middle, without)
		if left < 0 {
			tooMuch = middle
			continue
		}
		keep = middle
		if squeezes && left < limit*(100-fullEnough)/100 {
			break
		}
	}
	return pack(r.cut(keep, without)), true
}

// cutBefore says whether the encoder has cut a record already, which counts there.
func cutBefore(data []byte) bool { return bytes.Contains(data, []byte(truncatedKey+":")) }

// record is a GELF message taken apart at its top level, to be put together again with less text.
type record struct {
	fields []*field
	bands  []band   // of text, in the order of worth
	text   int      // bytes in all bands
	others []*field // neither text nor required, the largest first
	before int      // bytes of text cut earlier, by the record's own word
	out    []byte
}

// field is one member of the record's object.
type field struct {
	key     []byte // with its quotes
	value   []byte // as it stands; of a text only the head, the opening quote included
	text    []byte // the rest of the inside of a string that may be cut
	keep    int    // bytes of text to keep, to be rounded down to a character
	dropped bool
}

// newRecord sorts fields into what is cut when.
func newRecord(fields []*field, short, full *field, texts, others []*field, before int) *record {
	r := &record{fields: fields, others: others, before: before}
	add := func(low, high int, texts ...*field) {
		b := band{texts: texts, low: low, high: high}
		r.text += b.size(high)
		r.bands = append(r.bands, b)
	}
	if short != nil {
		add(0, smallText, short)
	}
	add(0, smallText, texts...)
	if short != nil {
		add(smallText, math.MaxInt, short)
	}
	add(smallText, math.MaxInt, texts...)
	if full != nil {
		add(0, math.MaxInt, full)
	}
	slices.SortStableFunc(others, func(a, b *field) int {
		return cmp.Compare(len(b.key)+len(b.value), len(a.key)+len(a.value))
	})
	return r
}

// cut returns the record with keep bytes of text and without as many of the other fields. The result is valid until the next call.
func (r *record) cut(keep, without int) []byte {
	for _, f := range r.fields {
		f.keep = 0
	}
	for _, b := range r.bands {
		if keep == 0 {
			break // what comes after is worth less
		}
		keep = b.fill(keep)
	}
	for i, f := range r.others {
		f.dropped = i < without
	}
	gone := r.before
	r.out = append(r.out[:0], '{')
	for _, f := range r.fields {
		n := boundary(f.text, f.keep)
		gone += decodedLen(f.text[n:])
		switch {
		case f.dropped:
			gone += len(f.value)
			continue
		case n == 0 && len(f.text) > 0 && len(f.value) == 1:
			continue // nothing but the opening quote is left, and receivers drop empty fields
		}
		r.out = append(append(append(r.out, f.key...), ':'), f.value...)
		if f.text != nil {
			r.out = append(append(r.out, f.text[:n]...), '"')
		}
		r.out = append(r.out, ',')
	}
	if gone > 0 {
		r.out = append(append(r.out, truncatedKey...), ':')
		r.out = append(strconv.AppendInt(r.out, int64(gone), 10), ',')
	}
	if last := len(r.out) - 1; r.out[last] == ',' {
		r.out = r.out[:last]
	}
	r.out = append(r.out, '}')
	return r.out
}

// band is a set of texts cut together, the longest first: their bytes from low to high.
type band struct {
	texts     []*field
	low, high int
}

// size is how many bytes the band holds when its texts are cut to level.
func (b band) size(level int) int {
	n := 0
	for _, f := range b.texts {
		n += max(0, min(len(f.text), level)-b.low)
	}
	return n
}

// fill gives keep bytes to the band's texts: to all the same length, except to those that have less, and the few bytes left over
// one each to the first. So one byte more makes one text longer by one, and no other changes. It returns what the band has no use
// for.
func (b band) fill(keep int) int {
	level, spare := b.high, 0
	all := b.size(b.high)
	if keep < all {
		longest := b.low
		for _, f := range b.texts {
			longest = max(longest, min(len(f.text), b.high))
		}
		level = b.low + sort.Search(longest-b.low, func(n int) bool { return b.size(b.low+n+1) > keep })
		spare = keep - b.size(level)
	}
	for _, f := range b.texts {
		if len(f.text) <= b.low {
			continue // all of it belongs to a band below
		}
		f.keep = min(len(f.text), level)
		if spare > 0 && len(f.text) > level {
			f.keep++
			spare--
		}
	}
	return max(0, keep-all)
}
