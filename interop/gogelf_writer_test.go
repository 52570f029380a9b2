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

// What it leaves out of messages, or leaves out altogether, so that nobody takes its silence for ours.
func TestGoGelfWriterOmissions(t *testing.T) {
	logGoGelfVersion(t)
	s := listen(t)
	w := goGelfWriter(t, s.Addr().String(), gogelf.CompressGzip)

	m := goGelfMessage("level 0 is the most urgent, and looks like no level")
	m.Level = gogelf.LOG_EMERG
	if err := w.WriteMessage(m); err != nil {
		t.Fatal(err)
	}
	if level, ok := await(t, s, 1)[0].Fields["level"]; ok {
		t.Errorf("level %v was sent: it is not omitted any more", level)
	}

	for _, f := range []float64{math.NaN(), math.Inf(1)} {
		m = goGelfMessage("one number that JSON has no text for")
		m.Extra["_ratio"] = f
		if err := w.WriteMessage(m); err == nil || !strings.Contains(err.Error(), "unsupported value") {
			t.Errorf("%v: %v", f, err)
		}
	}
	m = goGelfMessage("a truth")
	m.Extra["_ok"] = true
	if err := w.WriteMessage(m); err != nil {
		t.Fatal(err)
	}
	got := await(t, s, 2)
	if n := s.Stats().Datagrams; n != 2 {
		t.Errorf("%d datagrams: the messages with a number that JSON has no text for were sent", n)
	}
	if fault := got[1].Dropped; len(fault) != 1 || fault[0] != (gelfd.Dropped{Name: "_ok", Fault: gelfd.FaultBool}) {
		t.Errorf("dropped %v", fault)
	}
}
