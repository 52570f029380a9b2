package ship

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/delivery"
)

// Every error of a network call has one cause; a Fault's own goes first.
func TestCauseOf(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want delivery.Cause
	}{
		{&Fault{delivery.CauseBusy, syscall.ECONNREFUSED}, delivery.CauseBusy},
		{syscall.ECONNREFUSED, delivery.CauseRefused},
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, delivery.CauseRefused},
		{syscall.ECONNRESET, delivery.CauseReset},
		{syscall.EPIPE, delivery.CauseReset},
		{syscall.EMSGSIZE, delivery.CauseMTU},
		{os.ErrDeadlineExceeded, delivery.CauseTimeout},
		{context.DeadlineExceeded, delivery.CauseTimeout},
		{&net.DNSError{Err: "timeout", IsTimeout: true}, delivery.CauseDNS},
		{&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ETIMEDOUT)}, delivery.CauseTimeout},
		{&tls.CertificateVerificationError{Err: errors.New("unknown authority")}, delivery.CauseTLS},
		{tls.RecordHeaderError{Msg: "not TLS"}, delivery.CauseTLS},
		{tls.AlertError(42), delivery.CauseTLS},
		{&net.OpError{Op: "remote error", Err: errors.New("tls: bad certificate")}, delivery.CauseTLS},
		{context.Canceled, delivery.CauseOther},
		{io.ErrUnexpectedEOF, delivery.CauseOther},
		{nil, delivery.CauseOther},
	} {
		if got := CauseOf(tc.err); got != tc.want {
			t.Errorf("%v: %s, want %s", tc.err, got, tc.want)
		}
		if got := CauseOf(fmt.Errorf("wrapped: %w", tc.err)); got != tc.want && tc.err != nil {
			t.Errorf("wrapped %v: %s, want %s", tc.err, got, tc.want)
		}
	}
	f := &Fault{delivery.CauseBusy, io.EOF}
	if f.Error() != "EOF" || !errors.Is(f, io.EOF) {
		t.Errorf("%v", f)
	}
}

// A Meter passes everything on; a nil one, and one without functions, discard it.
func TestMeter(t *testing.T) {
	var got []string
	say := func(m *Meter) {
		m.Wire(1)
		m.Truncated(2)
		m.Unconfirmed(3)
		m.Trouble(delivery.CauseMTU, io.EOF)
		m.Chose(addrPort("127.0.0.1:1"), 4, 5, "why")
	}
	m := NewMeter(Recorder{
		Wire:        func(n int) { got = append(got, fmt.Sprint("wire ", n)) },
		Truncated:   func(n int) { got = append(got, fmt.Sprint("truncated ", n)) },
		Unconfirmed: func(n int) { got = append(got, fmt.Sprint("unconfirmed ", n)) },
		Trouble:     func(c delivery.Cause, err error) { got = append(got, fmt.Sprint(c, " ", err)) },
		Chose: func(l netip.AddrPort, r, b int, why string) {
			got = append(got, fmt.Sprint(l, " ", r, " ", b, " ", why))
		},
	})
	say(m)
	say(nil)
	say(NewMeter(Recorder{}))
	if want := []string{"wire 1", "truncated 2", "unconfirmed 3", "mtu EOF", "127.0.0.1:1 4 5 why"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if !m.Traced() || (*Meter)(nil).Traced() || NewMeter(Recorder{}).Traced() {
		t.Error("Traced does not say whether Chose is heard")
	}
}

// What links and callers count shows in Stats; nothing and less than nothing do not.
func TestR50_CountersOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newFakeNet(Limits{})
		net.send = func(l *fakeLink, b *Batch) error {
			l.meter.Truncated(2)
			l.meter.Unconfirmed(3)
			l.meter.Trouble("", errors.New(strings.Repeat("é", maxLastText)))
			l.deliver(b)
			return nil
		}
		e := newTestEngine(net, delivery.Options{}, resolveTo(addrs(1)...))
		for _, n := range []int{5, 0, -7} {
			e.Repaired(n)
			e.Truncated(n)
		}
		_ = e.Put(slog.LevelInfo, []byte("m"))
		mustFlush(t, e)
		s := e.Stats()
		balanced(t, s)
		ep := s.Endpoints[0]
		if s.Repaired != 5 || s.Truncated != 7 || s.Unconfirmed != 3 || s.Bytes != 1 || ep.Bytes != 1 || ep.Errors[delivery.CauseOther] != 1 {
			t.Errorf("%+v", s)
		}
		if ep.LastError != strings.Repeat("é", maxLastText/2) {
			t.Errorf("last error %q", ep.LastError)
		}
		_ = e.Close()
	})
}

// A record that could not be encoded is accepted and dropped in one call, and told like any loss; after Close it counts nowhere.
func TestRefuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []delivery.Drop
		e := newTestEngine(newFakeNet(Limits{}), delivery.Options{OnDrop: func(d delivery.Drop) { got = append(got, d) }}, resolveTo(addrs(1)...))
		cause := errors.New("LogValue panicked")
		err := e.Refuse(slog.LevelWarn, 17, delivery.ReasonPanicked, cause)
		_ = e.Close()
		var d delivery.Drop
		if !errors.As(err, &d) || d.Records != 1 || d.Bytes != 17 || d.Level != slog.LevelWarn || d.Reason != delivery.ReasonPanicked || !errors.Is(err, cause) {
			t.Errorf("%v", err)
		}
		if len(got) != 1 || got[0].Bytes != 17 || got[0].Reason != delivery.ReasonPanicked {
			t.Errorf("told %+v", got)
		}
		if err := e.Refuse(slog.LevelWarn, 17, delivery.ReasonPanicked, cause); !errors.Is(err, delivery.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
		s := e.Stats()
		if balanced(t, s); s.Accepted != 1 || s.Reasons[delivery.ReasonPanicked] != 1 {
			t.Errorf("%+v", s)
		}
	})
}

// A batch without an engine, for tests of links, passes every Settle on; records say what links may know of them.
func TestNewBatch(t *testing.T) {
	var got []string
	b := NewBatch([][]byte{[]byte("a"), []byte("b")}, func(from, to int, o Outcome) {
		got = append(got, fmt.Sprint(from, to, o.Do))
	})
	b.Settle(0, 1, Outcome{Do: Delivered})
	b.Settle(1, 2, Outcome{Do: Drop})
	if r := b.At(1); b.Len() != 2 || string(r.Bytes()) != "b" || r.Seq() != 2 || r.Level() != slog.LevelInfo || r.Tries() != 0 {
		t.Errorf("%+v", r)
	}
	if want := []string{fmt.Sprint(0, 1, Delivered), fmt.Sprint(1, 2, Drop)}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// A record knows how often it was perhaps taken. A settle that is empty, out of range, or the second of its kind changes nothing.
func TestR50_SettledOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newFakeNet(Limits{})
		var tries []int
		net.send = func(l *fakeLink, b *Batch) error {
			tries = append(tries, b.At(0).Tries())
			if len(tries) < 3 {
				b.Settle(-5, 100, Outcome{Do: Resend})
				return nil
			}
			b.Settle(0, 0, Outcome{Do: Drop})
			b.Settle(1, 0, Outcome{Do: Drop})
			l.deliver(b)
			b.Settle(0, 1, Outcome{Do: Delivered})
			b.Settle(0, 1, Outcome{Do: Drop})
			return nil
		}
		e := newTestEngine(net, delivery.Options{}, resolveTo(addrs(1)...))
		_ = e.Put(slog.LevelInfo, []byte("m"))
		mustFlush(t, e)
		time.Sleep(time.Second)
		_ = e.Close()
		s := e.Stats()
		if balanced(t, s); s.Delivered != 1 || s.Resent != 2 || !slices.Equal(tries, []int{0, 1, 2}) {
			t.Errorf("tries %v, %+v", tries, s)
		}
	})
}
