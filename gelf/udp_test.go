package gelf

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/wholelog/wholelog/chunk"
	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/ship"
)

// What leaves at and around every boundary, exactly: as many datagrams as needed, all full but the last, none empty.
func TestDatagramsAtBoundaries(t *testing.T) {
	for _, size := range []int{64, 512, 1232, 1420, 65_507} {
		data := size - chunk.HeaderSize
		for _, k := range []int{1, 2, 127, 128} {
			for _, n := range []int{k*data - 1, k * data, k*data + 1} {
				if n > 128*data || n < 60 {
					continue // the ladder's, see TestR14; or too short for a record
				}
				r := newRig(t, udpConfig{chunkSize: size, compression: CompressNone})
				record := recordOf(n, noise)
				if err := r.send(t.Context(), record); err != nil {
					t.Fatal(err)
				}
				want, id := [][]byte{record}, uint64(0)
				if n > size {
					h, _, err := chunk.Parse(r.sent[0].data)
					if err != nil {
						t.Fatal(err)
					}
					id, want = h.ID, nil
					for seq := 0; seq*data < n; seq++ {
						head := append([]byte{0x1e, 0x0f}, idBytes(id)...)
						head = append(head, byte(seq), byte((n+data-1)/data))
						want = append(want, append(head, record[seq*data:min((seq+1)*data, n)]...))
					}
				}
				if len(r.sent) != len(want) {
					t.Fatalf("size %d, %d bytes: %d datagrams, want %d", size, n, len(r.sent), len(want))
				}
				for i := range want {
					if !bytes.Equal(r.sent[i].data, want[i]) {
						t.Fatalf("size %d, %d bytes: datagram %d differs", size, n, i)
					}
				}
				if got := r.outcomes(); got != "1 delivered" {
					t.Errorf("size %d, %d bytes: %s", size, n, got)
				}
				total := 0
				for _, w := range r.wire {
					total += w.bytes
				}
				if wire := wireSize(n, size); total != wire || len(r.chosen) != 1 || r.chosen[0].bytes != wire {
					t.Errorf("size %d, %d bytes: the meter heard %d, the trace %v, want %d", size, n, total, r.chosen, wire)
				}
			}
		}
	}
}

func idBytes(id uint64) []byte {
	b := make([]byte, 8)
	for i := range b {
		b[i] = byte(id >> (56 - 8*i))
	}
	return b
}

func TestR14_Never129Chunks(t *testing.T) {
	for _, size := range []int{64, 512, 1232, 1420} {
		most := 128 * (size - chunk.HeaderSize)
		for _, c := range []struct {
			name   string
			config udpConfig
			n      int
			chunks int
			want   string
			cut    int
		}{
			{"what fits", udpConfig{}, most, 128, "1 delivered", 0},
			{"one byte more, shortened", udpConfig{}, most + 1, 128, "1 delivered", 1},
			{"one byte more, dropped", udpConfig{oversize: OversizeDrop}, most + 1, 0, "1 drop too_large", 0},
			{"one byte more, diverted", udpConfig{fallback: true}, most + 1, 0, "1 divert", 0},
			{"ten times as much, shortened", udpConfig{}, 10 * most, 128, "1 delivered", 1},
		} {
			c.config.chunkSize, c.config.compression = size, CompressNone
			r := newRig(t, c.config)
			record := recordOf(c.n, noise)
			if err := r.send(t.Context(), record); err != nil {
				t.Fatal(err)
			}
			if got := r.outcomes(); got != c.want || len(r.sent) != c.chunks || r.truncated != c.cut {
				t.Errorf("size %d, %s: %s in %d datagrams, %d shortened", size, c.name, got, len(r.sent), r.truncated)
			}
			if messages := r.messages(t, size); c.cut > 0 {
				checkTruncated(t, record, messages[0])
			} else if c.chunks > 0 && !bytes.Equal(messages[0], record) {
				t.Errorf("size %d, %s: something else arrives", size, c.name)
			}
			if o := r.settled[0].Outcome; c.want == "1 drop too_large" && !errors.Is(o.Err, delivery.ErrTooLarge) {
				t.Errorf("size %d, %s: %v", size, c.name, o.Err)
			}
		}
	}
}

// A record that no cut makes fit is dropped and named, and the records around it arrive.
func TestR14_OneUnsendableRecordAlone(t *testing.T) {
	r := newRig(t, udpConfig{chunkSize: 64, compression: CompressNone})
	hopeless := []byte(`{"host":"` + strings.Repeat("h", 7000) + `","short_message":"m"}`)
	if err := r.send(t.Context(), []byte(`{"a":1}`), hopeless, []byte(`{"b":2}`)); err != nil {
		t.Fatal(err)
	}
	if got := r.outcomes(); got != "1 delivered, 1 drop too_large, 1 delivered" || len(r.sent) != 2 {
		t.Errorf("%s in %d datagrams", got, len(r.sent))
	}
}

// With compression the ladder begins later, and what is cut is only what does not fit compressed.
func TestR14_CompressionBeforeTruncation(t *testing.T) {
	for _, mode := range []Compression{CompressAuto, CompressGzip, CompressZlib} {
		r := newRig(t, udpConfig{compression: mode})
		fits, tooLong := recordOf(200_000, prose), recordOf(900_000, prose)
		if err := r.send(t.Context(), fits, tooLong); err != nil {
			t.Fatal(err)
		}
		got := r.messages(t, 1232)
		if len(got) != 2 || !bytes.Equal(inflate(t, got[0]), fits) || r.truncated != 1 {
			t.Fatalf("mode %d: %d messages, %d shortened", mode, len(got), r.truncated)
		}
		if chunks := chunk.Count(len(got[1]), 1232); chunks > 128 || chunks < 116 {
			t.Errorf("mode %d: %d chunks", mode, chunks)
		}
		checkTruncated(t, tooLong, inflate(t, got[1]))
	}
}

func TestR15_R17_DatagramSize(t *testing.T) {
	for _, size := range []int{defaultChunkSize, 512, 64, 1472} {
		if size == defaultChunkSize && size > 1472 {
			t.Errorf("the default of %d does not fit an MTU of 1500", size)
		}
		r := newRig(t, udpConfig{chunkSize: size})
		var records [][]byte
		for n := 60; n < 12_000; n += 371 {
			records = append(records, recordOf(n, noise))
		}
		if err := r.send(t.Context(), records...); err != nil {
			t.Fatal(err)
		}
		r.messages(t, size) // checks the length of every datagram
	}
}

func TestR18_EverySizeComesBack(t *testing.T) {
	const size = 80
	r := newRig(t, udpConfig{chunkSize: size, compression: CompressNone})
	var records [][]byte
	for n := 60; n <= 128*(size-chunk.HeaderSize); n += 7 {
		records = append(records, recordOf(n, noise))
	}
	if err := r.send(t.Context(), records...); err != nil {
		t.Fatal(err)
	}
	got := r.messages(t, size)
	if len(got) != len(records) {
		t.Fatalf("%d messages of %d", len(got), len(records))
	}
	for i := range got {
		if !bytes.Equal(got[i], records[i]) {
			t.Fatalf("record of %d bytes comes back as %d", len(records[i]), len(got[i]))
		}
	}
}

// A message of which one datagram fails is never continued: those before it are delivered, it and the rest go back to the queue,
// and the next attempt is whole, under a new id, on another flow. A refusal is news of the address, so no other flow is kept.
func TestRefusedMessageStartsOver(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		cause delivery.Cause
		all   bool
	}{
		"nothing listens":  {errRefused, delivery.CauseRefused, true},
		"no route":         {errNoRoute, delivery.CauseOther, false},
		"our own firewall": {errFirewall, delivery.CauseOther, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, udpConfig{chunkSize: 100, compression: CompressNone})
			records := [][]byte{[]byte(`{"a":1}`), recordOf(500, noise), []byte(`{"b":2}`)}
			r.failWrite = map[int]error{4: socketError(c.err)} // the third chunk of the second record
			if err := r.send(t.Context(), records...); err != nil {
				t.Fatalf("the link ends: %v", err)
			}
			if got, want := r.outcomes(), "1 delivered, 2 requeue "+string(c.cause); got != want {
				t.Errorf("%s, want %s", got, want)
			}
			if !r.flows[1].isClosed() || r.flows[0].isClosed() != c.all {
				t.Errorf("flows closed: %v, %v", r.flows[0].isClosed(), r.flows[1].isClosed())
			}
			if err := r.send(t.Context(), records[1:]...); err != nil {
				t.Fatal(err)
			}
			got := r.messages(t, 100)
			if len(got) != 4 || got[1] != nil || !bytes.Equal(got[2], records[1]) || !bytes.Equal(got[3], records[2]) {
				t.Errorf("%q", got)
			}
			if r.sent[1].flow == r.sent[3].flow {
				t.Error("the failed flow is used again")
			}
		})
	}
}

// One flow is enough for a link to go on after a refusal.
func TestRefusedOnTheOnlyFlow(t *testing.T) {
	r := newRig(t, udpConfig{flows: 1})
	r.failWrite = map[int]error{1: socketError(errRefused)}
	for range 2 {
		if err := r.send(t.Context(), []byte(`{"a":1}`)); err != nil {
			t.Fatal(err)
		}
	}
	if r.dials != 2 || len(r.sent) != 1 {
		t.Errorf("%d flows opened, %d datagrams sent", r.dials, len(r.sent))
	}
}

// Too long for the path: the same message goes again at once, whole, in smaller datagrams, and so do all later ones. It is reported
// once for each size learned and ends nothing.
func TestTooLongIsChunkedAnew(t *testing.T) {
	r := newRig(t, udpConfig{chunkSize: 1472, compression: CompressNone})
	record := recordOf(20_000, noise)
	r.failWrite = map[int]error{2: socketError(errTooLong), 5: socketError(errTooLong)}
	if err := r.send(t.Context(), record, record); err != nil {
		t.Fatal(err)
	}
	if got := r.outcomes(); got != "2 delivered" {
		t.Error(got)
	}
	got := r.messages(t, 1472)
	if len(got) != 4 || got[0] != nil || got[1] != nil || !bytes.Equal(got[2], record) || !bytes.Equal(got[3], record) {
		t.Errorf("%d messages", len(got))
	}
	for i, d := range r.sent {
		if want := []int{1472, 1452, 1452, 1392}[min(i, 3)]; len(d.data) > want {
			t.Errorf("datagram %d has %d bytes, %d learned", i, len(d.data), want)
		}
	}
	if len(r.troubles) != 2 || r.troubles[0].cause != delivery.CauseMTU || !errors.Is(r.troubles[0].err, errTooLong) ||
		!strings.HasPrefix(r.troubles[0].err.Error(), "datagrams shortened from 1472 to 1452 bytes: ") {
		t.Errorf("%v", r.troubles)
	}
	if len(r.chosen) != 2 {
		t.Errorf("%d choices traced for two messages", len(r.chosen))
	}
	if r.sent[0].flow != r.sent[2].flow {
		t.Error("the message changed its flow in between")
	}
}

// At the smallest size the record goes back to the queue: another address may have a better path.
func TestTooLongEvenAtTheSmallestSize(t *testing.T) {
	r := newRig(t, udpConfig{chunkSize: 600, compression: CompressNone})
	r.failWrite = map[int]error{1: socketError(errTooLong), 2: socketError(errTooLong)}
	if err := r.send(t.Context(), []byte(`{"a":1}`)); err != nil {
		t.Fatal(err)
	}
	if got := r.outcomes(); got != "1 drop mtu too_large" || len(r.troubles) != 1 {
		t.Errorf("%s, %v", got, r.troubles)
	}
}

func TestSmaller(t *testing.T) {
	for _, c := range []struct{ size, room, want int }{
		{1472, 1372, 1372},
		{65_507, 1472, 1472},
		{1232, 64, 64},
		{1232, 63, 508},    // below the least chunk size: not believed
		{1472, 1472, 1452}, // the kernel knows nothing better
		{65_507, 0, 8192},
		{8192, 0, 1472},
		{1420, 0, 1392},
		{1392, 0, 1232},
		{1232, 0, 508},
		{508, 0, 0},
		{64, 0, 0},
		{508, 472, 472},
	} {
		if got := smaller(c.size, c.room); got != c.want {
			t.Errorf("smaller(%d, %d) is %d, want %d", c.size, c.room, got, c.want)
		}
	}
}

// A record that was shortened counts once, when it is sent, however often it had to start over.
func TestTruncatedCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, udpConfig{chunkSize: 64, compression: CompressNone})
		record := recordOf(10_000, noise)
		r.failWrite = map[int]error{100: socketError(errBusy), 200: socketError(errRefused)}
		for range 2 {
			if err := r.send(t.Context(), record); err != nil {
				t.Fatal(err)
			}
		}
		if r.truncated != 1 || r.settled[0].Cause != delivery.CauseRefused || r.settled[1].from != 0 {
			t.Errorf("counted %d times; %v", r.truncated, r.settled)
		}
	})
}

// Every attempt has an id of its own, and ids look random.
func TestIDsAreFresh(t *testing.T) {
	r := newRig(t, udpConfig{chunkSize: 64, compression: CompressNone})
	for range 1000 {
		if err := r.send(t.Context(), recordOf(100, noise)); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[uint64]bool{}
	var ones [64]int
	for i := 0; i < len(r.sent); i += 2 {
		h, _, err := chunk.Parse(r.sent[i].data)
		if err != nil || seen[h.ID] {
			t.Fatalf("%v, id %x seen: %v", err, h.ID, seen[h.ID])
		}
		seen[h.ID] = true
		for bit := range ones {
			ones[bit] += int(h.ID >> bit & 1)
		}
	}
	for bit, n := range ones {
		if n < 400 || n > 600 { // six standard deviations
			t.Errorf("bit %d is set in %d of 1000", bit, n)
		}
	}
}

func TestSendWithEndedContext(t *testing.T) {
	r := newRig(t, udpConfig{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.send(ctx, []byte(`{"a":1}`)); !errors.Is(err, context.Canceled) || len(r.sent) != 0 || r.outcomes() != "1 requeue" {
		t.Errorf("%v, %d sent, %s", err, len(r.sent), r.outcomes())
	}
}

func TestLinkWithoutDuties(t *testing.T) {
	r := newRig(t, udpConfig{})
	r.link.Nudge()
	if err := r.link.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	if r.link.Gone() != nil {
		t.Error("a UDP peer cannot go")
	}
}

func TestLimits(t *testing.T) {
	for _, c := range []struct {
		rate, size, bytes, records int
	}{
		{10_000, 1232, 64 << 10, 2500},
		{64, 1232, 16 * 1232, 16},
		{64, 64, 1024, 16},
		{-1, 1232, 64 << 10, 0},
	} {
		want := ship.Limits{LinksPerAddr: 1, Blind: true, BatchBytes: c.bytes, BatchRecords: c.records}
		if got := newUDP(udpConfig{packetRate: c.rate, chunkSize: c.size}).Limits(); got != want {
			t.Errorf("%+v: %+v, want %+v", c, got, want)
		}
	}
}
