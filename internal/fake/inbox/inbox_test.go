package inbox

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func nothing() string { return "nothing else" }

func TestPut(t *testing.T) {
	for _, discard := range []bool{false, true} {
		var told []string
		b := New("test", make(chan struct{}), discard, func(m string) { told = append(told, m) })
		b.Put("a")
		b.Put("b")
		want := []string{"a", "b"}
		if !slices.Equal(told, want) || b.Count() != 2 {
			t.Errorf("told %q, count %d", told, b.Count())
		}
		if discard {
			want = nil
		}
		got := b.Messages()
		if !slices.Equal(got, want) {
			t.Errorf("discard %v: %q", discard, got)
		}
		if err := b.Wait(t.Context(), 2, nothing); err != nil {
			t.Error(err)
		}
	}
	b := New[int]("test", nil, false, nil)
	b.Put(7)
	got := b.Messages()
	got[0] = 8
	if b.Messages()[0] != 7 {
		t.Error("the messages are shared")
	}
}

// Wait ends with the last of the messages, with its context, or with the receiver: whichever comes first.
func TestWait(t *testing.T) {
	for _, tc := range []struct {
		name  string
		comes int  // a message a second
		ends  bool // the receiver, right behind them
		err   error
		text  string
		took  time.Duration
	}{
		{"all come", 3, false, nil, "", 3 * time.Second},
		{"too few come", 2, false, context.DeadlineExceeded, "test: 2 of 3 messages: context deadline exceeded (nothing else)", time.Minute},
		{"the receiver ends", 2, true, net.ErrClosed, "test: 2 of 3 messages: use of closed network connection (nothing else)", 2 * time.Second},
		{"the receiver ends with the last", 3, true, nil, "", 3 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				done := make(chan struct{})
				b := New[int]("test", done, true, nil)
				var wg sync.WaitGroup
				wg.Go(func() {
					for i := range tc.comes {
						time.Sleep(time.Second)
						b.Put(i)
					}
					if tc.ends {
						close(done)
					}
				})
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				start := time.Now()
				err := b.Wait(ctx, 3, nothing)
				if !errors.Is(err, tc.err) || err != nil && err.Error() != tc.text {
					t.Errorf("%v", err)
				}
				if took := time.Since(start); took != tc.took {
					t.Errorf("after %v", took)
				}
				wg.Wait()
			})
		})
	}
}
