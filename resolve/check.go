package resolve

import (
	"context"
	"net/netip"
	"time"

	"github.com/wholelog/wholelog/internal/mask"
)

// State is the health of an address.
type State uint8

// The states. An address is used in Unknown, Up and, with half a share, Degraded.
const (
	Unknown  State = iota // nothing is known yet
	Up                    // it works
	Degraded              // it asks for less
	Draining              // it finishes what it has and gets nothing new
	Down                  // it does not work
	Maint                 // taken out by its operator, even if nothing else is left
)

// String returns the name as Stats shows it: "unknown", "up", "degraded", "draining", "down" or "maint".
func (s State) String() string {
	return mask.Enum(s, "unknown", "up", "degraded", "draining", "down", "maint")
}

// Check asks one address for its health. It is called for several addresses at once, from goroutines of its caller, and must return
// when ctx ends, which it does after half of CheckEvery; one that does not has failed, and is not called again for that address before
// it has returned. A panic is a failure.
//
// Two methods are optional. Validate() error is called by constructors of handlers. SkipConnected() bool says that an address to which
// a connection is open need not be checked: what the check would find out is known.
//
// How health is made of reports, failures and what sends meet:
//
//   - a Report acts at once, and its State holds until another one comes, or nothing has come for 10 intervals;
//   - three errors in a row are a State of Down;
//   - without a Check, or beside it, three failures of sends or dials in a row take an address out for 10 to 30 s, but never more
//     than half of the addresses (rounded down) at once. A Report of Up or Degraded ends that;
//   - when no address is left, all are used but those in Maint.
type Check interface {
	Check(ctx context.Context, addr netip.AddrPort) (Report, error)
}

// Report is what a Check found. With an error it is ignored, and a failure is counted.
type Report struct {
	State  State  // Unknown leaves the state as it is
	Weight int    // percent of the endpoint's weight; 0 leaves it as it is, below 0 is an error; no traffic at all is Draining
	Note   string // shown in the statistics of the address, as its LastError
	// Warning is something wrong with the answer, though a report could be made of it. OnError is told when it changes, and it is
	// shown in place of Note.
	Warning string
}

// Choice tells a Trace where records went.
type Choice struct {
	Time           time.Time      // by the wall clock of this host
	Addr, Local    netip.AddrPort // to and from; Local is the source port, which is the flow a balancer sees. Zero for local sockets
	Records, Bytes int            // what this datagram message, write or request carries
	Why            string         // the rule that chose
}
