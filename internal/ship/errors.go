package ship

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"syscall"

	"github.com/wholelog/wholelog/delivery"
)

// Fault is an error with its cause. Dial and Send return one where the engine could not tell the cause from the error alone.
type Fault struct {
	Cause delivery.Cause
	Err   error
}

func (f *Fault) Error() string { return f.Err.Error() }

// Unwrap returns the error that was given a cause.
func (f *Fault) Unwrap() error { return f.Err }

// CauseOf names what stands behind an error of a network call:
//
//	a Fault                          its own cause
//	connection refused               refused
//	connection reset, broken pipe    reset
//	deadline or timeout              timeout
//	certificate, TLS record or alert tls
//	name look-up                     dns
//	message too long                 mtu
//	anything else                    other
func CauseOf(err error) delivery.Cause {
	var (
		fault *Fault
		cert  *tls.CertificateVerificationError
		rec   tls.RecordHeaderError
		alert tls.AlertError
		op    *net.OpError
		dns   *net.DNSError
		to    net.Error
	)
	switch {
	case errors.As(err, &fault):
		return fault.Cause
	case errors.As(err, &dns):
		return delivery.CauseDNS
	case errors.As(err, &cert), errors.As(err, &rec), errors.As(err, &alert):
		return delivery.CauseTLS
	case errors.As(err, &op) && op.Op == "remote error": // an alert too: so crypto/tls marks those of a stream
		return delivery.CauseTLS
	case isRefused(err):
		return delivery.CauseRefused
	case isReset(err):
		return delivery.CauseReset
	case errors.Is(err, syscall.EMSGSIZE):
		return delivery.CauseMTU
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded), errors.As(err, &to) && to.Timeout():
		return delivery.CauseTimeout
	}
	return delivery.CauseOther
}

// place names an address in errors. The zero one stands for a socket of this host, which the user named himself.
func place(addr netip.AddrPort) string {
	if !addr.IsValid() {
		return "the local socket"
	}
	return addr.String()
}

// fullErrors makes the errors for a full queue once for each of slog's own levels, so that a caller who meets a full queue a
// million times allocates nothing. Their Bytes are 0; OnDrop has the sum.
func fullErrors() (errs [4]error) {
	for i := range errs {
		level := slog.LevelDebug + slog.Level(4*i)
		errs[i] = delivery.Drop{Records: 1, Level: level, Reason: delivery.ReasonQueueFull, Err: delivery.ErrQueueFull}
	}
	return errs
}

// returned is the loss of one record of n bytes as the error of Handle.
func (e *Engine) returned(level slog.Level, n int, reason delivery.Reason, err error) error {
	if i := level - slog.LevelDebug; reason == delivery.ReasonQueueFull && i >= 0 && i < 16 && i%4 == 0 {
		return e.full[i/4]
	}
	return delivery.Drop{Records: 1, Bytes: n, Level: level, Reason: reason, Err: err}
}
