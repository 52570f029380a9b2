package ship

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/wholelog/wholelog/delivery"
)

var errGone = errors.New("the peer closed the connection")

// A panic in a protocol's code ends that link, like any error. It never reaches the application.

func guardDial(ctx context.Context, t Transport, addr netip.AddrPort, m *Meter) (l Link, err error) {
	defer guard(&err)
	return t.Dial(ctx, addr, m)
}

func guardSend(ctx context.Context, l Link, b *Batch) (err error) {
	defer guard(&err)
	return l.Send(ctx, b)
}

func guardDrain(ctx context.Context, l Link) (err error) {
	defer guard(&err)
	return l.Drain(ctx)
}

func guard(err *error) {
	if p := recover(); p != nil {
		*err = &Fault{delivery.CauseOther, fmt.Errorf("panic: %v", p)}
	}
}
