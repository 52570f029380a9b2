package gelf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/ship"
)

// maxAnswer is how much of an answer is read. A connection with more in it is closed.
const maxAnswer = 16 << 10

// Why a request leaves by the connection it leaves by, for the trace.
const (
	whyOpened = "new connection"
	whyReused = "open connection"
)

// exchange is one Send: the requests that a batch becomes.
type exchange struct {
	link     *httpLink
	ctx      context.Context
	batch    *ship.Batch
	requests sync.WaitGroup

	mu     sync.Mutex
	blamed bool  // a failure was told as evidence against the address; of several at once, one is enough
	fault  error // ends the link: the way is broken, and not only the answer bad
}

// request sends the records [from, to) and settles them. One record that the server finds too large is made smaller at once; several
// are halved by the engine.
func (x *exchange) request(from, to int) {
	defer x.requests.Done()
	l := x.link
	defer func() { <-l.slots }()
	for {
		b, err := body{}, error(nil)
		if to-from > 1 {
			b.data = x.join(from, to)
		} else {
			b, err = l.fit(x.batch.At(from).Bytes(), int(l.limit.Load()))
		}
		if err != nil {
			x.settle(from, to, attempt{err: err})
			return
		}
		a := l.post(x.ctx, b, to-from)
		if a.status() == http.StatusRequestEntityTooLarge {
			news, smaller := l.limit.learn(len(b.data))
			if news > 0 {
				l.meter.Trouble(delivery.CauseOther, fmt.Errorf("requests shortened from %d to %d bytes: %w", len(b.data), news, a.err))
			}
			if smaller && to-from == 1 {
				continue
			}
		}
		if a.err == nil && b.cut {
			l.meter.Truncated(1)
		}
		x.settle(from, to, a)
		return
	}
}

// settle passes on what became of the records [from, to). What was perhaps taken by a connection that broke is left to the engine,
// which takes it back when Send returns the fault.
func (x *exchange) settle(from, to int, a attempt) {
	o := httpOutcome(a, to-from, x.link.config.hold)
	x.mu.Lock()
	if a.endsLink() {
		if x.fault == nil {
			x.fault = a.err
			if o.Cause != "" {
				x.fault = &ship.Fault{Cause: o.Cause, Err: a.err}
			}
		}
		if o.Do == ship.Resend {
			x.mu.Unlock()
			return
		}
		o = ship.Outcome{Do: o.Do}
	} else if o.Do == ship.Requeue || o.Do == ship.Resend {
		if x.blamed {
			o = ship.Outcome{Do: o.Do}
		}
		x.blamed = true
	}
	x.mu.Unlock()
	x.batch.Settle(from, to, o)
}

// attempt is how one request ended.
type attempt struct {
	err   error         // nil: an answer of 2xx; a *StatusError: any other answer; else the way failed
	after time.Duration // the answer's Retry-After
	begun bool          // some of it may have reached the server
}

// status is that of an answer other than 2xx; 0: none.
func (a attempt) status() int {
	var s *StatusError
	if errors.As(a.err, &s) {
		return s.Status
	}
	return 0
}

// post sends one request and reads the answer.
func (l *httpLink) post(ctx context.Context, b body, records int) attempt {
	ctx, cancel := context.WithTimeoutCause(ctx, l.config.sendTimeout, fmt.Errorf("no answer within %v: %w", l.config.sendTimeout, context.DeadlineExceeded))
	defer cancel()
	defer context.AfterFunc(l.alive, cancel)()
	// The transport tries again by itself, on another connection, what a stale one took not a byte of. So there may be several.
	var conn atomic.Pointer[wireConn]
	var before atomic.Int64
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		c := wireOf(info.Conn)
		before.Store(c.written.Load())
		conn.Store(c)
		if l.meter.Traced() {
			why := whyOpened
			if info.Reused {
				why = whyReused
			}
			l.meter.Chose(c.local(), records, len(b.data), why)
		}
	}})
	header := l.plain
	if b.zipped {
		header = l.zipped
	}
	reader := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.data)), nil }
	first, _ := reader()
	r := &http.Request{
		Method: http.MethodPost, URL: l.url, Host: l.url.Host, Header: header,
		Body: first, GetBody: reader, ContentLength: int64(len(b.data)),
	}
	answer, err := l.http.RoundTrip(r.WithContext(ctx))
	if err == nil {
		return l.read(answer)
	}
	c := conn.Load()
	a := attempt{begun: c != nil && c.written.Load() > before.Load()}
	switch {
	case l.alive.Err() != nil:
		a.err = net.ErrClosed
	case ctx.Err() != nil:
		a.err = context.Cause(ctx)
	default:
		a.err = l.scrub.error(err)
	}
	return a
}

// read takes what is of use from an answer. The status alone decides: when the rest does not come, it is still known.
func (l *httpLink) read(r *http.Response) attempt {
	defer r.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(r.Body, maxAnswer))
	if r.StatusCode/100 == 2 {
		return attempt{begun: true}
	}
	e := &StatusError{Status: r.StatusCode, Text: l.scrub.Text(string(text))}
	if r.StatusCode/100 == 3 {
		e.Text = l.scrub.redirect(r.Header.Get("Location"))
	}
	return attempt{err: e, after: retryAfter(r.Header, l.now()), begun: true}
}
