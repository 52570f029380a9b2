// Package syslogd is a syslog receiver for tests and examples. It refuses what real receivers refuse or mangle, and says why: a fake
// that accepts everything proves nothing about a sender.
//
// [Listen] starts a receiver on a UDP, TCP or unix socket. [Parse] is the same judgement of a single message without a socket.
package syslogd

import "fmt"

// Reason says why a message, or a connection with all that would have followed, was refused.
type Reason string

// The reasons for refusing. Real receivers tell a sender none of them.
const (
	BadPRI       Reason = "pri"       // no <0> to <191>, or leading zeros
	BadHeader    Reason = "header"    // a field is too long, empty or holds more than printable ASCII
	BadTime      Reason = "time"      // no TIMESTAMP, or more fraction digits than six
	BadStructure Reason = "structure" // STRUCTURED-DATA breaks the grammar
	BadText      Reason = "text"      // control characters, line ends, or bytes that are no UTF-8
	BadFrame     Reason = "frame"     // the framing is broken: the rest of the connection is lost
	BadSize      Reason = "size"      // longer than the receiver takes
)

// Reject is the error of a refused message.
type Reject struct {
	Reason Reason
	Detail string
}

func (r *Reject) Error() string {
	return fmt.Sprintf("syslogd: refused for %s: %s", r.Reason, r.Detail)
}

func reject(reason Reason, format string, args ...any) error {
	return &Reject{Reason: reason, Detail: fmt.Sprintf(format, args...)}
}
