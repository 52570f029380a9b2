package interop

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/wholelog/wholelog/chunk"
	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/gelf"
)

// The cases in which GELF senders go wrong, each with a word on how, held against this one: from the log call to the receiver, which
// refuses what Graylog refuses.
func TestConformance(t *testing.T) {
	for _, tt := range []struct {
		name      string
		elsewhere string // what goes wrong, and where it was seen
		run       func(*testing.T)
	}{
		{"lengths at the boundaries", "an empty chunk too many at every multiple, and a refusal at exactly 128 chunks: go-gelf and its descendants", boundaries},
		{"exactly 128 chunks", "the count does not fit a signed byte, and nothing is sent and no error told: logback-gelf", fullCount},
		{"more than 128 chunks", "129 to 255 chunks are sent, and thrown away by the receiver: logrus-graylog-hook; the count wraps: logstash-gelf", aboveMaxChunks},
		{"random message ids", "a clock and a few random bits, so that two messages are spliced into one: gelfclient, fluent-bit", randomIDs},
		{"chunks within 2 s", "all at once, whatever the receive buffer holds: go-gelf, graypy", chunkSpan},
		{"level 0", "left out as if it were no level: go-gelf and its descendants", levelZero},
		{"NaN and infinity", "the encoder fails and the message is lost: go-gelf", noNumbers},
		{"booleans, large integers, names", "the receiver drops or changes them: go-gelf", fields},
		{"long additional fields", "sent as they are, and the index refuses the whole document: go-gelf", longFields},
		{"8 MiB inflated", "sent as it is, and the receiver cuts the text and refuses what is left: go-gelf", inflated},
		{"blank messages", "sent as they are and refused: go-gelf", blankMessages},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Logf("elsewhere: %s", tt.elsewhere)
			tt.run(t)
		})
	}
}

const (
	confSize = 1420
	confData = confSize - chunk.HeaderSize
)

// confHandler sends uncompressed, in datagrams of 1420.
func confHandler(t *testing.T, addr string, o gelf.Options) *gelf.Handler {
	t.Helper()
	o.ChunkSize, o.Compression, o.Host = confSize, gelf.CompressNone, "sender"
	return newHandler(t, "udp://"+addr, o)
}

// overhead is how many bytes of a message are not its text.
func overhead(t *testing.T, h *gelf.Handler, p *tap) int {
	t.Helper()
	logAt(t, h, slog.LevelInfo, "x")
	flush(t, h)
	return len(p.take(t, 1)[0].data) - 1
}

func boundaries(t *testing.T) {
	p := newTap(t)
	h := confHandler(t, p.addr(), gelf.Options{Oversize: gelf.OversizeDrop})
	extra := overhead(t, h, p)
	sizes := []int{confSize - 1, confSize, confSize + 1}
	for _, k := range []int{1, 2, 127, 128} {
		sizes = append(sizes, k*confData-1, k*confData, k*confData+1)
	}
	for _, size := range sizes {
		want := (size + confData - 1) / confData
		if size <= confSize {
			want = 1
		}
		text := filler(size - extra)
		if want > chunk.MaxChunks { // one byte too many: nothing leaves, and it is counted
			logAt(t, h, slog.LevelInfo, text)
			flush(t, h)
			p.take(t, 0)
			if st := h.Stats(); st.Dropped != 1 || st.Reasons[delivery.ReasonTooLarge] != 1 {
				t.Errorf("%d bytes: %+v", size, st)
			}
			continue
		}
		logAt(t, h, slog.LevelInfo, text)
		flush(t, h)
		got := p.take(t, want)
		for i, d := range got {
			if _, data, err := chunk.Parse(d.data); want > 1 && (err != nil || len(data) == 0) || len(d.data) > confSize {
				t.Errorf("%d bytes: datagram %d has %d bytes, %v", size, i, len(d.data), err)
			}
		}
		if m := assemble(t, got); len(m) != 1 || len(m[0]) != size || !bytes.Contains(m[0], []byte(`"short_message":"`+text+`"`)) {
			t.Errorf("%d bytes: %d messages, or other bytes", size, len(m))
		}
	}
}

func fullCount(t *testing.T) {
	p := newTap(t)
	h := confHandler(t, p.addr(), gelf.Options{})
	logAt(t, h, slog.LevelInfo, filler(128*confData-overhead(t, h, p)))
	flush(t, h)
	for i, d := range p.take(t, 128) {
		if head, data, err := chunk.Parse(d.data); err != nil || d.data[11] != 0x80 || int(head.Seq) != i || len(data) != confData {
			t.Errorf("chunk %d: % x, %d bytes, %v", i, d.data[:chunk.HeaderSize], len(data), err)
		}
	}
}

func aboveMaxChunks(t *testing.T) {
	s := listen(t)
	h := confHandler(t, s.Addr().String(), gelf.Options{})
	for i, n := range []int{128 * confData, 200 * confData, 300 * confData} {
		text := filler(n)
		logAt(t, h, slog.LevelInfo, text, slog.Int("number", i))
		flush(t, h)
		got := await(t, s, i+1)[i]
		kept := textOf(got)
		cut, _ := got.Fields["truncated"].(int64)
		if len(got.Sizes) != chunk.MaxChunks || !strings.HasPrefix(text, kept) || int(cut) != n-len(kept) || got.Fields["number"] != int64(i) {
			t.Errorf("%d characters: %d kept, %d cut, %d datagrams", n, len(kept), cut, len(got.Sizes))
		}
	}
	if st := h.Stats(); st.Truncated != 3 || st.Dropped != 0 {
		t.Errorf("%+v", st)
	}
}

func randomIDs(t *testing.T) {
	const senders, each = 3, 100
	p := newTap(t)
	var handlers []*gelf.Handler
	for range senders {
		handlers = append(handlers, confHandler(t, p.addr(), gelf.Options{}))
	}
	high, low, bits := map[uint32]bool{}, map[uint32]bool{}, [64]int{}
	for range each {
		for _, h := range handlers {
			logAt(t, h, slog.LevelInfo, filler(confSize))
			flush(t, h)
		}
		for _, d := range p.take(t, 2*senders) {
			head, _, err := chunk.Parse(d.data)
			if err != nil {
				t.Fatal(err)
			}
			if head.Seq > 0 {
				continue
			}
			high[uint32(head.ID>>32)], low[uint32(head.ID)] = true, true
			for i := range bits {
				bits[i] += int(head.ID >> i & 1)
			}
		}
	}
	// A clock or an address in the id would show as halves that come again, or as bits that hardly move. Of 300 random halves two are
	// equal once in 100 000 runs; eight standard deviations are far beyond what chance does to a bit.
	if len(high) != senders*each || len(low) != senders*each {
		t.Errorf("%d ids have %d and %d different halves", senders*each, len(high), len(low))
	}
	for i, n := range bits {
		if math.Abs(float64(n)-senders*each/2) > 8*math.Sqrt(senders*each)/2 {
			t.Errorf("bit %d is set in %d of %d ids", i, n, senders*each)
		}
	}
}

func chunkSpan(t *testing.T) {
	p := newTap(t)
	h := confHandler(t, p.addr(), gelf.Options{PacketRate: 64}) // the slowest there is
	logAt(t, h, slog.LevelInfo, filler(128*confData-400))
	flush(t, h)
	got := p.take(t, 128)
	// 2 s by its own promise; what the machine adds must stay within what the receiver waits.
	span := got[127].at.Sub(got[0].at)
	if span < 500*time.Millisecond || span > chunk.Validity*4/5 {
		t.Errorf("128 chunks took %v", span)
	}
	t.Logf("at 64 datagrams a second 128 chunks took %v", span)

	// The receiver's side of it: it looks once a second for what is older than 5 s.
	for late, want := range map[time.Duration]bool{4600 * time.Millisecond: true, 5250 * time.Millisecond: false} {
		var a chunk.Assembler
		begin := got[0].at
		for _, d := range got[:127] {
			if _, done, err := a.Add(d.data, begin); done || err != nil {
				t.Fatal(done, err)
			}
		}
		a.Expire(begin.Add(late.Truncate(time.Second)).Add(200 * time.Millisecond))
		if _, done, err := a.Add(got[127].data, begin.Add(late)); done != want || err != nil {
			t.Errorf("the last chunk after %v: complete %v, %v", late, done, err)
		}
	}
}

func levelZero(t *testing.T) {
	s := listen(t)
	h := confHandler(t, s.Addr().String(), gelf.Options{})
	for i, tt := range []struct {
		level slog.Level
		want  int64
	}{{slog.LevelError + 12, 0}, {slog.LevelError + 8, 1}, {slog.LevelError, 3}, {slog.LevelWarn, 4}, {slog.LevelInfo, 6}} {
		logAt(t, h, tt.level, "a level")
		if got := await(t, s, i+1)[i].Fields["level"]; got != tt.want {
			t.Errorf("%v: level %v, want %d", tt.level, got, tt.want)
		}
	}
}

func noNumbers(t *testing.T) {
	s := listen(t)
	h := confHandler(t, s.Addr().String(), gelf.Options{})
	logAt(t, h, slog.LevelInfo, "no numbers", slog.Float64("nan", math.NaN()), slog.Float64("inf", math.Inf(1)), slog.Float64("minus", math.Inf(-1)), slog.Float64("half", 0.5))
	got := await(t, s, 1)[0].Fields
	if got["nan"] != "NaN" || got["inf"] != "+Inf" || got["minus"] != "-Inf" || got["half"] != 0.5 || got["message"] != "no numbers" {
		t.Errorf("%v", got)
	}
}

func fields(t *testing.T) {
	s := listen(t)
	h := confHandler(t, s.Addr().String(), gelf.Options{})
	logAt(t, h, slog.LevelInfo, "fields", slog.Bool("yes", true), slog.Bool("no", false), slog.Uint64("large", math.MaxUint64),
		slog.Int64("small", math.MinInt64), slog.String("id", "a-17"), slog.String("source", "not the host"), slog.String("a b/ö", "name"),
		slog.Any("err", errors.New("a failure")), slog.String("empty", ""), slog.Any("nothing", nil))
	m := await(t, s, 1)[0]
	for name, want := range map[string]any{
		"yes": "true", "no": "false", "large": "18446744073709551615", "small": int64(math.MinInt64), "source": "sender", "err": "a failure",
	} {
		if got := m.Fields[name]; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	var values []string
	for _, v := range m.Fields {
		values = append(values, fmt.Sprint(v))
	}
	for _, want := range []string{"a-17", "not the host", "name"} { // under whatever name
		if !slices.Contains(values, want) {
			t.Errorf("%q did not arrive: %v", want, m.Fields)
		}
	}
	if len(m.Dropped) != 0 || len(m.Wrapped) != 0 {
		t.Errorf("dropped %v, wrapped %v", m.Dropped, m.Wrapped)
	}
}

func longFields(t *testing.T) {
	s := listen(t)
	h := confHandler(t, s.Addr().String(), gelf.Options{})
	euros := strings.Repeat("€", 10_922) // 32 766 bytes, the most
	for i, text := range []string{euros[3:], euros, "x" + euros, euros + "€€"} {
		logAt(t, h, slog.LevelInfo, "long", slog.String("value", text))
		flush(t, h)
		got, _ := await(t, s, i+1)[i].Fields["value"].(string)
		want := text
		for len(want) > 32_766 {
			_, size := utf8.DecodeLastRuneInString(want)
			want = want[:len(want)-size]
		}
		if got != want {
			t.Errorf("%d bytes: %d arrived, want %d", len(text), len(got), len(want))
		}
		if st := h.Stats(); st.Truncated != uint64(max(0, i-1)) {
			t.Errorf("%d bytes: %d counted as truncated", len(text), st.Truncated)
		}
	}
	if st := s.Stats(); len(st.Rejected) != 0 {
		t.Errorf("%+v", st)
	}
}

func inflated(t *testing.T) {
	const most = 8<<20 - 1
	s := listen(t)
	h := newHandler(t, "udp://"+s.Addr().String(), gelf.Options{Compression: gelf.CompressGzip, Delivery: delivery.Options{QueueBytes: 64 << 20}})
	for i, n := range []int{most - 1000, most + 1000} {
		text := strings.Repeat("a", n)
		logAt(t, h, slog.LevelInfo, text)
		flush(t, h)
		m := await(t, s, i+1)[i]
		kept := textOf(m)
		if len(m.Raw) > most || len(m.Raw) < most-2000 || !strings.HasPrefix(text, kept) {
			t.Errorf("%d characters: %d kept, %d bytes inflated", n, len(kept), len(m.Raw))
		}
		if cut, marked := m.Fields["truncated"].(int64); marked != (n > most) || marked && int(cut) != n-len(kept) {
			t.Errorf("%d characters: %d kept, %d cut", n, len(kept), cut)
		}
	}
	if st := s.Stats(); len(st.Rejected) != 0 {
		t.Errorf("%+v", st)
	}
}

func blankMessages(t *testing.T) {
	s := listen(t)
	h := confHandler(t, s.Addr().String(), gelf.Options{})
	texts := []string{"", " ", "\n\n", "\x00", "\u00a0", "\ufeff", "\xff"}
	for i, text := range texts {
		logAt(t, h, slog.LevelInfo, text, slog.Int("number", i))
		flush(t, h)
		if m := await(t, s, i+1)[i]; m.Fields["number"] != int64(i) || m.Sizes[0] < 2 {
			t.Errorf("%q: %v in %v", text, m.Fields, m.Sizes)
		}
	}
	if st := s.Stats(); st.Datagrams != uint64(len(texts)) || len(st.Rejected) != 0 {
		t.Errorf("%+v", st)
	}
}
