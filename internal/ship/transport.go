// Package ship carries encoded records from the caller to the network. It owns everything that must behave alike for every
// protocol: the byte budget, overflow, order, retry, flush, close and counting. It never asks which protocol it serves: a
// protocol is a [Transport] that opens a [Link] to an address, and a Link says what became of the records it was given by
// settling them.
package ship

import (
	"context"
	"net/netip"
	"time"

	"github.com/wholelog/wholelog/delivery"
)

// Transport is one protocol. It is stateless and safe for concurrent use.
type Transport interface {
	// Dial opens a link to addr. It is called from the goroutine of that link, may wait until ctx ends, and must not keep ctx.
	// The link reports what it does to m. Errors, here and everywhere in a link, name neither the protocol nor the address: the
	// engine does.
	Dial(ctx context.Context, addr netip.AddrPort, m *Meter) (Link, error)
	// Limits is read once, when the engine is made.
	Limits() Limits
}

// Limits says how records are dealt to the links of a Transport.
type Limits struct {
	LinksPerAddr int           // links to one address at once; 1 keeps order towards it; 0 means 1
	BatchBytes   int           // most bytes in one batch (one record alone may be larger); 0 means 64 KiB
	BatchRecords int           // most records in one batch; 0 means no limit of its own
	Linger       time.Duration // longest wait for a batch to fill; 0: it leaves when the queue runs dry
	Window       int           // bytes a link may hold unsettled; 0: one batch
	Blind        bool          // Delivered proves nothing about the peer (datagrams)
	Faint        bool          // Delivered is a kernel's word and not the receiver's (streams): it proves something only of a link that lasts
	MaxAge       time.Duration // a link is replaced, between batches, when it is this old (jittered ±20 %); 0: never
}

// Link is one way to one address: all UDP flows of it, a stream, or one HTTP lane.
//
// Send and Drain run on the link's goroutine; Nudge and Close may come from any, more than once and at the same time as Send.
type Link interface {
	// Send takes a batch. It may wait and has its own deadlines. Records may be settled during Send or later, from any
	// goroutine. An error ends the link: the engine closes it and takes back what is unsettled. It does the same with a link that
	// holds records and has neither settled one nor called Wire for twice SendTimeout.
	Send(ctx context.Context, b *Batch) error
	// Nudge says that somebody flushes: ask for outcomes now. It does not wait.
	Nudge()
	// Drain waits for the outcomes of everything sent and says an orderly goodbye. No Send follows.
	Drain(ctx context.Context) error
	// Close ends the link at once and unblocks Send and Drain. A Settle after it returned has no effect.
	Close() error
	// Gone is closed when the peer is known to be away, though nobody is sending; nil when that cannot be known. A link with a
	// method Err() error is asked why then.
	Gone() <-chan struct{}
}

// Do is what becomes of records. The zero value is invalid, so that a forgotten Do is never a delivery.
type Do uint8

// The ways a record can be settled.
const (
	_         Do = iota
	Delivered    // the receiver has it, as far as this transport can tell
	Requeue      // certainly not taken: to the front of the queue; counts no try
	Resend       // perhaps taken: to the front of the queue; counts a try
	Divert       // this way cannot carry it: the fallback route, else dropped as too large
	Halve        // refused as a whole, the culprit is not named: sent again in halves; a record alone is dropped
	Drop         // lost, for Reason
)

// Outcome says what became of a range of records, and why.
type Outcome struct {
	Do     Do
	Reason delivery.Reason // of a Drop, and of a Halve that comes down to one record
	Cause  delivery.Cause  // of a failure: with Requeue and Resend the address rests before it is used again
	Err    error           // the error behind it, for hooks and statistics
	After  time.Duration   // with Requeue and Resend: the server's Retry-After
}

// failed says whether o is evidence against the address, and what for.
func (o Outcome) failed() (delivery.Cause, bool) {
	if o.Do == Delivered || o.Do == Divert || o.Do == Drop || o.Cause == "" && o.Err == nil {
		return "", false
	}
	if o.Cause == "" {
		return CauseOf(o.Err), true
	}
	return o.Cause, true
}

// Meter takes what a link has to say besides outcomes. All methods are safe for concurrent use and do not wait.
// A nil Meter discards everything.
type Meter struct{ r Recorder }

// Recorder receives the calls of a [Meter]; nil functions are left out.
type Recorder struct {
	Wire        func(bytes int)
	Truncated   func(records int)
	Unconfirmed func(records int)
	Trouble     func(cause delivery.Cause, err error)
	Chose       func(local netip.AddrPort, records, bytes int, why string)
}

// NewMeter returns a Meter that calls r. The engine makes one for every link; tests of links make their own.
func NewMeter(r Recorder) *Meter { return &Meter{r} }

// Wire counts bytes handed to the kernel, headers of the protocol included. It also shows that the link is not stuck.
func (m *Meter) Wire(bytes int) {
	if m != nil && m.r.Wire != nil {
		m.r.Wire(bytes)
	}
}

// Truncated counts records that were shortened to fit the way.
func (m *Meter) Truncated(records int) {
	if m != nil && m.r.Truncated != nil {
		m.r.Truncated(records)
	}
}

// Unconfirmed counts delivered records of a connection that then broke.
func (m *Meter) Unconfirmed(records int) {
	if m != nil && m.r.Unconfirmed != nil {
		m.r.Unconfirmed(records)
	}
}

// Trouble reports something that went wrong but lost nothing and does not end the link.
func (m *Meter) Trouble(cause delivery.Cause, err error) {
	if m != nil && m.r.Trouble != nil {
		m.r.Trouble(cause, err)
	}
}

// Chose tells the trace that records leave from local now. It costs nothing when no trace is set; [Meter.Traced] tells.
func (m *Meter) Chose(local netip.AddrPort, records, bytes int, why string) {
	if m != nil && m.r.Chose != nil {
		m.r.Chose(local, records, bytes, why)
	}
}

// Traced says whether Chose is heard, so that a link need not find out its local address for nothing.
func (m *Meter) Traced() bool { return m != nil && m.r.Chose != nil }
