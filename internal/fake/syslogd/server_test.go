package syslogd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const message = header + "- text"

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func start(t *testing.T, network, addr string, o Options) (*Server, net.Conn) {
	t.Helper()
	s, err := Listen(network, addr, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	c, err := net.Dial(network, s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return s, c
}

func TestDatagrams(t *testing.T) {
	for network, addr := range map[string]string{"udp": "", "unixgram": filepath.Join(t.TempDir(), "log")} {
		heard := make(chan Message, 2)
		s, c := start(t, network, addr, Options{Limit: 100, OnMessage: func(m Message) { heard <- m }})
		for _, d := range []string{"<134>nothing", strings.Repeat("x", 101), message, message} {
			if _, err := c.Write([]byte(d)); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Wait(within(t), 2); err != nil {
			t.Fatal(err)
		}
		st := s.Stats()
		if m := s.Messages(); len(m) != 2 || m[1].Raw != message || (<-heard).Raw != message {
			t.Errorf("%s: %+v", network, m)
		}
		if st.Bytes != uint64(2*len(message)) || st.Rejected[BadHeader] != 1 || st.Rejected[BadSize] != 1 || len(s.Rejects()) != 2 {
			t.Errorf("%s: %+v", network, st)
		}
	}
}

func counting(s ...string) (out string) {
	for _, m := range s {
		out += fmt.Sprintf("%d %s", len(m), m)
	}
	return out
}

// What is whole before the fault is kept, and all that follows it is lost.
func TestStreams(t *testing.T) {
	lines := strings.Repeat(message+"\n", 3)
	for name, x := range map[string]struct {
		framing Framing
		in      string
		want    uint64
		reason  Reason
	}{
		"counted":                    {Counted, counting(message, message, message), 3, ""},
		"lines":                      {Lines, lines, 3, ""},
		"both on one stream":         {Either, lines + counting(message) + lines, 7, ""},
		"counted where lines are":    {Lines, counting(message), 0, BadFrame},
		"lines where counts are":     {Counted, lines, 0, BadFrame},
		"a line feed outside":        {Counted, counting(message) + "\n" + counting(message), 1, BadFrame},
		"a zero in front":            {Either, "0" + counting(message), 0, BadFrame},
		"a sign in front":            {Counted, "+" + counting(message), 0, BadFrame},
		"an empty frame":             {Counted, counting(message) + "0 " + counting(message), 1, BadFrame},
		"an empty line":              {Lines, message + "\n\n" + message + "\n", 1, BadFrame},
		"a line without PRI":         {Lines, "text\n", 0, BadFrame},
		"a NUL in a line":            {Lines, header + "- a\x00b\n", 0, BadFrame},
		"the end within a frame":     {Counted, counting(message) + "99 <134>", 1, BadFrame},
		"the end within a count":     {Counted, counting(message) + "9", 1, BadFrame},
		"the end within a line":      {Lines, lines + message, 3, BadFrame},
		"a message that is too long": {Counted, counting(message, header+"- "+strings.Repeat("x", 200), message), 1, BadSize},
		"a line that is too long":    {Lines, message + "\n" + header + "- " + strings.Repeat("x", 200) + "\n", 1, BadSize},
		"a bad message":              {Counted, counting(message, "<192>1", message), 2, BadPRI},
	} {
		s, c := start(t, "tcp", "", Options{Framing: x.framing, Limit: 200})
		if _, err := c.Write([]byte(x.in)); err != nil {
			t.Fatal(err)
		}
		c.(*net.TCPConn).CloseWrite()
		c.SetReadDeadline(time.Now().Add(30 * time.Second))
		c.Read(make([]byte, 1)) // returns when the server has closed the stream
		s.Close()
		st := s.Stats()
		if st.Messages != x.want || len(st.Conns) != 1 || st.Conns[0].Messages != x.want || st.Conns[0].Open {
			t.Errorf("%s: %+v, want %d messages", name, st, x.want)
		}
		if x.reason == "" && len(st.Rejected) > 0 || x.reason != "" && st.Rejected[x.reason] != 1 {
			t.Errorf("%s: %v", name, s.Rejects())
		}
	}
}

// Those that connect again are received as before.
func TestHangup(t *testing.T) {
	s, c := start(t, "tcp", "", Options{})
	for i := range 2 {
		if _, err := c.Write([]byte(counting(message))); err != nil {
			t.Fatal(err)
		}
		if err := s.Wait(within(t), i+1); err != nil {
			t.Fatal(err)
		}
		s.Hangup()
		c.SetReadDeadline(time.Now().Add(30 * time.Second))
		if n, err := c.Read(make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) {
			t.Errorf("%d bytes, %v", n, err)
		}
		var err error
		if c, err = net.Dial("tcp", s.Addr()); err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
}

func TestCloseEndsStreamsAndWait(t *testing.T) {
	s, c := start(t, "unix", filepath.Join(t.TempDir(), "log"), Options{Discard: true})
	if _, err := c.Write([]byte(counting(message))); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(within(t), 1); err != nil || len(s.Messages()) != 0 {
		t.Fatalf("%v, %v", err, s.Messages())
	}
	if !s.Stats().Conns[0].Open {
		t.Error("not open")
	}
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Error(err)
	}
	if err := s.Wait(within(t), 2); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	open, _ := start(t, "udp", "", Options{})
	if err := open.Wait(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := Listen("tcp", s.Addr()+"/nowhere", Options{}); err == nil {
		t.Error("listens nowhere")
	}
}
