package chunk

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"testing"
)

// text returns n bytes that are not the same everywhere, so that a misplaced chunk shows.
func text(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('a' + (i*7+i/251)%26)
	}
	return b
}

// collect returns copies of what Split yields, which is valid for one step only.
func collect(t *testing.T, payload []byte, size int, id uint64) [][]byte {
	t.Helper()
	seq, err := Split(payload, size, id)
	if err != nil {
		t.Fatalf("Split(%d bytes, %d): %v", len(payload), size, err)
	}
	var out [][]byte
	for d := range seq {
		out = append(out, bytes.Clone(d))
	}
	return out
}

func TestCount(t *testing.T) {
	for _, tt := range []struct{ n, size, want int }{
		{0, 1420, 1},
		{1, 1420, 1},
		{1419, 1420, 1},
		{1420, 1420, 1},
		{1421, 1420, 2}, // whole is over, so the header counts: 1408 + 13
		{2816, 1420, 2}, // 2 · 1408
		{2817, 1420, 3},
		{127 * 1408, 1420, 127},
		{127*1408 + 1, 1420, 128},
		{128 * 1408, 1420, 128},
		{128*1408 + 1, 1420, 129},
		{13, 12, 0},
		{12, 12, 1},
		{14, 13, 14},
		{1, 0, 0},
		{0, 0, 1},
		{1, -1, 0},
		{0, -1, 0},
		{math.MaxInt, 13, math.MaxInt},
		{math.MaxInt, 14, math.MaxInt/2 + 1},
	} {
		if got := Count(tt.n, tt.size); got != tt.want {
			t.Errorf("Count(%d, %d) = %d, want %d", tt.n, tt.size, got, tt.want)
		}
	}
}

func TestAppend(t *testing.T) {
	const id = 0x0102030405060708
	for _, tt := range []struct {
		name, dst, payload string
		size               int
		want               string
	}{
		{"whole", "", "hello", 5, "hello"},
		{"whole behind dst", "x", "hello", 1420, "xhello"},
		{"empty", "x", "", 1420, "x"},
		{
			"three chunks behind dst", "x", "abcdefghijklmno", 14, "x" +
				"\x1e\x0f\x01\x02\x03\x04\x05\x06\x07\x08\x00\x08ab" +
				"\x1e\x0f\x01\x02\x03\x04\x05\x06\x07\x08\x01\x08cd" +
				"\x1e\x0f\x01\x02\x03\x04\x05\x06\x07\x08\x02\x08ef" +
				"\x1e\x0f\x01\x02\x03\x04\x05\x06\x07\x08\x03\x08gh" +
				"\x1e\x0f\x01\x02\x03\x04\x05\x06\x07\x08\x04\x08ij" +
				"\x1e\x0f\x01\x02\x03\x04\x05\x06\x07\x08\x05\x08kl" +
				"\x1e\x0f\x01\x02\x03\x04\x05\x06\x07\x08\x06\x08mn" +
				"\x1e\x0f\x01\x02\x03\x04\x05\x06\x07\x08\x07\x08o",
		},
		{
			"no empty last chunk", "", "abcdefghijklmnopqrst", 17, "" +
				"\x1e\x0f\x01\x02\x03\x04\x05\x06\x07\x08\x00\x04abcde" +
				"\x1e\x0f\x01\x02\x03\x04\x05\x06\x07\x08\x01\x04fghij" +
				"\x1e\x0f\x01\x02\x03\x04\x05\x06\x07\x08\x02\x04klmno" +
				"\x1e\x0f\x01\x02\x03\x04\x05\x06\x07\x08\x03\x04pqrst",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Append([]byte(tt.dst), []byte(tt.payload), tt.size, id)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
			if split := bytes.Join(collect(t, []byte(tt.payload), tt.size, id), nil); string(split) != tt.want[len(tt.dst):] {
				t.Errorf("Split yields %q", split)
			}
		})
	}
}

func TestAppendRefuses(t *testing.T) {
	for _, tt := range []struct {
		name    string
		payload []byte
		size    int
		is      error
		want    string
	}{
		{
			"129 chunks", text(128*1408 + 1), 1420, ErrTooLarge,
			"chunk: payload too large: 180225 bytes need 129 datagrams of 1420",
		},
		{
			"no room", text(13), 12, ErrTooLarge,
			"chunk: payload too large: 13 bytes, and a datagram of 12 has no room behind the header",
		},
		{
			"negative size", text(1), -5, ErrTooLarge,
			"chunk: payload too large: 1 bytes, and a datagram of -5 has no room behind the header",
		},
		{"a chunk, whole", []byte("\x1e\x0fxx"), 1420, ErrInvalid, "chunk: invalid: the payload starts like a chunk"},
		{"a chunk, cut", []byte("\x1e\x0fxxxxxxxxxxxxx"), 14, ErrInvalid, "chunk: invalid: the payload starts like a chunk"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dst := []byte("kept")
			got, err := Append(dst, tt.payload, tt.size, 1)
			if !errors.Is(err, tt.is) || err.Error() != tt.want {
				t.Errorf("Append: error %v, want %s", err, tt.want)
			}
			if string(got) != "kept" {
				t.Errorf("Append changed dst to %q", got)
			}
			seq, err := Split(tt.payload, tt.size, 1)
			if seq != nil || err == nil || err.Error() != tt.want {
				t.Errorf("Split: error %v, want %s", err, tt.want)
			}
		})
	}
}

// The boundary cases of the format: k chunks exactly, one byte less, one byte more, and 129 never.
func TestR14_NeverMoreThan128Chunks(t *testing.T) {
	for _, size := range []int{13, 64, 512, 1232, 1420, 8192, 65507} {
		data := size - HeaderSize
		for _, k := range []int{1, 2, 127, 128} {
			for _, n := range []int{k*data - 1, k * data, k*data + 1} {
				want := (n + data - 1) / data
				if n <= size {
					want = 1
				}
				got, err := Append(nil, text(n), size, 1)
				if want > MaxChunks {
					if !errors.Is(err, ErrTooLarge) || len(got) != 0 {
						t.Errorf("size %d, %d bytes: %d bytes and error %v, want ErrTooLarge and no partial set", size, n, len(got), err)
					}
					continue
				}
				if err != nil {
					t.Errorf("size %d, %d bytes: %v", size, n, err)
				}
				if d := len(collect(t, text(n), size, 1)); d != want || d != Count(n, size) {
					t.Errorf("size %d, %d bytes: %d datagrams, want %d, Count says %d", size, n, d, want, Count(n, size))
				}
			}
		}
	}
	if n := len(collect(t, text(180_224), 1420, 1)); n != 128 {
		t.Errorf("180224 bytes at 1420: %d datagrams, want 128", n)
	}
}

func TestR15_SizeIncludesTheHeader(t *testing.T) {
	for _, size := range []int{13, 14, 100, 512, 1232, 1420} {
		for _, n := range []int{size - 1, size, size + 1, 3 * size, MaxChunks * (size - HeaderSize)} {
			all := collect(t, text(n), size, 1)
			for i, d := range all {
				if len(d) > size {
					t.Errorf("size %d, %d bytes: datagram %d has %d", size, n, i, len(d))
				}
				if i < len(all)-1 && len(d) != size {
					t.Errorf("size %d, %d bytes: datagram %d of %d has %d bytes: all but the last are full", size, n, i, len(all), len(d))
				}
				if len(all) > 1 && len(d) <= HeaderSize {
					t.Errorf("size %d, %d bytes: chunk %d is empty", size, n, i)
				}
			}
		}
	}
}

func TestSplitStopsAndStartsAgain(t *testing.T) {
	payload := text(100)
	seq, err := Split(payload, 32, 1)
	if err != nil {
		t.Fatal(err)
	}
	for range seq {
		break
	}
	for range 2 {
		var joined []byte
		for d := range seq {
			_, data, err := Parse(d)
			if err != nil {
				t.Fatal(err)
			}
			joined = append(joined, data...)
		}
		if !bytes.Equal(joined, payload) {
			t.Errorf("got %q", joined)
		}
	}
}

// A consumer that appends to what it got must not write into the payload's spare room.
func TestSplitWholeIsClipped(t *testing.T) {
	payload := append(make([]byte, 0, 8), "abc"...)
	seq, err := Split(payload, 8, 1)
	if err != nil {
		t.Fatal(err)
	}
	for d := range seq {
		_ = append(d, 'X')
	}
	if spare := payload[:4]; spare[3] != 0 {
		t.Errorf("the payload's array became %q", spare)
	}
}

func TestParse(t *testing.T) {
	const id = "\x01\x02\x03\x04\x05\x06\x07\x08"
	for _, tt := range []struct {
		name, in string
		h        Header
		data     string
		is       error
		want     string
	}{
		{"chunk", "\x1e\x0f" + id + "\x02\x03abc", Header{0x0102030405060708, 2, 3}, "abc", nil, ""},
		{"no data", "\x1e\x0f" + id + "\x00\x01", Header{0x0102030405060708, 0, 1}, "", nil, ""},
		{"255 chunks", "\x1e\x0f" + id + "\xfe\xffx", Header{0x0102030405060708, 254, 255}, "x", nil, ""},
		{"empty", "", Header{}, "", ErrNotChunk, "chunk: not a chunk"},
		{"one byte", "\x1e", Header{}, "", ErrNotChunk, "chunk: not a chunk"},
		{"plain", `{"host":"a"}`, Header{}, "", ErrNotChunk, "chunk: not a chunk"},
		{"half the magic", "\x1e\x0e" + id + "\x00\x01", Header{}, "", ErrNotChunk, "chunk: not a chunk"},
		{"short", "\x1e\x0f" + id + "\x00", Header{}, "", ErrInvalid, "chunk: invalid: 11 bytes, shorter than a header"},
		{
			"seq = count", "\x1e\x0f" + id + "\x03\x03abc",
			Header{0x0102030405060708, 3, 3},
			"abc",
			ErrInvalid, "chunk: invalid: sequence number 3 of 3 chunks",
		},
		{
			"count 0", "\x1e\x0f" + id + "\x00\x00abc",
			Header{0x0102030405060708, 0, 0},
			"abc",
			ErrInvalid, "chunk: invalid: sequence number 0 of 0 chunks",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, data, err := Parse([]byte(tt.in))
			if h != tt.h || string(data) != tt.data {
				t.Errorf("got %+v %q, want %+v %q", h, data, tt.h, tt.data)
			}
			if !errors.Is(err, tt.is) || (err != nil && err.Error() != tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestAppendDoesNotAllocate(t *testing.T) {
	payload := text(100_000)
	dst := make([]byte, 0, len(payload)+Count(len(payload), 1232)*HeaderSize)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := Append(dst, payload, 1232, 1); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations with room in dst", n)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("\x1e\x0f01234567\x00\x02abc"))
	f.Add([]byte("\x1e\x0f01234567\x02\x00"))
	f.Add([]byte("\x1e\x0f"))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		h, data, err := Parse(in)
		if err != nil {
			return
		}
		if h.Seq >= h.Count {
			t.Fatalf("%+v passed", h)
		}
		// What was read is all there is: written again, it is the same datagram.
		again := slices.Concat([]byte{magic0, magic1}, in[2:10], []byte{h.Seq, h.Count}, data)
		if !bytes.Equal(again, in) {
			t.Fatalf("%q read and written again is %q", in, again)
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	payload := text(100_000)
	dst := make([]byte, 0, 200_000)
	b.SetBytes(int64(len(payload)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Append(dst, payload, 1232, 1); err != nil {
			b.Fatal(err)
		}
	}
}
