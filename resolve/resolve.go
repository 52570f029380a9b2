package resolve

import (
	"context"
	"net/netip"
	"time"

	"github.com/wholelog/wholelog/internal/mask"
)

// Endpoint is one address of a service.
type Endpoint struct {
	Addr     netip.AddrPort // an invalid address or port 0 is left out and reported
	Weight   uint16         // share of the traffic in proportion to the others' weights; 0 means 100
	Priority uint16         // lower comes first; others are used only when none of it is usable
}

// Answer is the whole set of addresses as of now. Its order means nothing; an address that is in it twice counts once.
type Answer struct {
	Endpoints []Endpoint // none is like a failed look-up: the last good answer stays in use
	// TTL is how long the answer may be used; 0: unknown. DNS reads it off the wire: see there. It shortens the default
	// refresh interval and has no effect on an explicit one.
	TTL time.Duration
}

// Resolver finds the addresses of one service.
//
// Resolve is called from a goroutine of its own, by one handler never twice at once, but handlers may share a Resolver. It should
// return when ctx ends, which it does after 2 s or at Close; an answer later than that is ignored, and the next call waits until
// this one has returned. A panic is taken for an error.
//
// Beside a non-nil error an Answer may hold a part of the set: what could be found although something failed. It is used, and no
// known address is given up because it is missing there. An error without addresses, or an answer without any, leaves the last
// good answer in use. Both are counted, reported to OnError and tried again with back-off.
//
// A constructor of a handler calls Validate() error of a Resolver that has this method; all built-in ones have it.
type Resolver interface {
	Resolve(ctx context.Context) (Answer, error)
}

// Policy says how often a destination is chosen.
type Policy uint8

// The policies.
const (
	// PerMessage chooses anew for each record, so that records spread over all addresses.
	PerMessage Policy = iota
	// PerProcess keeps one address per handler until it is down or gone, and then chooses once more, between two records.
	PerProcess
)

// String returns the constant's name.
func (p Policy) String() string { return mask.Enum(p, "PerMessage", "PerProcess") }
