package dnsd

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"
)

// Without sockets look-ups are answered, cut answers come again as streams, and time is the bubble's.
func TestInMemory(t *testing.T) {
	Bubble(t, func(t *testing.T, s *Server) {
		s.Set("plain.test", Answer{Addrs: addrs("127.0.0.1")})
		s.Set("long.test", Answer{Addrs: addrs("127.0.0.1"), Truncated: true})
		s.Set("slow.test", Answer{Addrs: addrs("127.0.0.1"), Delay: 3 * time.Second})
		s.Set("silent.test", Answer{Silent: true})
		for name, want := range map[string]time.Duration{"plain.test.": 0, "long.test.": 0, "slow.test.": 3 * time.Second} {
			began := time.Now()
			got, err := s.Resolver().LookupHost(t.Context(), name)
			if took := time.Since(began); err != nil || len(got) != 1 || took != want {
				t.Errorf("%s: %v, %v after %v", name, got, err, took)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		var failed *net.DNSError
		if _, err := s.Resolver().LookupHost(ctx, "silent.test."); !errors.As(err, &failed) || !failed.IsTimeout || time.Since(began) != time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		<-ctx.Done() // a connection's deadline passes in the same instant, and may be first
		if _, err := s.Dial(ctx, "udp", ""); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Dial: %v", err)
		}
		s.Close()
		if _, err := s.Resolver().LookupHost(t.Context(), "plain.test."); err == nil {
			t.Error("it answers after Close")
		}
	})
}
