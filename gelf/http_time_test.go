package gelf

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/fake/gelfd"
	"github.com/wholelog/wholelog/internal/mask"
	"github.com/wholelog/wholelog/internal/ship"
)

var oneRecord = []byte(`{"host":"h","short_message":"m"}`)

// causeOf is how the engine reads the error of Send.
func causeOf(err error) delivery.Cause {
	if err == nil {
		return ""
	}
	return ship.CauseOf(err)
}

// R77: a request that is not answered within SendTimeout was perhaps taken: it is left to the engine, which sends it again.
func TestR77_HTTPTimeout(t *testing.T) {
	for _, x := range []struct {
		o    Options
		want time.Duration
	}{
		{Options{}, 30 * time.Second},
		{Options{Delivery: delivery.Options{SendTimeout: 3 * time.Second}}, 3 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			stall := &gelfd.Answer{Stall: true}
			r := newHTTPRig(t, x.o, gelfd.HTTPOptions{Answer: func(n int, _ gelfd.Request) *gelfd.Answer {
				if n == 2 {
					return nil
				}
				return stall
			}}, nil)
			start := time.Now()
			err := r.send(t.Context(), oneRecord)
			if took := time.Since(start); took != x.want || causeOf(err) != delivery.CauseTimeout || r.outcomes() != "" {
				t.Errorf("after %v: %v", took, err)
			}
			if want := "no answer within " + x.want.String(); !strings.HasPrefix(err.Error(), want) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v", err)
			}
			// Of two at once, the one that is answered is delivered.
			err = r.send(t.Context(), oneRecord, oneRecord)
			if got := r.outcomes(); causeOf(err) != delivery.CauseTimeout || got != "1 delivered" && got != "1 follows 0, 1 delivered" {
				t.Errorf("%s, %v", got, err)
			}
		})
	}
}

// The end of the caller's time is told as such; the end of the engine is no evidence against the address.
func TestHTTPContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHTTPRig(t, Options{}, gelfd.HTTPOptions{Answer: func(int, gelfd.Request) *gelfd.Answer { return &gelfd.Answer{Stall: true} }}, nil)
		ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
		defer cancel()
		start := time.Now()
		if err := r.send(ctx, oneRecord); causeOf(err) != delivery.CauseTimeout || time.Since(start) != 700*time.Millisecond || r.outcomes() != "" {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if err := r.send(ctx, oneRecord); !errors.Is(err, context.Canceled) || r.outcomes() != "" {
			t.Errorf("%v", err)
		}
	})
}

// Nothing left: the records are requeued, without a try, and the link ends so that the address is dialled before it gets others.
func TestHTTPNothingWritten(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Addr: net.TCPAddrFromAddrPort(rigAddr), Err: syscall.ECONNREFUSED}
	synctest.Test(t, func(t *testing.T) {
		// The first connection is idle and old, the next is refused.
		r := newHTTPRig(t, Options{}, gelfd.HTTPOptions{}, nil)
		r.failDial = map[int]error{2: refused, 3: refused}
		if err := r.send(t.Context(), oneRecord); err != nil || r.outcomes() != "1 delivered" {
			t.Error(err)
		}
		time.Sleep(time.Hour)
		err := r.send(t.Context(), oneRecord, oneRecord)
		if got := r.outcomes(); got != "2 requeue" || causeOf(err) != delivery.CauseRefused || strings.Contains(err.Error(), rigAddr.String()) {
			t.Errorf("%s, %v", got, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		// A connection that breaks before it takes a byte.
		r := rigFor(t, Options{}, "http://h:1", func(c net.Conn) { c.Close() })
		r.dialLink(t)
		synctest.Wait()
		err := r.send(t.Context(), oneRecord)
		if got := r.outcomes(); got != "1 requeue" || err == nil {
			t.Errorf("%s, %v", got, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		// A connection that cannot be opened in time.
		r := rigFor(t, Options{Delivery: delivery.Options{DialTimeout: 2 * time.Second}}, "http://h:1", nil)
		r.dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		start := time.Now()
		if _, err := r.Dial(t.Context(), rigAddr, r.meter()); causeOf(err) != delivery.CauseTimeout || time.Since(start) != 2*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
	})
}

// After the first byte nobody knows: the record is left to the engine, which sends it again.
func TestHTTPBrokenAfterTheFirstByte(t *testing.T) {
	for _, x := range []struct {
		name   string
		answer string
		cause  delivery.Cause
		text   string
	}{
		{"closed", "", delivery.CausePeerClosed, "the server closed the connection before it answered"},
		{"half an answer", "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n", delivery.CausePeerClosed, "the server closed the connection before it answered"},
		{"another protocol", "220 mail.test ESMTP\r\n", delivery.CauseProtocol, "no HTTP answer: "},
		{"an answer that repeats secrets", "p@ss\r\n\r\n", delivery.CauseProtocol, "no HTTP answer: "},
		{"an endless header", "HTTP/1.1 202 Accepted\r\nX: " + strings.Repeat("x", 200_000), delivery.CauseProtocol, "no HTTP answer: "},
		{"another version", "HTTP/9 202 Accepted\r\n\r\n", delivery.CauseProtocol, "no HTTP answer: "},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := rigFor(t, Options{}, "http://user:p%40ss@h:1", func(c net.Conn) {
					defer c.Close()
					if _, err := readRequest(c); err == nil {
						_, _ = io.WriteString(c, x.answer)
					}
				})
				r.dialLink(t)
				err := r.send(t.Context(), oneRecord)
				if got := r.outcomes(); got != "" || causeOf(err) != x.cause || !strings.HasPrefix(err.Error(), x.text) {
					t.Errorf("%q, %v", got, err)
				}
				if len(err.Error()) > 2*mask.MaxWords || strings.Contains(err.Error(), "p@ss") {
					t.Errorf("%v", err)
				}
			})
		})
	}
}

// A connection is closed when it was idle for 45 s, before the server does after 60 s; the next record arrives by another one.
func TestHTTPIdleConnectionsAreClosed(t *testing.T) {
	for _, frozen := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newHTTPRig(t, Options{}, gelfd.HTTPOptions{}, nil)
			if err := r.send(t.Context(), oneRecord); err != nil {
				t.Fatal(err)
			}
			time.Sleep(44 * time.Second)
			if err := r.send(t.Context(), oneRecord); err != nil || r.dials != 1 {
				t.Fatalf("%v, %d connections", err, r.dials)
			}
			if frozen {
				r.clock.Store(int64(50 * time.Second)) // the timer does not know
			} else {
				time.Sleep(46 * time.Second)
				c := r.conns[0]
				<-c.closed
				if time.Since(c.at) != time.Second {
					t.Errorf("closed %v ago", time.Since(c.at))
				}
			}
			if err := r.send(t.Context(), oneRecord); err != nil || r.dials != 2 || len(r.server.Messages()) != 3 {
				t.Errorf("frozen %v: %v, %d connections", frozen, err, r.dials)
			}
			<-r.conns[0].closed
		})
	}
}

// A connection that Ready opened long before the first record is not trusted either.
func TestHTTPFirstConnectionGoesStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHTTPRig(t, Options{}, gelfd.HTTPOptions{}, nil)
		time.Sleep(50 * time.Second)
		if err := r.send(t.Context(), oneRecord); err != nil || r.outcomes() != "1 delivered" || r.dials != 2 {
			t.Errorf("%v, %d connections", err, r.dials)
		}
	})
}

// A server that closes idle connections sooner than we do: the next record opens another one and arrives.
func TestHTTPServerClosesIdleConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHTTPRig(t, Options{}, gelfd.HTTPOptions{Idle: 5 * time.Second}, nil)
		for range 3 {
			if err := r.send(t.Context(), oneRecord); err != nil || r.outcomes() != "1 delivered" {
				t.Error(err)
			}
			time.Sleep(20 * time.Second)
		}
		if r.dials != 3 || len(r.server.Messages()) != 3 {
			t.Errorf("%d connections, %d messages", r.dials, len(r.server.Messages()))
		}
	})
}

// Answers are read to their end, so that the connection can be used again, but not without end: the status alone decides.
func TestHTTPAnswersAreBounded(t *testing.T) {
	for _, x := range []struct {
		name   string
		answer string
		dials  int
		took   time.Duration
	}{
		{"short", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 1, 0},
		{"as long as is read", "HTTP/1.1 200 OK\r\nContent-Length: 16000\r\n\r\n" + strings.Repeat("x", 16000), 1, 0},
		{"too long", "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("x", 100000), 2, 0},
		{"shorter than it says", "HTTP/1.1 200 OK\r\nContent-Length: 16000\r\n\r\nx", 2, 30 * time.Second},
		{"with a word before", "HTTP/1.1 103 Early Hints\r\n\r\n" + accepted, 1, 0},
		{"closing", "HTTP/1.0 200 OK\r\n\r\nbye", 2, 30 * time.Second}, // the fake server does not close
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := rigFor(t, Options{}, "http://h:1", answers(nil, x.answer, accepted))
				r.dialLink(t)
				start := time.Now()
				if err := r.send(t.Context(), oneRecord); err != nil || r.outcomes() != "1 delivered" || time.Since(start) != x.took {
					t.Errorf("%v after %v", err, time.Since(start))
				}
				synctest.Wait()
				if err := r.send(t.Context(), oneRecord); err != nil || r.outcomes() != "1 delivered" || r.dials != x.dials {
					t.Errorf("%v, %d connections", err, r.dials)
				}
			})
		})
	}
}
