//go:build linux

package interop

import (
	"bytes"
	_ "embed"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	gogelf "github.com/Graylog2/go-gelf/gelf"

	"github.com/wholelog/wholelog/chunk"
	"github.com/wholelog/wholelog/internal/fake/gelfd"
)

// goGelf is the module path of the Go client and reader that Graylog published, and that many others are modelled on.
const goGelf = "github.com/Graylog2/go-gelf"

// goGelfData is how many bytes of a message each of its chunks holds.
const goGelfData = gogelf.ChunkSize - chunk.HeaderSize

// goMod says which version of it is built in; what a test could ask at run time does not.
//
//go:embed go.mod
var goMod string

func logGoGelfVersion(t *testing.T) {
	t.Helper()
	_, after, ok := strings.Cut(goMod, goGelf+" ")
	if !ok {
		t.Fatalf("%s is not in go.mod", goGelf)
	}
	line, _, _ := strings.Cut(after, "\n")
	t.Logf("version: %s %s, %s", goGelf, line, runtime.Version())
}

func goGelfWriter(t *testing.T, addr string, c gogelf.CompressType) *gogelf.UDPWriter {
	t.Helper()
	w, err := gogelf.NewUDPWriter(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	w.CompressionType = c
	return w
}

func goGelfMessage(short string) *gogelf.Message {
	return &gogelf.Message{
		Version: "1.1", Host: "peer", Short: short, TimeUnix: 1772368245.125, Level: 4,
		Extra: map[string]any{"_number": 17, "_word": "seventeen"},
	}
}

// goGelfPayload is a message of exactly n bytes, and these bytes.
func goGelfPayload(t *testing.T, n int) (*gogelf.Message, []byte) {
	t.Helper()
	marshal := func(m *gogelf.Message) []byte {
		var b bytes.Buffer
		if err := m.MarshalJSONBuf(&b); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	m := goGelfMessage(filler(n - len(marshal(goGelfMessage("")))))
	payload := marshal(m)
	if len(payload) != n {
		t.Fatalf("%d bytes, want %d", len(payload), n)
	}
	return m, payload
}

// assemble puts datagrams together by chunk.Assembler, which must have nothing left over.
func assemble(t *testing.T, datagrams []datagram) (messages [][]byte) {
	t.Helper()
	var a chunk.Assembler
	for _, d := range datagrams {
		m, done, err := a.Add(d.data, d.at)
		if err != nil {
			t.Error(err)
		}
		if done {
			messages = append(messages, m)
		}
	}
	if st := a.Stats(); st.WaitingMessages+st.DuplicateChunks+st.Invalid != 0 {
		t.Errorf("left over: %+v", st)
	}
	return messages
}

// At every multiple of 1408 that is chunked, the writer counts one chunk too many: an empty one, and at 128 × 1408 bytes a refusal of what would
// fit. Both are read here as the receiver reads them.
func TestGoGelfWriterBoundaries(t *testing.T) {
	logGoGelfVersion(t)
	p := newTap(t)
	w := goGelfWriter(t, p.addr(), gogelf.CompressNone)
	for _, tt := range []struct {
		size, datagrams, empty int // datagrams 0: refused
	}{
		{goGelfData - 1, 1, 0},
		{goGelfData, 1, 0},
		{goGelfData + 1, 1, 0}, // whole up to 1420
		{gogelf.ChunkSize, 1, 0},
		{gogelf.ChunkSize + 1, 2, 0},
		{2*goGelfData - 1, 2, 0},
		{2 * goGelfData, 3, 1},
		{2*goGelfData + 1, 3, 0},
		{127*goGelfData - 1, 127, 0},
		{127 * goGelfData, 128, 1},
		{127*goGelfData + 1, 128, 0},
		{128*goGelfData - 1, 128, 0},
		{128 * goGelfData, 0, 0}, // fits, and is refused
		{128*goGelfData + 1, 0, 0},
	} {
		m, payload := goGelfPayload(t, tt.size)
		err := w.WriteMessage(m)
		if (err == nil) != (tt.datagrams > 0) || err != nil && !strings.Contains(err.Error(), "would need 129 chunks") {
			t.Errorf("%d bytes: %v", tt.size, err)
		}
		got := p.take(t, tt.datagrams)
		empty := 0
		for _, d := range got {
			if h, data, err := chunk.Parse(d.data); err == nil && len(data) == 0 {
				empty++
				if int(h.Seq) != tt.datagrams-1 {
					t.Errorf("%d bytes: chunk %d of %d is empty", tt.size, h.Seq, h.Count)
				}
			}
		}
		if empty != tt.empty {
			t.Errorf("%d bytes: %d empty chunks, want %d", tt.size, empty, tt.empty)
		}
		if messages := assemble(t, got); tt.datagrams > 0 && (len(messages) != 1 || !bytes.Equal(messages[0], payload)) {
			t.Errorf("%d bytes: %d messages, or other bytes", tt.size, len(messages))
		}
		if want := chunk.Count(tt.size, gogelf.ChunkSize); want <= chunk.MaxChunks && tt.datagrams != want {
			t.Logf("%d bytes: %d datagrams, refused %v; %d would do", tt.size, tt.datagrams, err != nil, want)
		}
	}
}

// Whatever it compresses with, our receiver reads what it writes, field by field.
func TestGoGelfWriterToReceiver(t *testing.T) {
	logGoGelfVersion(t)
	for _, tt := range []struct {
		name string
		mode gogelf.CompressType
		kind gelfd.Kind
	}{
		{"gzip", gogelf.CompressGzip, gelfd.Gzip},
		{"zlib", gogelf.CompressZlib, gelfd.Zlib},
		{"none", gogelf.CompressNone, gelfd.Plain},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := listen(t)
			w := goGelfWriter(t, s.Addr().String(), tt.mode)
			for i, n := range []int{1, 300, 1400, 8000, 100_000, 170_000} {
				m := goGelfMessage(filler(n))
				if err := w.WriteMessage(m); err != nil {
					t.Fatalf("%d characters: %v", n, err)
				}
				got := await(t, s, i+1)[i]
				want := map[string]any{
					"message": m.Short, "source": "peer", "level": int64(4), "number": int64(17), "word": "seventeen",
					"timestamp": time.UnixMilli(1772368245125).UTC(),
				}
				if fmt.Sprint(got.Fields) != fmt.Sprint(want) || got.Kind != tt.kind || len(got.Dropped) != 0 {
					t.Errorf("%d characters: %.300v, %v, dropped %v", n, got.Fields, got.Kind, got.Dropped)
				}
				if len(got.From) != 1 {
					t.Errorf("%d characters: from %v", n, got.From)
				}
			}
			if st := s.Stats(); len(st.Rejected) != 0 || st.Assembler.WaitingMessages != 0 {
				t.Errorf("%+v", st)
			}
		})
	}
}

// What it loses, so that nobody takes its silence for ours: TestConformance has our side of every row.
func TestGoGelfWriterLosses(t *testing.T) {
	logGoGelfVersion(t)
	for _, tt := range []struct {
		name   string
		change func(*gogelf.Message)
		err    string          // of the writer, which then sends nothing
		reason gelfd.Reason    // of the receiver, for refusing the message
		lost   string          // a field that is not there
		fault  []gelfd.Dropped // fields that the receiver drops
		number any             // what _number becomes
	}{
		{name: "level 0", change: func(m *gogelf.Message) { m.Level = gogelf.LOG_EMERG }, lost: "level", number: int64(17)},
		{name: "NaN", change: func(m *gogelf.Message) { m.Extra["_x"] = math.NaN() }, err: "unsupported value: NaN"},
		{name: "infinity", change: func(m *gogelf.Message) { m.Extra["_x"] = math.Inf(1) }, err: "unsupported value: +Inf"},
		{
			name: "boolean", change: func(m *gogelf.Message) { m.Extra["_ok"] = true },
			lost: "ok", fault: []gelfd.Dropped{{Name: "_ok", Fault: gelfd.FaultBool}}, number: int64(17),
		},
		{
			name: "name with a blank", change: func(m *gogelf.Message) { m.Extra["_a b"] = 1 },
			lost: "a b", fault: []gelfd.Dropped{{Name: "_a b", Fault: gelfd.FaultName}}, number: int64(17),
		},
		{name: "large integer", change: func(m *gogelf.Message) { m.Extra["_number"] = uint64(math.MaxUint64) }, number: int64(-1)},
		{name: "long field", change: func(m *gogelf.Message) { m.Extra["_long"] = filler(32_767) }, reason: gelfd.BadIndex},
		{name: "8 MiB inflated", change: func(m *gogelf.Message) { m.Full = strings.Repeat("a", 8<<20) }, reason: gelfd.BadJSON},
		{name: "blank message", change: func(m *gogelf.Message) { m.Short = " " }, reason: gelfd.BadMessage},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := listen(t)
			w := goGelfWriter(t, s.Addr().String(), gogelf.CompressGzip)
			m := goGelfMessage("changed")
			tt.change(m)
			err := w.WriteMessage(m)
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%v, want %q", err, tt.err)
			}
			if err := w.WriteMessage(goGelfMessage("as it was")); err != nil {
				t.Fatal(err)
			}
			arrives := 1
			if tt.err == "" && tt.reason == "" {
				arrives = 2
			}
			got := await(t, s, arrives)
			if last := got[arrives-1]; len(got) != arrives || textOf(last) != "as it was" {
				t.Errorf("%d messages, the last is %v", len(got), last.Fields)
			}
			if st := s.Stats(); tt.reason != "" && (len(st.Rejected) != 1 || st.Rejected[tt.reason] != 1) || tt.reason == "" && len(st.Rejected) != 0 {
				t.Errorf("refused %v, want one for %q", st.Rejected, tt.reason)
			}
			if arrives == 1 {
				return
			}
			if _, there := got[0].Fields[tt.lost]; there || fmt.Sprint(got[0].Dropped) != fmt.Sprint(tt.fault) || got[0].Fields["number"] != tt.number {
				t.Errorf("%v, dropped %v, want %v", got[0].Fields, got[0].Dropped, tt.fault)
			}
		})
	}
}
