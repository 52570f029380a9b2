package gelf

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/fake/gelfd"
	"github.com/wholelog/wholelog/internal/ship"
)

// R05, R22: a frame is the record as it stands, and one NUL.
func TestR05_R22_Frame(t *testing.T) {
	f := framer{OversizeTruncate, maxFrame}
	got, cut, err := f.frame([]byte("before"), []byte(`{"a":1}`))
	if string(got) != "before{\"a\":1}\x00" || cut || err != nil {
		t.Errorf("%q, %v, %v", got, cut, err)
	}
}

// What would cost the connection never gets a frame.
func TestNoFrame(t *testing.T) {
	for _, record := range []string{"", "{", "{\x00}", "\x00\x00", "{}\x00"} {
		got, _, err := framer{OversizeTruncate, maxFrame}.frame([]byte("kept"), []byte(record))
		if string(got) != "kept" || !errors.Is(err, errNoFrame) {
			t.Errorf("%q: %q, %v", record, got, err)
		}
		if o := frameOutcome(err); o.Do != ship.Drop || o.Reason != delivery.ReasonRejected || o.Err == nil {
			t.Errorf("%+v", o)
		}
	}
}

// The longest frame is 2 097 152 bytes: exactly so many leave whole, one more is shortened and marked, or dropped. The server never sees
// a frame for which it would close the connection.
func TestFrameOversize(t *testing.T) {
	whole := func(n int) []byte {
		const before, after = `{"version":"1.1","host":"h","short_message":"`, `"}`
		return []byte(before + strings.Repeat("a", n-len(before)-len(after)) + after)
	}
	for _, tc := range []struct {
		record   []byte
		oversize Oversize
		bytes    int // of the frame with its NUL; 0: refused
		cut      bool
	}{
		{whole(maxFrame), OversizeTruncate, maxFrame + 1, false},
		{whole(maxFrame), OversizeDrop, maxFrame + 1, false},
		{whole(maxFrame + 1), OversizeTruncate, maxFrame + 1, true},
		{whole(4 << 20), OversizeTruncate, maxFrame + 1, true},
		{whole(maxFrame + 1), OversizeDrop, 0, false},
		{bytes.Replace(whole(4<<20), []byte(`"host":"h"`), []byte(`"host":"h","_truncated":7`), 1), OversizeTruncate, maxFrame + 1, false}, // counted before
		{bytes.Repeat([]byte("x"), maxFrame+1), OversizeTruncate, 0, false},                                                                // no record
	} {
		got, cut, err := framer{tc.oversize, maxFrame}.frame(nil, tc.record)
		if len(got) != tc.bytes || cut != tc.cut || (err != nil) != (tc.bytes == 0) {
			t.Errorf("%d bytes, %v: %d, %v, %v; want %d, %v", len(tc.record), tc.oversize, len(got), cut, err, tc.bytes, tc.cut)
		}
		if err != nil {
			if o := frameOutcome(err); o.Do != ship.Drop || o.Reason != delivery.ReasonTooLarge || !errors.Is(o.Err, delivery.ErrTooLarge) {
				t.Errorf("%+v", o)
			}
			continue
		}
		if doc, err := gelfd.Decode(got[:len(got)-1]); err != nil || len(tc.record) > maxFrame && doc.Fields["truncated"] == nil {
			t.Errorf("%d bytes: %v, truncated %v", len(tc.record), err, doc.Fields["truncated"])
		}
	}
}

// FuzzFrame: whatever is logged is one frame, of valid JSON that holds the message, and nothing in it ends it early.
func FuzzFrame(f *testing.F) {
	f.Add("m", "k", "v", 100)
	f.Add("a\x00b", "\x00", "\x00\x00", 1)
	f.Add("", "", "", 0)
	f.Add(strings.Repeat("ä", 400), "id", "\xff\xfe", 300)
	h := testHandler(f, Options{})
	f.Fuzz(func(t *testing.T, message, key, value string, room int) {
		r := slog.NewRecord(time.Time{}, slog.LevelInfo, message, 0)
		r.AddAttrs(slog.String(key, value), slog.Any("bytes", []byte(value)), slog.Any("raw", json.RawMessage(value)))
		record, _ := encode(h, r)
		most := 64 + room&0xfff
		frame, cut, err := framer{OversizeTruncate, most}.frame(nil, []byte(record))
		if err != nil {
			if !errors.Is(err, delivery.ErrTooLarge) || len(record) <= most {
				t.Fatalf("%q: %v", record, err)
			}
			return
		}
		last := len(frame) - 1
		if bytes.IndexByte(frame, 0) != last || last > most || !json.Valid(frame[:last]) {
			t.Fatalf("%q", frame)
		}
		if !cut && string(frame[:last]) != record {
			t.Fatalf("%q of %q", frame, record)
		}
	})
}
