package resolve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"
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
	switch s {
	case Unknown:
		return "unknown"
	case Up:
		return "up"
	case Degraded:
		return "degraded"
	case Draining:
		return "draining"
	case Down:
		return "down"
	case Maint:
		return "maint"
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// Check asks one address for its health. It is called for several addresses at once, from goroutines of its caller, and must
// return when ctx ends. Checks are not available yet: [Options.Validate] refuses them.
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
	Time           time.Time
	Addr, Local    netip.AddrPort // to and from; Local is the source port, which is the flow a balancer sees
	Records, Bytes int            // what this datagram message, write or request carries
	Why            string         // the rule that chose
}

// SRV finds the targets of an SRV name (RFC 2782), with their priorities and weights. It is not available yet: its Validate and
// Resolve say so.
func SRV(name string, r *net.Resolver) Resolver { return notYet{"SRV"} }

// TCPCheck takes an address for healthy when it accepts a connection; port 0 is the service's own. It is not available yet: its
// Validate and Check say so.
func TCPCheck(port int) Check { return notYet{"TCPCheck"} }

// HTTPCheck asks the address by HTTP: 200 is up, 429 degraded, 503 down, anything else a failure. The host of url is replaced by
// the address; a port in url is kept. It is not available yet: its Validate and Check say so.
func HTTPCheck(url string) Check { return notYet{"HTTPCheck"} }

// AgentCheck asks an agent that speaks HAProxy's agent-check protocol on port. It is not available yet: its Validate and Check say
// so.
func AgentCheck(port int) Check { return notYet{"AgentCheck"} }

// notYet holds the place of something whose machinery comes with a later release.
type notYet struct{ what string }

func (n notYet) Validate() error {
	return errors.New("resolve: " + n.what + " is not available yet")
}

func (n notYet) Resolve(context.Context) (Answer, error) { return Answer{}, n.Validate() }

func (n notYet) Check(context.Context, netip.AddrPort) (Report, error) { return Report{}, n.Validate() }
