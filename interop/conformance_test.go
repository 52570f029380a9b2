//go:build linux

package interop

import (
	"bytes"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/wholelog/wholelog/chunk"
	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/gelf"
)

// The cases in which GELF senders go wrong, each with a word on how, held against this one: from the log call to the receiver, which
// refuses what Graylog refuses.
func TestConformance(t *testing.T) {
	for _, tt := range []struct {
		name      string
		run       func(*testing.T)
		elsewhere string // what goes wrong, and where it was seen
	}{
		{
			"lengths at the boundaries", boundaries,
			"an empty chunk too many at every multiple, and a refusal at exactly 128 chunks: go-gelf and its descendants",
		},
		{
			"exactly 128 chunks", fullCount,
			"the count does not fit a signed byte, and nothing is sent and no error told: logback-gelf",
		},
		{
			"more than 128 chunks", aboveMaxChunks,
			"129 to 255 chunks are sent, and thrown away by the receiver: logrus-graylog-hook; the count wraps: logstash-gelf",
		},
		{
			"random message ids", randomIDs,
			"a clock and a few random bits, so that two messages are spliced into one: gelfclient, fluent-bit",
		},
		{
			"chunks within 2 s", chunkSpan,
			"all at once, whatever the receive buffer holds: go-gelf, graypy",
		},
		{
			"level 0", levelZero,
			"left out as if it were no level: go-gelf and its descendants",
		},
		{
			"NaN and infinity", noNumbers,
			"the encoder fails and the message is lost: go-gelf",
		},
		{
			"booleans, large integers, names", fields,
			"the receiver drops or changes them: go-gelf",
		},
		{
			"long additional fields", longFields,
			"sent as they are, and the index refuses the whole document: go-gelf",
		},
		{
			"8 MiB inflated", inflated,
			"sent as it is, and the receiver cuts the text and refuses what is left: go-gelf",
		},
		{
			"blank messages", blankMessages,
			"sent as they are and refused: go-gelf",
		},
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
