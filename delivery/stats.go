package delivery

import (
	"net/netip"
	"time"
)

// Stats is a consistent snapshot of a handler's counters since it was made. In every snapshot Accepted is the sum of Delivered,
// Dropped and Pending, and the values of Reasons sum to Dropped. Pending is counted, not derived, so that the sum proves
// something.
//
// It marshals to JSON with the fields' names as keys and durations in nanoseconds.
type Stats struct {
	Accepted  uint64 // records given to Handle past Enabled and before Close; those refused in the same call are Dropped as well
	Delivered uint64 // records that are at the receiver, as far as the transport can know; never taken back
	Dropped   uint64 // records lost; Reasons says why
	Pending   uint64 // a gauge: records queued, in flight, or waiting for a retry or an acknowledgement

	Own uint64 // the library's own records, such as summaries; in no other counter

	Resent      uint64 // times a record was sent again because it was perhaps, but not certainly, taken: duplicates are possible
	Diverted    uint64 // records that took the fallback transport
	Truncated   uint64 // records shortened to fit, and marked; also those that are dropped later
	Repaired    uint64 // values and names mended because the receiver would have refused or dropped them
	Unconfirmed uint64 // delivered by a kernel's word alone on connections that then broke, or whose peer proved to be no receiver: perhaps lost

	Bytes        uint64 // on the wire: headers of chunks and frames included, those of UDP, TCP and IP not
	PendingBytes uint64 // a gauge: of QueueBytes in use

	Waits    uint64        // log calls that had to wait for room
	WaitTime time.Duration // how long they waited in all

	OldestPending time.Duration // a gauge: age of the oldest pending record
	LastDelivered time.Time     // of the latest delivery; zero before the first

	Reconnects   uint64        // connections opened after the first to an address
	Lookups      uint64        // look-ups of the target's name
	LookupErrors uint64        // those that failed or found nothing
	AnswerAge    time.Duration // a gauge: age of the answer in use

	Reasons map[Reason]uint64 // Dropped by reason; no zero values

	// Endpoints holds the addresses in use and the 16 most recently gone. Those gone before are summed under the zero AddrPort
	// with State "gone".
	Endpoints []EndpointStats
}

// EndpointStats counts for one address.
type EndpointStats struct {
	Addr netip.AddrPort // the zero AddrPort for a local socket, and for the sum of those long gone
	// State is unknown, up, degraded, draining, down, maint or gone. Over UDP it stays unknown as long as no check says that a receiver
	// is well.
	State  string
	Since  time.Time // when State began
	Weight int       // in effect: the endpoint's weight times the percentage a check reported

	Picked       uint64           // records dealt to this address; one that came back counts again when it is dealt again
	Delivered    uint64           // records it took
	Resent       uint64           // records it may have taken, sent again, here or elsewhere
	Bytes        uint64           // on the wire
	PendingBytes uint64           // a gauge: dealt to it and not settled
	Errors       map[Cause]uint64 // troubles by cause; no zero values
	LastError    string           // text of the latest; without secrets
}
