package syslog

import (
	"bytes"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/wholelog/wholelog/delivery"
)

// unread is how many bytes the kernel has for who reads c.
func unread(t *testing.T, c *net.TCPConn) int {
	raw, err := c.SyscallConn()
	if err != nil {
		t.Error(err)
		return 0
	}
	var n int32
	err = raw.Control(func(fd uintptr) {
		if _, _, e := syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TIOCINQ, uintptr(unsafe.Pointer(&n))); e != 0 {
			t.Error(e)
		}
	})
	if err != nil {
		t.Error(err)
	}
	return int(n)
}

// R37, R50: a receiver that stops reading and then resets the connection takes along what its kernel had acknowledged and it had not
// read, which no syslog sender can know. Not a byte more is missing: all that was on its way or waited arrives, whole and in order.
func TestR37_R50_Reset(t *testing.T) {
	const breaks = 4
	for _, framing := range []Framing{OctetCounting, Newline} {
		t.Run(framing.String(), func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			var h *Handler
			var mu sync.Mutex
			lost := 0
			begun := make(chan struct{}) // h is there
			b := startBreaker(t, seed, breaks, nil, func(b *breaker, c *net.TCPConn, got *bytes.Buffer) {
				<-begun
				last, since := -1, time.Now()
				eventually(t, func() bool {
					if n := unread(t, c); n != last || h.Stats().Endpoints[0].PendingBytes == 0 {
						last, since = n, time.Now()
					}
					return time.Since(since) > 300*time.Millisecond
				})
				_, rest := frames(t, framing, got.String())
				mu.Lock()
				lost += unread(t, c) + len(rest)
				mu.Unlock()
				_ = c.SetLinger(0)
				_ = c.Close()
			})
			o := breakOptions(framing)
			o.Delivery.SendTimeout = time.Minute
			h = dialled(t, "tcp://"+b.addr, o)
			close(begun)
			logged, s := b.exhaust(h, 0)
			missing, size := b.check(framing, logged, breakText, true), 0
			for _, seq := range missing {
				size += len(breakText(seq))
			}
			t.Logf("of %d messages by %d connections %d are missing with %d bytes; the receiver threw away %d", logged, len(b.conns), len(missing), size, lost)
			if size > lost || lost == 0 {
				t.Errorf("%d bytes are missing, %d were thrown away", size, lost)
			}
			if s.Accepted != uint64(logged) || s.Delivered != uint64(logged) || s.Dropped != 0 || s.Pending != 0 || s.Unconfirmed != 0 {
				t.Errorf("of %d: %+v", logged, s)
			}
			if e := s.Endpoints[0]; e.Errors[delivery.CauseReset] == 0 || s.Resent == 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}
