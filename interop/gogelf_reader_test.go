//go:build linux

package interop

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	gogelf "github.com/Graylog2/go-gelf/gelf"

	"github.com/wholelog/wholelog/chunk"
	"github.com/wholelog/wholelog/gelf"
	"github.com/wholelog/wholelog/internal/fake/gelfd"
	"github.com/wholelog/wholelog/internal/yardstick"
)

// The UDP Reader of go-gelf is another receiver of GELF, and no second server: it puts chunks together as they come, one message after
// the other, without an id that counts or a time that ends, from datagrams of 1420 bytes at most, and without a word when it has cut
// some of them.

// goGelfReading is what one call of the Reader came to.
type goGelfReading struct {
	message *gogelf.Message // nil: err says why
	err     error
}

// goGelfReader is a running Reader.
type goGelfReader struct {
	addr     string
	readings chan goGelfReading
}

const goodbye = `{"short_message":"goodbye"}`

// startGoGelfReader starts a Reader. It has no Close: the goroutine ends with a message that says so.
func startGoGelfReader(t *testing.T) *goGelfReader {
	t.Helper()
	logGoGelfVersion(t)
	r, err := gogelf.NewReader("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &goGelfReader{addr: r.Addr(), readings: make(chan goGelfReading, 1000)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			m, err := readGoGelf(r)
			if err == nil && m.Short == "goodbye" {
				return
			}
			g.readings <- goGelfReading{m, err}
		}
	}()
	t.Cleanup(func() {
		// It takes one to end a message that it may be waiting for, and one to be heard.
		until(t, "the Reader hears the goodbye", func() bool {
			select {
			case <-ended:
				return true
			default:
				sendTo(t, g.addr, []byte(goodbye))
				return false
			}
		})
	})
	return g
}

// readGoGelf is ReadMessage without the panic with which it answers a chunk whose number is not below the count of the first.
func readGoGelf(r *gogelf.Reader) (m *gogelf.Message, err error) {
	defer func() {
		if p := recover(); p != nil {
			m, err = nil, fmt.Errorf("panic: %v", p)
		}
	}()
	return r.ReadMessage()
}

func (g *goGelfReader) next(t *testing.T) goGelfReading {
	t.Helper()
	select {
	case r := <-g.readings:
		return r
	case <-time.After(patience):
		t.Fatal("the Reader has nothing to say")
		return goGelfReading{}
	}
}

func sendTo(t *testing.T, addr string, datagrams ...[]byte) {
	t.Helper()
	c, err := net.Dial("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, d := range datagrams {
		if _, err := c.Write(d); err != nil {
			t.Fatal(err)
		}
	}
}

// Everything that fits its datagrams arrives: every size up to 128 chunks, every compression.
func TestR18_GoGelfReaderReceives(t *testing.T) {
	for _, size := range []int{500, 1232, gogelf.ChunkSize} {
		for _, compression := range []gelf.Compression{gelf.CompressAuto, gelf.CompressNone, gelf.CompressGzip, gelf.CompressZlib} {
			t.Run(fmt.Sprintf("%d/%v", size, compression), func(t *testing.T) {
				r := startGoGelfReader(t)
				// Its receive buffer is the system's default, which 92 datagrams may fill: the rate gives it time to read.
				h := newHandler(t, "udp://"+r.addr, gelf.Options{ChunkSize: size, Compression: compression, Host: "sender", PacketRate: 2000})
				most := chunk.MaxChunks*(size-chunk.HeaderSize) - 400
				lengths := []int{1, 100, size - 200, size, 2 * size, 10_000, most / 2, most}
				for i, n := range lengths {
					text := filler(n) // hardly compressible, so that it takes many chunks in any case
					if n == 10_000 {
						text = yardstick.Text(n, 1) // several lines
					}
					logAt(t, h, slog.LevelWarn, text, slog.Int("number", i), slog.String("word", "seventeen"), slog.Bool("ok", true))
					flush(t, h)
					got := r.next(t)
					if got.err != nil {
						t.Fatalf("%d characters: %v", n, got.err)
					}
					judgeGoGelf(t, got.message, text, i)
				}
				if st := h.Stats(); st.Delivered != uint64(len(lengths)) || st.Truncated != 0 {
					t.Errorf("%+v", st)
				}
			})
		}
	}
}

func judgeGoGelf(t *testing.T, m *gogelf.Message, text string, number int) {
	t.Helper()
	short, _, more := strings.Cut(text, "\n")
	full := ""
	if more {
		full = text
	}
	extra := map[string]any{"_number": float64(number), "_word": "seventeen", "_ok": "true"}
	if m.Short != short || m.Full != full || m.Host != "sender" ||
		m.Level != gogelf.LOG_WARNING || m.TimeUnix != 1772368245.123 || m.Version != "1.1" {
		t.Errorf("%d characters: %.300v", len(text), m)
	}
	if fmt.Sprint(m.Extra) != fmt.Sprint(extra) {
		t.Errorf("%d characters: %v, want %v", len(text), m.Extra, extra)
	}
}

// Where the Reader and the server part ways. Each row is datagrams, what the server makes of them, and what the Reader does. Our
// handler must not lean on the Reader's mercies, nor be judged by its faults.
func TestGoGelfReaderIsNotTheServer(t *testing.T) {
	message := func(text string, n int) []byte {
		return fmt.Appendf(nil, `{"host":"h","short_message":"%s","_pad":"%s","_size":%d}`, text, filler(n), n)
	}
	chunks := func(payload []byte, size int, id uint64) (out [][]byte) {
		parts, err := chunk.Split(payload, size, id)
		if err != nil {
			t.Fatal(err)
		}
		for d := range parts {
			out = append(out, slices.Clone(d))
		}
		return out
	}
	reversed := chunks(message("reversed", 3000), 1420, 1)
	slices.Reverse(reversed)
	a, b := chunks(message("first", 2000), 1420, 2), chunks(message("second", 2000), 1420, 3)
	four, two := chunks(message("four chunks", 5000), 1420, 4), chunks(message("two chunks", 2000), 1420, 5)

	for _, tt := range []struct {
		name      string
		datagrams [][]byte
		server    []string // the texts it has, or the reason why it has none
		reader    []string // the texts, or what the errors say, one for each call
	}{
		{"a datagram above 1420", [][]byte{message("whole", 1500)}, []string{"whole"}, []string{"unexpected EOF"}},
		{"chunks above 1420", chunks(message("larger chunks", 3000), 1500, 6), []string{"larger chunks"}, []string{"larger chunks, with a hole"}},
		{"chunks in reverse", reversed, []string{"reversed"}, []string{"reversed, with a hole"}}, // the first it reads limits all others
		{
			"two messages interleaved",
			[][]byte{a[0], b[0], a[1], b[1]},
			[]string{"first", "second"},
			[]string{"json.Unmarshal", "json.Unmarshal"},
		},
		{
			"a message, and a longer one's chunk",
			[][]byte{two[0], four[3], two[1]},
			[]string{"two chunks"},
			[]string{"panic: runtime error: index out of range [3] with length 2"},
		},
		{
			"level as a text",
			[][]byte{[]byte(`{"host":"h","short_message":"level","level":"4"}`)},
			[]string{"level"},
			[]string{"invalid type for field level"},
		},
		{"no short_message", [][]byte{[]byte(`{"host":"h","level":4}`)}, []string{"short_message"}, []string{""}},
		{"a blank host", [][]byte{[]byte(`{"host":" ","short_message":"blank"}`)}, []string{"host"}, []string{"blank"}},
		{"inflated above 8 MiB", chunks(bomb(t, 9<<20), 1420, 7), []string{"json"}, []string{"long"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, r := listen(t), startGoGelfReader(t)
			sendTo(t, s.Addr().String(), tt.datagrams...)
			sendTo(t, r.addr, tt.datagrams...)
			for i, want := range tt.reader {
				got := r.next(t)
				if got.err == nil && whatIsLeft(got.message) != want || got.err != nil && !strings.Contains(got.err.Error(), want) {
					t.Errorf("Reader, call %d: %.100v, %v; want %q", i, got.message, got.err, want)
				}
			}
			until(t, "the server has seen all", func() bool { return s.Stats().Datagrams == uint64(len(tt.datagrams)) })
			until(t, "the server has judged", func() bool { st := s.Stats(); return st.Messages+uint64(len(st.Rejected)) == uint64(len(tt.server)) })
			var texts []string
			for _, m := range s.Messages() {
				texts = append(texts, m.Fields["message"].(string))
			}
			for reason := range s.Stats().Rejected {
				texts = append(texts, string(reason))
			}
			if !slices.Equal(texts, tt.server) {
				t.Errorf("server: %v, want %v", texts, tt.server)
			}
		})
	}
}

// whatIsLeft is the text of a message, and a word on its other text if that is not all there.
func whatIsLeft(m *gogelf.Message) string {
	pad, _ := m.Extra["_pad"].(string)
	if size, ok := m.Extra["_size"].(float64); ok && len(pad) != int(size) {
		return m.Short + ", with a hole"
	}
	return m.Short
}

// bomb is a compressed message whose text is n bytes and a few.
func bomb(t *testing.T, n int) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(w, `{"host":"h","short_message":"long","full_message":"%s"}`, strings.Repeat("a", n)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The Reader stops at 128 chunks too, but unlike the server does not forget: the rest of a longer message is the beginning of another
// one for it. Ours never sends one.
func TestGoGelfReaderAboveMaxChunks(t *testing.T) {
	s, r := listen(t), startGoGelfReader(t)
	const count = 130
	var datagrams [][]byte
	for seq := range count {
		datagrams = append(datagrams, append([]byte{0x1e, 0x0f, 1, 2, 3, 4, 5, 6, 7, 8, byte(seq), count}, "0123456789"...))
	}
	sendTo(t, s.Addr().String(), datagrams...)
	sendTo(t, r.addr, datagrams...)
	if got := r.next(t); got.err == nil {
		t.Errorf("the Reader has %v of %d chunks", got.message, count)
	}
	until(t, "the server has seen all", func() bool { return s.Stats().Datagrams == count })
	if st := s.Stats(); st.Messages != 0 || st.Rejected[gelfd.BadChunk] != 1 || st.Assembler.WaitingMessages != 1 {
		t.Errorf("%+v", st)
	}
}
