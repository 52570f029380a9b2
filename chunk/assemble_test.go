package chunk

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
	"time"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// ch makes one chunk as it is on the wire.
func ch(id uint64, seq, count uint8, data string) []byte {
	d := []byte{magic0, magic1, byte(id >> 56), byte(id >> 48), byte(id >> 40), byte(id >> 32), byte(id >> 24), byte(id >> 16), byte(id >> 8), byte(id)}
	return append(append(d, seq, count), data...)
}

// step is one call of an Assembler: a datagram, or an eviction when datagram is nil.
type step struct {
	at       time.Duration
	datagram []byte
	want     string // "": nothing yet, "!": invalid, "-n": an eviction that forgot n; else the message
}

func TestAssembler(t *testing.T) {
	many := func(count uint8, last string) (steps []step) {
		for seq := range count {
			steps = append(steps, step{0, ch(1, seq, count, "x"), ""})
		}
		steps[count-1].want = last
		return steps
	}
	more := func(steps []step, s ...step) []step { return append(steps, s...) }
	over := many(200, "")
	over[128].want = "!"

	for _, tt := range []struct {
		name  string
		steps []step
		want  AssemblerStats
	}{
		{"whole", []step{{0, []byte("{}"), "{}"}}, AssemblerStats{}},
		{"short", []step{{0, []byte("{"), "!"}, {0, []byte{}, "!"}}, AssemblerStats{Invalid: 2}},
		{
			"in order",
			[]step{{0, ch(1, 0, 2, "ab"), ""}, {0, ch(1, 1, 2, "c"), "abc"}},
			AssemblerStats{TotalChunks: 2, CompleteMessages: 1},
		},
		{
			"backwards",
			[]step{{0, ch(1, 2, 3, "c"), ""}, {0, ch(1, 1, 3, "b"), ""}, {0, ch(1, 0, 3, "a"), "abc"}},
			AssemblerStats{TotalChunks: 3, CompleteMessages: 1},
		},
		{"one of one", []step{{0, ch(1, 0, 1, "a"), "a"}}, AssemblerStats{TotalChunks: 1, CompleteMessages: 1}},
		{
			"empty data",
			[]step{{0, ch(1, 0, 2, "a"), ""}, {0, ch(1, 1, 2, ""), "a"}},
			AssemblerStats{TotalChunks: 2, CompleteMessages: 1},
		},
		{
			"the id is the only key: two senders are spliced",
			[]step{{0, ch(1, 0, 2, "AAA"), ""}, {0, ch(1, 1, 2, "BBB"), "AAABBB"}, {0, ch(1, 0, 2, "BBB"), ""}, {0, ch(1, 1, 2, "AAA"), "BBBAAA"}},
			AssemblerStats{TotalChunks: 4, CompleteMessages: 2},
		},
		{
			"interleaved ids",
			[]step{{0, ch(1, 0, 2, "a"), ""}, {0, ch(1<<63, 0, 2, "c"), ""}, {0, ch(1, 1, 2, "b"), "ab"}, {0, ch(1<<63, 1, 2, "d"), "cd"}},
			AssemblerStats{TotalChunks: 4, CompleteMessages: 2},
		},
		{
			"duplicate before completion: ignored, the first data stays",
			[]step{{0, ch(1, 0, 2, "a"), ""}, {0, ch(1, 0, 2, "X"), ""}, {0, ch(1, 1, 2, "b"), "ab"}},
			AssemblerStats{TotalChunks: 3, CompleteMessages: 1, DuplicateChunks: 1},
		},
		{
			"duplicate after completion: a new entry, which expires",
			[]step{{0, ch(1, 0, 2, "a"), ""}, {0, ch(1, 1, 2, "b"), "ab"}, {0, ch(1, 1, 2, "b"), ""}, {6 * time.Second, nil, "-1"}},
			AssemblerStats{TotalChunks: 3, CompleteMessages: 1, ExpiredMessages: 1, ExpiredChunks: 1},
		},
		{
			"count 0: invalid, and leaves an entry",
			[]step{{0, ch(1, 0, 0, "a"), "!"}, {6 * time.Second, nil, "-1"}},
			AssemblerStats{TotalChunks: 1, Invalid: 1, ExpiredMessages: 1},
		},
		{
			"seq = count: invalid, and leaves an entry",
			[]step{{0, ch(1, 2, 2, "a"), "!"}, {6 * time.Second, nil, "-1"}},
			AssemblerStats{TotalChunks: 1, Invalid: 1, ExpiredMessages: 1},
		},
		{
			"an entry left by an invalid chunk is still good",
			[]step{{0, ch(1, 2, 2, "x"), "!"}, {0, ch(1, 0, 2, "a"), ""}, {0, ch(1, 1, 2, "b"), "ab"}},
			AssemblerStats{TotalChunks: 3, Invalid: 1, CompleteMessages: 1},
		},
		{
			"an entry without places takes nothing",
			[]step{{0, ch(1, 0, 0, "x"), "!"}, {0, ch(1, 0, 2, "a"), "!"}},
			AssemblerStats{TotalChunks: 2, Invalid: 2, WaitingMessages: 1},
		},
		{
			"short chunk: invalid, no entry",
			[]step{{0, ch(1, 0, 1, "")[:11], "!"}, {6 * time.Second, nil, "-0"}},
			AssemblerStats{TotalChunks: 1, Invalid: 1},
		},
		{
			"places by the first count, completion by the current one",
			[]step{{0, ch(1, 0, 3, "a"), ""}, {0, ch(1, 1, 2, "b"), "ab"}},
			AssemblerStats{TotalChunks: 2, CompleteMessages: 1},
		},
		{
			"a count that grows finds no place",
			[]step{{0, ch(1, 0, 2, "a"), ""}, {0, ch(1, 2, 3, "c"), "!"}, {0, ch(1, 1, 2, "b"), "ab"}},
			AssemblerStats{TotalChunks: 3, CompleteMessages: 1, Invalid: 1},
		},
		{
			"a seq beyond its own count, within the places",
			[]step{{0, ch(1, 0, 5, "a"), ""}, {0, ch(1, 4, 1, "e"), ""}},
			AssemblerStats{TotalChunks: 2, WaitingMessages: 1},
		},
		{
			"as many as counted, but not the first ones: discarded",
			[]step{{0, ch(1, 2, 3, "c"), ""}, {0, ch(1, 0, 2, "a"), "!"}, {6 * time.Second, nil, "-0"}},
			AssemblerStats{TotalChunks: 2, Invalid: 1},
		},
		{
			"a chunk inside chunks",
			[]step{{0, ch(1, 0, 2, "\x1e"), ""}, {0, ch(1, 1, 2, "\x0fx"), "!"}},
			AssemblerStats{TotalChunks: 2, Invalid: 1},
		},
		{
			"128 chunks",
			many(128, string(bytes.Repeat([]byte("x"), 128))),
			AssemblerStats{TotalChunks: 128, CompleteMessages: 1},
		},
		{
			"129 chunks",
			many(129, "!"),
			AssemblerStats{TotalChunks: 129, Invalid: 1},
		},
		{
			"200 chunks: the 129th discards, the rest expires",
			more(over, step{6 * time.Second, nil, "-1"}),
			AssemblerStats{TotalChunks: 200, Invalid: 1, ExpiredMessages: 1, ExpiredChunks: 71},
		},
		{
			"a duplicate is not the 129th",
			more(many(200, "")[:128], step{0, ch(1, 0, 200, "x"), ""}, step{0, ch(1, 128, 200, "x"), "!"}),
			AssemblerStats{TotalChunks: 130, DuplicateChunks: 1, Invalid: 1},
		},
		{
			"exactly 5 s is alive",
			[]step{{0, ch(1, 0, 2, "a"), ""}, {Validity, nil, "-0"}, {Validity, ch(1, 1, 2, "b"), "ab"}},
			AssemblerStats{TotalChunks: 2, CompleteMessages: 1},
		},
		{
			"the lifetime starts with the first chunk, not with the last",
			[]step{{0, ch(1, 0, 3, "a"), ""}, {4 * time.Second, ch(1, 1, 3, "b"), ""}, {5001 * time.Millisecond, nil, "-1"}, {5100 * time.Millisecond, ch(1, 2, 3, "c"), ""}},
			AssemblerStats{TotalChunks: 3, ExpiredMessages: 1, ExpiredChunks: 2, WaitingMessages: 1},
		},
		{
			"a late last chunk wins if it beats the tick",
			[]step{{0, ch(1, 0, 2, "a"), ""}, {5900 * time.Millisecond, ch(1, 1, 2, "b"), "ab"}, {6 * time.Second, nil, "-0"}},
			AssemblerStats{TotalChunks: 2, CompleteMessages: 1},
		},
		{
			"a late chunk that is not the last ends the message without a tick",
			[]step{{0, ch(1, 0, 3, "a"), ""}, {5900 * time.Millisecond, ch(1, 1, 3, "b"), ""}, {5950 * time.Millisecond, ch(1, 2, 3, "c"), ""}},
			AssemblerStats{TotalChunks: 3, ExpiredMessages: 1, ExpiredChunks: 2, WaitingMessages: 1},
		},
		{
			"only the old ones expire",
			[]step{{0, ch(1, 0, 2, "a"), ""}, {0, ch(2, 0, 2, "a"), ""}, {3 * time.Second, ch(3, 0, 2, "a"), ""}, {6 * time.Second, nil, "-2"}},
			AssemblerStats{TotalChunks: 3, ExpiredMessages: 2, ExpiredChunks: 2, WaitingMessages: 1},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var a Assembler
			for i, s := range tt.steps {
				if got := s.run(t, &a); got != s.want {
					t.Fatalf("step %d: got %q, want %q", i, got, s.want)
				}
			}
			if got := a.Stats(); got != tt.want {
				t.Errorf("Stats:\ngot  %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

// run performs the step and puts its outcome into the words of step.want.
func (s step) run(t *testing.T, a *Assembler) string {
	t.Helper()
	if s.datagram == nil {
		return "-" + string(rune('0'+a.Expire(start.Add(s.at))))
	}
	message, done, err := a.Add(s.datagram, start.Add(s.at))
	if done != (message != nil) || (err != nil && done) {
		t.Fatalf("%q, %v and error %v do not go together", message, done, err)
	}
	if err != nil {
		if !errors.Is(err, ErrInvalid) {
			t.Fatalf("error %v, want ErrInvalid", err)
		}
		return "!"
	}
	return string(message)
}

func TestAssemblerMessageIsTheCallers(t *testing.T) {
	var a Assembler
	whole := []byte("{}")
	message, _, err := a.Add(whole, start)
	if err != nil {
		t.Fatal(err)
	}
	whole[0] = 'X'
	if string(message) != "{}" {
		t.Errorf("a whole message aliases its datagram: %q", message)
	}

	// A receiver reads every datagram into the same buffer.
	buf := append(make([]byte, 0, 64), ch(1, 0, 2, "ab")...)
	if _, _, err = a.Add(buf, start); err != nil {
		t.Fatal(err)
	}
	message, done, err := a.Add(append(buf[:0], ch(1, 1, 2, "cd")...), start)
	if err != nil || !done {
		t.Fatal(done, err)
	}
	clear(buf)
	if string(message) != "abcd" {
		t.Errorf("a joined message aliases its datagrams: %q", message)
	}
}

// A message without data is done, although there is nothing in it.
func TestAssemblerEmptyMessage(t *testing.T) {
	var a Assembler
	message, done, err := a.Add(ch(1, 0, 1, ""), start)
	if !done || message == nil || len(message) != 0 || err != nil {
		t.Errorf("got %v, %v, %v", message, done, err)
	}
}

func TestR18_RoundTripOfEverySize(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var a Assembler
	for _, size := range []int{13, 14, 20, 64} {
		maximum := max(size, MaxChunks*(size-HeaderSize))
		payload := text(maximum)
		for n := 1; n <= maximum; n++ {
			datagrams := collect(t, payload[:n], size, rnd.Uint64())
			rnd.Shuffle(len(datagrams), func(i, j int) { datagrams[i], datagrams[j] = datagrams[j], datagrams[i] })
			if n == 1 {
				continue // receivers refuse a datagram of one byte; it went out as it is
			}
			got := feed(t, &a, datagrams)
			if !bytes.Equal(got, payload[:n]) {
				t.Fatalf("size %d, %d bytes: got %q", size, n, got)
			}
		}
	}
	if s := a.Stats(); s.WaitingMessages != 0 || s.Invalid != 0 || s.DuplicateChunks != 0 {
		t.Errorf("%+v", s)
	}
}

// feed gives all datagrams to a and returns the message, which must come with the last of them and not before.
func feed(t *testing.T, a *Assembler, datagrams [][]byte) []byte {
	t.Helper()
	for i, d := range datagrams {
		message, done, err := a.Add(d, start)
		if err != nil {
			t.Fatal(err)
		}
		if last := i == len(datagrams)-1; done != last {
			t.Fatalf("datagram %d of %d: done is %v", i, len(datagrams), done)
		}
		if done {
			return message
		}
	}
	return nil
}

func FuzzRoundTrip(f *testing.F) {
	f.Add(text(10), 1232, uint64(1), uint64(1))
	f.Add(text(3000), 1232, uint64(1<<63), uint64(2))
	f.Add(text(128), 13, uint64(0), uint64(3))
	f.Add(text(129), 13, uint64(0), uint64(3))
	f.Add(text(13), 12, uint64(0), uint64(3))
	f.Add([]byte("\x1e\x0f"), 12, uint64(0), uint64(3))
	f.Fuzz(func(t *testing.T, payload []byte, size int, id, seed uint64) {
		whole, err := Append(nil, payload, size, id)
		if err != nil {
			if n := Count(len(payload), size); n > 0 && n <= MaxChunks && !isChunk(payload) {
				t.Fatalf("%d datagrams refused: %v", n, err)
			}
			return
		}
		datagrams := collect(t, payload, size, id)
		if len(datagrams) != Count(len(payload), size) || !bytes.Equal(bytes.Join(datagrams, nil), whole) {
			t.Fatalf("Append, Split and Count differ")
		}
		if len(payload) < 2 {
			return
		}
		rnd := rand.New(rand.NewPCG(seed, 0))
		rnd.Shuffle(len(datagrams), func(i, j int) { datagrams[i], datagrams[j] = datagrams[j], datagrams[i] })
		var a Assembler
		if got := feed(t, &a, datagrams); !bytes.Equal(got, payload) {
			t.Fatalf("got %q, want %q", got, payload)
		}
	})
}

// FuzzAssembler reads its input as a run of datagrams: a byte of length, a byte of waiting (in 100 ms), then the datagram.
// Nothing may panic, and the books must balance: every chunk is joined, held, expired, a duplicate, or part of something
// invalid, and what is held is never more than the format allows.
func FuzzAssembler(f *testing.F) {
	run := func(datagrams ...[]byte) (in []byte) {
		for _, d := range datagrams {
			in = append(append(in, byte(len(d)), 0), d...)
		}
		return in
	}
	f.Add(run(ch(1, 0, 2, "a"), ch(1, 1, 2, "b")))
	f.Add(run(ch(1, 2, 3, "c"), ch(1, 0, 2, "a"), ch(1, 0, 0, ""), []byte("{}"), nil))
	f.Add(run(ch(1, 0, 255, "c"), ch(1, 254, 255, "a"), ch(1, 254, 255, "a")))
	f.Fuzz(func(t *testing.T, in []byte) {
		var a Assembler
		now := start
		for len(in) >= 2 {
			n := min(int(in[0]), len(in)-2)
			now = now.Add(time.Duration(in[1]) * 100 * time.Millisecond)
			message, done, err := a.Add(in[2:2+n], now)
			if err != nil && done || done != (message != nil) {
				t.Fatalf("%q, %v, %v", message, done, err)
			}
			if in[1] > 200 {
				a.Expire(now)
			}
			in = in[2+n:]
		}
		s := a.Stats()
		if s.WaitingMessages != uint64(len(a.entries())) {
			t.Fatalf("the gauge says %d, %d are held", s.WaitingMessages, len(a.entries()))
		}
		for _, e := range a.entries() {
			if len(e.data) > MaxChunks || len(e.data) > int(e.places) {
				t.Fatalf("%d chunks held for %d places", len(e.data), e.places)
			}
		}
		if n := a.Expire(now.Add(time.Hour)); uint64(n) != s.WaitingMessages || a.Stats().WaitingMessages != 0 {
			t.Fatalf("%d of %d forgotten", n, s.WaitingMessages)
		}
	})
}

func BenchmarkAssembler(b *testing.B) {
	payload := text(100_000)
	var a Assembler
	b.SetBytes(int64(len(payload)))
	b.ReportAllocs()
	for b.Loop() {
		seq, err := Split(payload, 1232, 1)
		if err != nil {
			b.Fatal(err)
		}
		for d := range seq {
			if _, _, err := a.Add(d, start); err != nil {
				b.Fatal(err)
			}
		}
	}
}
