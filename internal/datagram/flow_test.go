package datagram

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// A deadline is timeout from now, or the context's if that is sooner, and is set anew when less than half is left: not for every
// write, and never so that one batch's deadline reaches into the next.
func TestWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fake{closed: make(chan struct{})}
		f := NewFlow(s)
		for i, c := range []struct {
			wait, ctx, left time.Duration
			limits          int
		}{
			{0, 0, 10 * time.Second, 1},
			{5 * time.Second, 0, 5 * time.Second, 1},
			{time.Millisecond, 0, 10 * time.Second, 2},
			{0, time.Hour, 10 * time.Second, 2},
			{0, 2 * time.Second, 2 * time.Second, 3},
			{time.Second, 2 * time.Second, time.Second, 3},
			{0, time.Nanosecond, time.Nanosecond, 4},
			{time.Minute, 0, 10 * time.Second, 5},
		} {
			<-time.After(c.wait)
			ctx, cancel := t.Context(), context.CancelFunc(func() {})
			if c.ctx > 0 {
				ctx, cancel = context.WithTimeout(ctx, c.ctx)
			}
			if err := f.Within(ctx, time.Now(), 10*time.Second); err != nil {
				t.Fatal(err)
			}
			cancel()
			if left := time.Until(s.deadline); left != c.left || s.limits != c.limits {
				t.Errorf("%d: %v left, want %v; set %d times, want %d", i, left, c.left, s.limits, c.limits)
			}
		}
	})
}

// How far apart two instants may be, by either clock.
func TestApart(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		from, to time.Time
		want     bool
	}{
		{now, now.Add(time.Second), false},
		{now, now.Add(time.Second + 1), true},
		{now.Round(0), now.Round(0).Add(2 * time.Second), true},
		{now.Round(0), now.Round(0).Add(-time.Second), false},
		{now.Round(0), now.Round(0).Add(-time.Second - 1), true},
	} {
		if got := Apart(c.from, c.to, time.Second); got != c.want {
			t.Errorf("Apart(%v, %v): %v", c.from, c.to, got)
		}
	}
}

// What a datagram may have of the MTU, where the kernel tells that, and nothing where it does not, or where there is none.
func TestRoom(t *testing.T) {
	for addr, overhead := range map[string]int{"127.0.0.1:9": 28, "[::1]:9": 48} {
		conn, err := net.Dial("udp", addr)
		if err != nil {
			continue // a machine without that family
		}
		f := NewFlow(conn)
		if mtu := pathMTU(conn, addr[0] == '['); f.Room() != max(mtu-overhead, 0) {
			t.Errorf("%s: %d of %d", addr, f.Room(), mtu)
		}
		if f.Local().Port() == 0 || f.Local().Addr().Is4() != (overhead == 28) {
			t.Errorf("%s: %v", addr, f.Local())
		}
		f.Close()
		if f.Room() != 0 {
			t.Errorf("%s: a closed socket knows %d", addr, f.Room())
		}
	}
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if f := NewFlow(a); f.Room() != 0 || f.Local().IsValid() {
		t.Errorf("a pipe: %d, %v", f.Room(), f.Local())
	}
}
