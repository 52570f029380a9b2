package gelfd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wholelog/wholelog/chunk"
)

var (
	noon = time.Date(2026, 1, 2, 12, 0, 0, 123456789, time.UTC)
	from = netip.MustParseAddrPort("192.0.2.1:1000")
	also = netip.MustParseAddrPort("192.0.2.2:2000")
)

// datagrams cuts a payload into chunks of 64 bytes.
func datagrams(t *testing.T, payload string, id uint64) (out [][]byte) {
	t.Helper()
	seq, err := chunk.Split([]byte(payload), 64, id)
	if err != nil {
		t.Fatal(err)
	}
	for d := range seq {
		out = append(out, bytes.Clone(d))
	}
	return out
}

// chunks makes n chunks of one byte each; count is what their headers say.
func chunks(n int, count uint8, id byte) (out [][]byte) {
	for seq := range n {
		out = append(out, []byte{0x1e, 0x0f, 0, 0, 0, 0, 0, 0, 0, id, byte(seq), count, 'y'})
	}
	return out
}

// TestDatagrams gives datagrams to a server without a socket, all at noon, and then lets six seconds pass.
func TestDatagrams(t *testing.T) {
	long := msg(`"_text":"` + strings.Repeat("0123456789", 20) + `"`)
	split := datagrams(t, long, 7)
	zipped := datagrams(t, gz(msg(`"_text":"`+strings.Repeat("0123456789abcdefghij", 200)+`"`)), 8)
	last := len(split) - 1
	reversed := slices.Clone(split)
	slices.Reverse(reversed)

	for _, tt := range []struct {
		name     string
		in       [][]byte
		messages int
		rejected map[Reason]uint64
		as       chunk.AssemblerStats
	}{
		{"whole", [][]byte{[]byte(ok), []byte(gz(ok))}, 2, nil, chunk.AssemblerStats{}},
		{"short", [][]byte{{}, []byte("{")}, 0, map[Reason]uint64{BadType: 2}, chunk.AssemblerStats{Invalid: 2}},
		{"unsupported", [][]byte{[]byte("\x1f\x00"), []byte("\x78\x00"), []byte("\x1e\x00")}, 0, map[Reason]uint64{BadType: 3}, chunk.AssemblerStats{}},
		{"refused", [][]byte{[]byte(`{}`), []byte(`{"host":1}`), []byte("{")}, 0, map[Reason]uint64{BadMessage: 1, BadHost: 1, BadType: 1}, chunk.AssemblerStats{Invalid: 1}},
		{"chunked", split, 1, nil, chunk.AssemblerStats{TotalChunks: 5, CompleteMessages: 1}},
		{"chunked, reversed", reversed, 1, nil, chunk.AssemblerStats{TotalChunks: 5, CompleteMessages: 1}},
		{"chunked gzip", zipped, 1, nil, chunk.AssemblerStats{TotalChunks: uint64(len(zipped)), CompleteMessages: 1}},
		{"last chunk lost", split[:last], 0, nil, chunk.AssemblerStats{TotalChunks: 4, ExpiredMessages: 1, ExpiredChunks: 4}},
		{
			"duplicate before completion", slices.Concat(split[:1], split), 1, nil,
			chunk.AssemblerStats{TotalChunks: 6, CompleteMessages: 1, DuplicateChunks: 1},
		},
		{
			"duplicate after completion", slices.Concat(split, split[:1]), 1, nil,
			chunk.AssemblerStats{TotalChunks: 6, CompleteMessages: 1, ExpiredMessages: 1, ExpiredChunks: 1},
		},
		{"chunk without a place", chunks(3, 2, 1)[2:], 0, map[Reason]uint64{BadChunk: 1}, chunk.AssemblerStats{TotalChunks: 1, Invalid: 1, ExpiredMessages: 1}},
		{"count 0", chunks(1, 0, 1), 0, map[Reason]uint64{BadChunk: 1}, chunk.AssemblerStats{TotalChunks: 1, Invalid: 1, ExpiredMessages: 1}},
		{"chunk shorter than its header", [][]byte{chunks(1, 1, 1)[0][:11]}, 0, map[Reason]uint64{BadChunk: 1}, chunk.AssemblerStats{TotalChunks: 1, Invalid: 1}},
		{"count 1", [][]byte{append(chunks(1, 1, 1)[0][:12], ok...)}, 1, nil, chunk.AssemblerStats{TotalChunks: 1, CompleteMessages: 1}},
		{"128 chunks that make no JSON", chunks(128, 128, 1), 0, map[Reason]uint64{BadJSON: 1}, chunk.AssemblerStats{TotalChunks: 128, CompleteMessages: 1}},
		{
			"200 chunks", chunks(200, 200, 1), 0,
			map[Reason]uint64{BadChunk: 1},
			chunk.AssemblerStats{TotalChunks: 200, Invalid: 1, ExpiredMessages: 1, ExpiredChunks: 71},
		},
		{
			"a chunk inside chunks",
			[][]byte{append(chunks(1, 1, 1)[0][:12], "\x1e\x0fx"...)},
			0,
			map[Reason]uint64{BadChunk: 1},
			chunk.AssemblerStats{TotalChunks: 1, Invalid: 1},
		},
		{"empty chunk alone", [][]byte{chunks(1, 1, 1)[0][:12]}, 0, map[Reason]uint64{BadType: 1}, chunk.AssemblerStats{TotalChunks: 1, CompleteMessages: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer(Options{})
			for _, d := range tt.in {
				s.datagram(d, from, noon)
			}
			s.expire(noon.Add(6 * time.Second))
			st := s.Stats()
			if tt.rejected == nil {
				tt.rejected = map[Reason]uint64{}
			}
			if len(s.Messages()) != tt.messages || st.Messages != uint64(tt.messages) || !reflect.DeepEqual(st.Rejected, tt.rejected) {
				t.Errorf("%d messages, rejected %v; want %d, %v", len(s.Messages()), st.Rejected, tt.messages, tt.rejected)
			}
			if st.Assembler != tt.as {
				t.Errorf("assembler\ngot  %+v\nwant %+v", st.Assembler, tt.as)
			}
			if st.Datagrams != uint64(len(tt.in)) {
				t.Errorf("%d datagrams of %d", st.Datagrams, len(tt.in))
			}
			if len(s.parts) != 0 {
				t.Errorf("%d messages are still tracked", len(s.parts))
			}
		})
	}
}

func TestMessageTellsItsWay(t *testing.T) {
	s := newServer(Options{})
	split := datagrams(t, gz(msg(`"_text":"`+strings.Repeat("0123456789abcdefghij", 200)+`"`)), 8)
	for i, d := range split {
		sender := from
		if i == 1 {
			sender = also
		}
		s.datagram(d, sender, noon.Add(time.Duration(i)*time.Second))
	}
	got := s.Messages()
	if len(got) != 1 {
		t.Fatalf("%+v", s.Stats())
	}
	m := got[0]
	var sizes []int
	for _, d := range split {
		sizes = append(sizes, len(d))
	}
	if !slices.Equal(m.Sizes, sizes) || !slices.Equal(m.From, []netip.AddrPort{from, also}) || m.Kind != Gzip {
		t.Errorf("sizes %v from %v, %s; want %v", m.Sizes, m.From, m.Kind, sizes)
	}
	if want := noon.Add(time.Duration(len(split)-1) * time.Second); !m.Arrived.Equal(want) || m.Fields["timestamp"] != want.Truncate(time.Millisecond) {
		t.Errorf("arrived %v, timestamp %v, want %v", m.Arrived, m.Fields["timestamp"], want)
	}
}

func TestCounters(t *testing.T) {
	var called int
	s := newServer(Options{Discard: true, OnMessage: func(Message) { called++ }})
	for _, d := range []string{
		msg(`"_a":true,"_b":null,"_c":"","_d":18446744073709551615`), msg(`"_a":true`), `{"short_message":"m"}`, `{}`,
	} {
		s.datagram([]byte(d), from, noon)
	}
	st := s.Stats()
	want := Stats{
		Datagrams: 4, Bytes: st.Bytes, Whole: 4, Messages: 3, Rejected: map[Reason]uint64{BadMessage: 1},
		Dropped: map[Fault]uint64{FaultBool: 2, FaultNull: 1, FaultBlank: 1}, Wrapped: 1, NoHost: 1,
	}
	if !reflect.DeepEqual(st, want) {
		t.Errorf("\ngot  %+v\nwant %+v", st, want)
	}
	if called != 3 || len(s.Messages()) != 0 {
		t.Errorf("OnMessage called %d times, %d messages kept", called, len(s.Messages()))
	}
}

func TestSourceOfAMessageWithoutHost(t *testing.T) {
	s := newServer(Options{})
	s.datagram([]byte(`{"short_message":"m"}`), from, noon)
	if got := s.Messages()[0].Fields["source"]; got != "192.0.2.1" {
		t.Errorf("source %v", got)
	}
}

func listen(t *testing.T, opts Options) (*Server, net.Conn) {
	t.Helper()
	s, err := Listen("", opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // closing again is what some tests do
	conn, err := net.Dial("udp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return s, conn
}

func write(t *testing.T, conn net.Conn, d []byte) {
	t.Helper()
	if _, err := conn.Write(d); err != nil {
		t.Fatal(err)
	}
}

func TestListen(t *testing.T) {
	s, conn := listen(t, Options{})
	if s.RcvBuf() < 1<<16 {
		t.Errorf("receive buffer of %d bytes", s.RcvBuf())
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	long := msg(`"_text":"` + strings.Repeat("0123456789", 50) + `"`)
	for _, d := range datagrams(t, long, 9) {
		write(t, conn, d)
	}
	largest := ok + strings.Repeat(" ", 65507-len(ok)) // what one IPv4 datagram can hold
	write(t, conn, []byte(largest))
	if err := s.Wait(ctx, 2); err != nil {
		t.Fatal(err)
	}
	got := s.Messages()
	local := conn.LocalAddr().(*net.UDPAddr).AddrPort()
	if string(got[0].Raw) != long || len(got[0].Sizes) != len(datagrams(t, long, 9)) || !slices.Equal(got[0].From, []netip.AddrPort{local}) {
		t.Errorf("%+v", got[0])
	}
	if len(got[1].Raw) != 65507 || !slices.Equal(got[1].Sizes, []int{65507}) {
		t.Errorf("a datagram of 65507 bytes came as %v", got[1].Sizes)
	}
	if err := s.Wait(ctx, 1); err != nil {
		t.Errorf("waiting for what has come: %v", err)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if len(s.Messages()) != 2 || s.Stats().Messages != 2 {
		t.Error("forgotten after Close")
	}
}

func TestWaitEnds(t *testing.T) {
	s, conn := listen(t, Options{})
	write(t, conn, []byte(`{"host":"h"}`))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := s.Wait(ctx, 1)
	if !errors.Is(err, context.Canceled) || !strings.HasPrefix(err.Error(), "gelfd: 0 of 1 messages: context canceled ({Datagrams:") {
		t.Errorf("got %v", err)
	}
	result := make(chan error)
	go func() { result <- s.Wait(t.Context(), 1) }()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-result; !errors.Is(err, net.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestListenFails(t *testing.T) {
	s, _ := listen(t, Options{})
	for _, addr := range []string{s.Addr().String(), "127.0.0.1", "127.0.0.1:port that is none"} {
		if _, err := Listen(addr, Options{}); err == nil || !strings.HasPrefix(err.Error(), "gelfd: ") {
			t.Errorf("%s: error %v", addr, err)
		}
	}
}

// One server listens for both families and sees IPv4 senders as IPv4.
func TestBothFamilies(t *testing.T) {
	s, err := Listen(":0", Options{RcvBuf: 1 << 18})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	conn, err := net.Dial("udp", fmt.Sprintf("127.0.0.1:%d", s.Addr().Port()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	write(t, conn, []byte(`{"short_message":"m"}`))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := s.Wait(ctx, 1); err != nil {
		t.Fatal(err)
	}
	if m := s.Messages()[0]; !m.From[0].Addr().Is4() || m.Fields["source"] != "127.0.0.1" {
		t.Errorf("from %v, source %v", m.From, m.Fields["source"])
	}
}
