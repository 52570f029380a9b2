package gelfd

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// cut gives a stream to a framer in pieces of n bytes.
func cut(stream []byte, most, n int) (frames []string, err error) {
	f := framer{max: most}
	take := func(frame []byte) { frames = append(frames, string(frame)) }
	for piece := range slices.Chunk(stream, n) {
		if err := f.add(piece, take); err != nil {
			return frames, err
		}
	}
	return frames, f.end(take)
}

// TestFrames: what the decoder makes of a stream, whatever pieces it comes in.
func TestFrames(t *testing.T) {
	for _, tc := range []struct {
		stream string
		want   string
		err    error
	}{
		{"", "[]", nil},
		{"ab\x00", `["ab"]`, nil},
		{"ab\x00cde\x00fg\x00", `["ab" "cde" "fg"]`, nil},
		{"ab\x00last without NUL"[:10], `["ab" "last wi"]`, nil},
		{"\x00", "[]", errShortFrame},
		{"ab\x00\x00cd\x00", `["ab"]`, errShortFrame},
		{"a\x00cd\x00", "[]", errShortFrame},
		{"ab\x00c", `["ab"]`, errShortFrame},
		{"12345678\x00ab\x00", `["12345678" "ab"]`, nil},
		{"123456789\x00ab\x00", "[]", errLongFrame},
		{"ab\x00123456789", `["ab"]`, errLongFrame},
		{"{\n}\x00", `["{\n}"]`, nil},
	} {
		for n := 1; n <= max(len(tc.stream), 1); n++ {
			got, err := cut([]byte(tc.stream), 8, n)
			if fmt.Sprintf("%q", got) != tc.want || !errors.Is(err, tc.err) {
				t.Errorf("%q in pieces of %d: %q, %v; want %s, %v", tc.stream, n, got, err, tc.want, tc.err)
			}
		}
	}
}

// FuzzFrames: in any pieces the stream is the same, and none of its bytes is lost before the end.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("ab\x00cde\x00f"), uint8(3))
	f.Add([]byte("ab\x00\x00"), uint8(1))
	f.Fuzz(func(t *testing.T, stream []byte, n uint8) {
		whole, wholeErr := cut(stream, 16, max(len(stream), 1))
		got, err := cut(stream, 16, int(n)+1)
		if !slices.Equal(whole, got) || !errors.Is(err, wholeErr) {
			t.Fatalf("%q, %v at once; %q, %v in pieces", whole, wholeErr, got, err)
		}
		joined := strings.Join(got, "\x00")
		if !bytes.HasPrefix(stream, []byte(joined)) || err == nil && len(joined) < len(stream)-1 {
			t.Fatalf("%q of %q, %v", joined, stream, err)
		}
	})
}
