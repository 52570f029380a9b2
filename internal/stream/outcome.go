package stream

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/ship"
)

var (
	errClosed  = errors.New("the peer closed the connection")
	errStalled = errors.New("the peer takes nothing")
	errGivenUp = errors.New("given up before the peer had taken everything")
)

// outcome says what becomes of a frame by how far it came.
//
//	acknowledged by the peer's kernel, before or at the break     Delivered
//	written, where the kernel cannot tell                         Delivered; a break within a second: Unconfirmed besides
//	acknowledged before the server refused our certificate, or
//	by a peer that then said something, as no receiver does       Delivered, and Unconfirmed besides
//	handed to the kernel, in part at least, not acknowledged      nothing: the engine takes it back as a Resend when the link ends
//	no byte of it handed to the kernel when the link ended        Requeue; the end of the link is the evidence against the address
//	refused by Config.Frame                                       what Config.Refused says
func outcome(taken bool) ship.Outcome {
	if taken {
		return ship.Outcome{Do: ship.Delivered}
	}
	return ship.Outcome{Do: ship.Requeue}
}

// fault says why a stream ended or did not begin.
//
//	the peer's FIN                               peer_closed
//	the peer's RST, a write after either         reset
//	no listener                                  refused
//	certificate, alert, no TLS                   tls
//	bytes from a peer that has nothing to say    protocol
//	nothing moved for SendTimeout, DialTimeout   timeout
//	anything else                                other
func fault(err error) error {
	var (
		known *ship.Fault
		op    *net.OpError
	)
	if errors.As(err, &known) {
		return err
	}
	if errors.Is(err, io.EOF) {
		return &ship.Fault{Cause: delivery.CausePeerClosed, Err: errClosed}
	}
	if errors.As(err, &op) && op.Net != "" { // those that TLS makes of alerts have none
		err = op.Err // without the addresses, which the engine names
	}
	return &ship.Fault{Cause: ship.CauseOf(err), Err: err}
}

// handshakeFault is fault for the time before the first record: what is neither of the network nor of time is of TLS.
func handshakeFault(err error) error {
	var (
		f    *ship.Fault
		cert *tls.CertificateVerificationError
	)
	cause := delivery.CauseTLS
	if err = fault(err); errors.As(err, &f) && !errors.As(err, &cert) && f.Cause != delivery.CauseOther {
		cause = f.Cause
	}
	return &ship.Fault{Cause: cause, Err: fmt.Errorf("TLS handshake: %w", err)}
}

// guard makes an error of a panic in what runs the user's code, as TLS may.
func guard(err *error) {
	if p := recover(); p != nil {
		*err = &ship.Fault{Cause: delivery.CauseOther, Err: fmt.Errorf("panic: %v", p)}
	}
}

// unwanted is the fault of a peer that speaks. It may be a server of another protocol, so its words help.
func unwanted(words []byte) error {
	return &ship.Fault{Cause: delivery.CauseProtocol, Err: fmt.Errorf("the peer is not to say anything, and says %q", words)}
}
