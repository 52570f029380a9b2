package delivery

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"testing"
)

type panicError struct{ p *int }

func (e panicError) Error() string { return fmt.Sprint(*e.p) }

func TestDropError(t *testing.T) {
	addr := netip.MustParseAddrPort("[2001:db8::1]:12201")
	for _, tt := range []struct {
		d    Drop
		want string
	}{
		{Drop{}, "delivery: 0 records (0 B) dropped: "},
		{Drop{Records: 1, Bytes: 999, Reason: ReasonClosed}, "delivery: 1 record (999 B) dropped: closed"},
		{Drop{Records: 3, Bytes: 1200, Reason: ReasonQueueFull, Err: ErrQueueFull}, "delivery: 3 records (1.2 kB) dropped: queue_full"},
		{
			Drop{Records: 2, Bytes: 999_949, Level: slog.LevelError, Reason: ReasonTriesExhausted, Addr: addr, Err: io.ErrUnexpectedEOF},
			"delivery: 2 records (999.9 kB) dropped: tries at [2001:db8::1]:12201: unexpected EOF",
		},
		{
			Drop{Records: 20_000, Bytes: 12_345_678, Reason: ReasonRejected, Err: errors.New("POST https://u:secret@h/gelf: 413")},
			"delivery: 20000 records (12.3 MB) dropped: rejected: POST https://***@h/gelf: 413",
		},
		{Drop{Records: 1, Bytes: 999_950, Reason: ReasonPanicked, Err: panicError{}}, "delivery: 1 record (1.0 MB) dropped: panic: !PANIC"},
		{
			Drop{Records: 1, Reason: ReasonClosed, Err: Drop{Records: 2, Reason: ReasonEvicted}},
			"delivery: 1 record (0 B) dropped: closed: delivery: 2 records (0 B) dropped: evicted",
		},
	} {
		if got := tt.d.Error(); got != tt.want {
			t.Errorf("\ngot  %s\nwant %s", got, tt.want)
		}
	}
}

func TestDropIsAnErrorByValue(t *testing.T) {
	var err error = Drop{Records: 1, Reason: ReasonQueueFull, Err: fmt.Errorf("after 100ms: %w", ErrQueueFull), Data: []byte("x")}
	err = fmt.Errorf("gelf: %w", err)
	var d Drop
	if !errors.As(err, &d) || d.Reason != ReasonQueueFull || string(d.Data) != "x" {
		t.Errorf("errors.As: %+v", d)
	}
	if !errors.Is(err, ErrQueueFull) {
		t.Error("not ErrQueueFull")
	}
	if errors.Is(err, ErrClosed) || errors.Is(Drop{}, ErrQueueFull) {
		t.Error("is everything")
	}
	if errors.Is(err, Drop{}) { // a target that cannot be compared: false, and no panic
		t.Error("equal to an empty Drop")
	}
}
