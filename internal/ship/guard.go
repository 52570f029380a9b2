package ship

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"

	"github.com/wholelog/wholelog/delivery"
)

var (
	errGone   = errors.New("the peer closed the connection")
	errStill  = errors.New("nothing moved within SendTimeout")
	errNoLink = errors.New("no link and no error")
	errEnded  = errors.New("a hook ended the goroutine")
)

// A panic in a protocol's code ends that link, like any error. It never reaches the application.

func guardDial(ctx context.Context, t Transport, addr netip.AddrPort, m *Meter) (l Link, err error) {
	defer guard(&err)
	if l, err = t.Dial(ctx, addr, m); l == nil && err == nil {
		err = errNoLink
	}
	return l, err
}

func guardSend(ctx context.Context, l Link, b *Batch) (err error) {
	defer guard(&err)
	return l.Send(ctx, b)
}

// guardClose closes a link. What its Close has to say comes too late for anybody: the link is given up.
func guardClose(l Link) {
	var err error
	defer guard(&err)
	_ = l.Close()
}

func guardNudge(l Link) {
	var err error
	defer guard(&err)
	l.Nudge()
}

func guardGone(l Link) (gone <-chan struct{}) {
	var err error
	defer guard(&err)
	return l.Gone()
}

// goneWhy is why a link is gone: what it says itself, if it has a method Err, else that the peer closed.
func goneWhy(l Link) (why error) {
	defer guard(&why)
	if e, ok := l.(interface{ Err() error }); ok {
		why = e.Err()
	}
	if why == nil {
		why = &Fault{delivery.CausePeerClosed, errGone}
	}
	return why
}

func guardDrain(ctx context.Context, l Link) (err error) {
	defer guard(&err)
	return l.Drain(ctx)
}

// guardOwn encodes a record of the engine's own; nil when that panics.
func guardOwn(encode func([]byte, slog.Record) []byte, r slog.Record) (data []byte) {
	defer func() {
		if recover() != nil {
			data = nil
		}
	}()
	return encode(nil, r)
}

func guard(err *error) {
	if p := recover(); p != nil {
		*err = &Fault{delivery.CauseOther, fmt.Errorf("panic: %v", p)}
	}
}
