//go:build linux

package interop

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	gosyslog "github.com/leodido/go-syslog/v4"
	"github.com/leodido/go-syslog/v4/nontransparent"
	"github.com/leodido/go-syslog/v4/octetcounting"
	"github.com/leodido/go-syslog/v4/rfc3164"
	"github.com/leodido/go-syslog/v4/rfc5424"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/syslog"
)

// strict is one handler in Sync mode and the receiver at the other end of its unix socket. What a call of the handler wrote is there to
// be read when it returns: nobody waits, and thousands of records are judged in a second.
type strict struct {
	h      *syslog.Handler
	o      syslog.Options
	packet *net.UnixConn     // datagrams
	listen *net.UnixListener // or a stream
	stream net.Conn
	read   uint64 // bytes of it
	buf    []byte
}

// startStrict starts both; stream says which kind of socket.
func startStrict(f *testing.F, path string, stream bool, o syslog.Options) *strict {
	f.Helper()
	o.Hostname, o.AppName, o.ProcID, o.MsgID = "host.example", "app", "7", ""
	o.Delivery = delivery.Options{Sync: true, SyncTimeout: time.Minute, OnError: func(error) {}}
	s := &strict{o: o, buf: make([]byte, 64<<10)}
	var err error
	if stream {
		s.listen, err = net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	} else {
		s.packet, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	}
	if err != nil {
		f.Fatal(err)
	}
	if s.h, err = syslog.NewHandler("unix://"+path, &o); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if s.stream != nil {
			s.stream.Close() // first: Close would wait for its goodbye
		}
		if stream {
			s.listen.Close()
		} else {
			s.packet.Close()
		}
		s.h.Close()
	})
	return s
}

// datagram is the next message as it came.
func (s *strict) datagram(t *testing.T) []byte {
	t.Helper()
	n, err := s.packet.Read(s.buf)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Clone(s.buf[:n])
}

// bytes is what came on the stream since the last call.
func (s *strict) bytes(t *testing.T) []byte {
	t.Helper()
	if s.stream == nil {
		var err error
		if s.stream, err = s.listen.Accept(); err != nil {
			t.Fatal(err)
		}
	}
	sent := s.h.Stats().Bytes
	b := make([]byte, sent-s.read)
	s.read = sent
	if _, err := io.ReadFull(s.stream, b); err != nil {
		t.Fatal(err)
	}
	return b
}

// framed has the other project's reader of the framing take b apart. Each message must be as good as a datagram's.
func (s *strict) framed(t *testing.T, b []byte) (all []gosyslog.Message) {
	t.Helper()
	listener := gosyslog.WithListener(func(r *gosyslog.Result) {
		if r.Error != nil {
			t.Fatalf("%v: %.2000q", r.Error, b)
		}
		all = append(all, r.Message)
	})
	var p gosyslog.Parser
	switch counted := s.o.Framing == syslog.OctetCounting; {
	case counted && s.o.Format == syslog.RFC5424:
		p = octetcounting.NewParser(listener, gosyslog.WithMachineOptions(rfc5424.WithCompliantMsg()))
	case counted:
		p = octetcounting.NewParserRFC3164(listener)
	case s.o.Format == syslog.RFC5424:
		p = nontransparent.NewParser(listener, gosyslog.WithMachineOptions(rfc5424.WithCompliantMsg()))
	default:
		p = nontransparent.NewParserRFC3164(listener)
	}
	p.Parse(bytes.NewReader(b))
	return all
}

// parsed has the other project's parser judge one message.
func (s *strict) parsed(t *testing.T, b []byte) gosyslog.Message {
	t.Helper()
	m := rfc5424.NewMachine(rfc5424.WithCompliantMsg())
	if s.o.Format == syslog.RFC3164 {
		m = rfc3164.NewMachine()
	}
	msg, err := m.Parse(b)
	if err != nil {
		t.Fatalf("%v: %.2000q", err, b)
	}
	return msg
}
