package delivery

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"

	"github.com/wholelog/wholelog/internal/mask"
)

// Errors that Handle, Flush and Close return, alone or wrapped; ask with errors.Is.
var (
	// ErrClosed: the handler was closed. Such a call is not counted. Close's own error wraps it when records had to be dropped.
	ErrClosed = errors.New("delivery: closed")
	// ErrQueueFull: the record found no room within MaxBlock, or none at once under DropNewest.
	ErrQueueFull = errors.New("delivery: queue full")
	// ErrTooLarge: the record is longer than any way to the receiver can carry.
	ErrTooLarge = errors.New("delivery: record too large")
	// ErrNoEndpoint: no address was found for the target.
	ErrNoEndpoint = errors.New("delivery: no endpoint")
)

// Reason says why records were lost. Reasons are the values of [Drop].Reason and the keys of [Stats].Reasons.
type Reason string

// The reasons. Every lost record has exactly one.
const (
	ReasonQueueFull      Reason = "queue_full"     // no room in QueueBytes: Block waited in vain, or DropNewest
	ReasonEvicted        Reason = "evicted"        // had to make room for newer records under DropOldest
	ReasonTooLarge       Reason = "too_large"      // longer than any way to the receiver can carry
	ReasonRetryExpired   Reason = "retry_expired"  // tried for longer than RetryFor
	ReasonTriesExhausted Reason = "tries"          // sent Tries times, each time with an unknown outcome
	ReasonRejected       Reason = "rejected"       // the receiver refused it for good
	ReasonBadEvent       Reason = "bad_event"      // HEC: the receiver named this event as malformed
	ReasonBadIndex       Reason = "bad_index"      // HEC: the receiver does not know the event's index, or forbids it
	ReasonNoEndpoint     Reason = "no_endpoint"    // the target never had an address
	ReasonUnacknowledged Reason = "unacknowledged" // sent, and not acknowledged by the time Close had to give up
	ReasonSyncFailed     Reason = "sync_failed"    // Sync: every usable address was tried, or SyncTimeout passed
	ReasonClosed         Reason = "closed"         // still waiting when CloseTimeout passed
	ReasonPanicked       Reason = "panic"          // a bug: something panicked while the record was on its way
)

// Cause says why a send failed though nothing is lost yet. Causes are the keys of [EndpointStats].Errors.
type Cause string

// The causes.
const (
	CauseRefused      Cause = "refused"      // nobody listens at the address
	CauseReset        Cause = "reset"        // the connection was reset
	CausePeerClosed   Cause = "peer_closed"  // the peer closed the connection, busy or idle
	CauseTimeout      Cause = "timeout"      // no answer, or no progress, in time
	CauseTLS          Cause = "tls"          // handshake or certificate
	CauseDNS          Cause = "dns"          // the name could not be looked up
	CauseBusy         Cause = "busy"         // the receiver asked for a pause
	CauseUnauthorized Cause = "unauthorized" // the receiver does not accept the credentials
	CauseMTU          Cause = "mtu"          // a datagram was larger than the way to the address
	CauseProtocol     Cause = "protocol"     // an answer that the protocol does not know
	CauseOther        Cause = "other"        // everything else
)

// Drop is a loss: of one record, or of several with the same reason, address and level. It is an error, passed and returned by
// value: ask with errors.As and a Drop, not a *Drop. Drops cannot be compared with ==.
type Drop struct {
	Records int            // how many records
	Bytes   int            // their encoded length in all
	Level   slog.Level     // their level
	Reason  Reason         // why
	Addr    netip.AddrPort // where they were last tried; the zero AddrPort when they never were
	Err     error          // the last error on the way, if there was one; what Unwrap returns
	Data    []byte         // the encoded record, valid during the call of OnDrop; nil when Records is not 1, and in returned errors
}

// Error returns a text without secrets, such as "delivery: 3 records (1.2 kB) dropped: tries at 192.0.2.1:12201: i/o timeout".
func (d Drop) Error() string {
	records := "records"
	if d.Records == 1 {
		records = "record"
	}
	s := fmt.Sprintf("delivery: %d %s (%s) dropped: %s", d.Records, records, size(d.Bytes), d.Reason)
	if d.Addr.IsValid() {
		s += " at " + d.Addr.String()
	}
	switch d.Err {
	case nil, ErrClosed, ErrQueueFull, ErrTooLarge, ErrNoEndpoint: // the reason has said it
		return s
	}
	return s + ": " + mask.Error(d.Err)
}

// Unwrap returns Err.
func (d Drop) Unwrap() error { return d.Err }

// size returns n bytes in decimal units.
func size(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 999_950:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	default:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
}
