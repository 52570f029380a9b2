package gelfd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// tcpServer starts a server and dials it.
func tcpServer(t *testing.T, o TCPOptions) (*TCPServer, *net.TCPConn) {
	t.Helper()
	s, err := ListenTCP("", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	c, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return s, c.(*net.TCPConn)
}

// endOf waits until the server's first connection has ended and returns what is known of it.
func endOf(t *testing.T, s *TCPServer) Conn {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); <-time.After(time.Millisecond) {
		if c := s.Conns(); len(c) > 0 && c[0].End != "" {
			return c[0]
		}
	}
	t.Fatalf("no end: %+v", s.Conns())
	return Conn{}
}

// TestTCP: what becomes of messages on a connection, and of the connection.
func TestTCP(t *testing.T) {
	long := func(n int) string {
		const before, after = `{"host":"h","short_message":"`, `"}`
		return before + strings.Repeat("a", n-len(before)-len(after)) + after
	}
	for _, tc := range []struct {
		name, stream string
		messages     int
		rejected     map[Reason]uint64
		end          string
		frames       uint64
	}{
		{"three", ok + "\x00" + ok + "\x00" + ok + "\x00", 3, nil, EndFIN, 3},
		{"last without NUL", ok + "\x00" + ok, 2, nil, EndFIN, 2},
		{"bad JSON between", ok + "\x00{]\x00" + ok + "\x00", 2, map[Reason]uint64{BadJSON: 1}, EndFIN, 3},
		{"refused message between", ok + "\x00{\"host\":1}\x00" + ok + "\x00", 2, map[Reason]uint64{BadHost: 1}, EndFIN, 3},
		{"two objects in one frame", ok + "\n" + ok + "\x00", 1, nil, EndFIN, 1},
		{"escaped NUL", strings.Replace(ok, `"m"`, `"a\u0000b"`, 1) + "\x00", 1, nil, EndFIN, 1},
		{"empty frame", ok + "\x00\x00" + ok + "\x00", 1, map[Reason]uint64{BadFrame: 1}, EndFrame, 1},
		{"frame of one byte", "{\x00" + ok + "\x00", 0, map[Reason]uint64{BadFrame: 1}, EndFrame, 0},
		{"2 097 152 bytes", long(2097152) + "\x00" + ok + "\x00", 2, nil, EndFIN, 2},
		{"2 097 153 bytes", long(2097153) + "\x00" + ok + "\x00", 0, map[Reason]uint64{BadFrame: 1}, EndFrame, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, c := tcpServer(t, TCPOptions{})
			_, err := c.Write([]byte(tc.stream))
			if err = errors.Join(err, c.CloseWrite()); err != nil && tc.end == EndFIN {
				t.Fatal(err)
			}
			conn := endOf(t, s)
			if conn.End != tc.end || conn.Frames != tc.frames {
				t.Errorf("%+v; want %s after %d frames", conn, tc.end, tc.frames)
			}
			st := s.Stats()
			if len(s.Messages()) != tc.messages || fmt.Sprint(st.Rejected) != fmt.Sprint(tc.rejected) {
				t.Errorf("%d messages, rejected %v; want %d, %v", len(s.Messages()), st.Rejected, tc.messages, tc.rejected)
			}
			if st.Messages > 0 && s.Messages()[0].From[0].String() != c.LocalAddr().String() {
				t.Errorf("from %v", s.Messages()[0].From)
			}
		})
	}
}

// The ends that a client cannot cause by what it writes.
func TestTCPEnds(t *testing.T) {
	s, c := tcpServer(t, TCPOptions{})
	if _, err := c.Write([]byte(ok + "\x00")); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	s.Hangup()
	if n, err := c.Read(make([]byte, 1)); n > 0 || err != io.EOF {
		t.Errorf("%d, %v", n, err)
	}
	if got := endOf(t, s); got.End != EndServer || got.Bytes != uint64(len(ok)+1) {
		t.Errorf("%+v", got)
	}
	if again, err := net.Dial("tcp", s.Addr().String()); err != nil {
		t.Error(err)
	} else {
		again.Close()
	}

	s, c = tcpServer(t, TCPOptions{})
	if err := errors.Join(c.SetLinger(0), c.Close()); err != nil {
		t.Fatal(err)
	}
	if got := endOf(t, s); got.End != EndReset {
		t.Errorf("%+v", got)
	}

	s, c = tcpServer(t, TCPOptions{KeepHalf: true})
	if _, err := c.Write([]byte(ok)); err != nil {
		t.Fatal(err)
	}
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if got := s.Conns()[0]; got.End != "" {
		t.Errorf("%+v", got)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("again: %v", err)
	}
	if got := endOf(t, s); got.End != EndServer {
		t.Errorf("%+v", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := s.Wait(ctx, 2); !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v", err)
	}
}

// A deaf server takes what its kernel takes.
func TestTCPDeaf(t *testing.T) {
	s, c := tcpServer(t, TCPOptions{Deaf: true, Options: Options{RcvBuf: 4 << 10}})
	if n, err := c.Write([]byte("x")); n != 1 || err != nil {
		t.Fatalf("%d bytes, %v", n, err)
	}
	if err := c.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Write(make([]byte, 64<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%d bytes, %v", n, err)
	}
	if got := s.Conns(); len(got) != 1 || got[0].Bytes != 0 || got[0].End != "" {
		t.Errorf("%+v", got)
	}
}

func TestListenTCPFails(t *testing.T) {
	for _, addr := range []string{"127.0.0.1", "192.0.2.1:0"} {
		if _, err := ListenTCP(addr, TCPOptions{}); err == nil || !strings.HasPrefix(err.Error(), "gelfd: ") {
			t.Errorf("%s: %v", addr, err)
		}
	}
}
