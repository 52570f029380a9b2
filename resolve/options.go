package resolve

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/wholelog/wholelog/internal/mask"
)

// minRefresh is the shortest explicit Refresh: below it a handler would ask DNS more often than any answer can change.
const minRefresh = 100 * time.Millisecond

// Options says how addresses are found, judged and chosen. The zero value is the default.
type Options struct {
	// Resolver finds the addresses; nil means DNS of the target's host and port. Whatever it finds, the target's host stays the
	// name for TLS and the Host header.
	Resolver Resolver
	// Policy says how often an address is chosen; the default is PerMessage.
	Policy Policy
	// Refresh is the age at which an answer is looked up again, ±20 %; 0 means 60 s, shortened by a smaller TTL but not below 5 s.
	// An explicit value holds as it is, whatever the TTL; below 100 ms is an error.
	Refresh time.Duration
	// Zone, with Resolver nil or from DNS, asks "<Zone>.<host>" first and falls back to host. It is not available yet: a value is
	// an error.
	Zone string
	// Check asks each address for its health; nil means that health is observed from sends alone, which cannot see that the
	// receiver of datagrams is dead. It is not available yet: a value is an error.
	Check Check
	// CheckEvery is the time between two checks of an address, ±20 %. It is not available yet: a value is an error.
	CheckEvery time.Duration
	// Trace, when set, is told every choice: for datagrams one call per message, for streams and requests one per write or
	// request. It is called from the goroutine that sends, for several addresses at once. It must be fast and must not log
	// through the handler that it traces.
	Trace func(Choice)
}

// Validate says what is wrong with o, the option's name first. Constructors of handlers call it.
func (o Options) Validate() error {
	switch {
	case o.Policy > PerProcess:
		return fmt.Errorf("resolve: Policy %d is unknown", uint8(o.Policy))
	case o.Refresh < 0 || o.Refresh > 0 && o.Refresh < minRefresh:
		return fmt.Errorf("resolve: Refresh %v must be 0 or at least %v", o.Refresh, minRefresh)
	case o.Zone != "":
		return errors.New("resolve: Zone is not available yet")
	case o.Check != nil:
		return errors.New("resolve: Check is not available yet")
	case o.CheckEvery != 0:
		return errors.New("resolve: CheckEvery is not available yet")
	}
	return validate(o.Resolver)
}

// validate asks a Resolver that can tell whether it is set up rightly. A panic in it, of a nil pointer for instance, is an answer too.
func validate(r Resolver) (err error) {
	v, ok := r.(interface{ Validate() error })
	if !ok {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("resolve: Validate of the Resolver panicked: %v", p)
		}
	}()
	return v.Validate()
}

// String shows the fields that are not zero, for logs and error reports. Functions and interfaces show as set or unset.
func (o Options) String() string { return mask.String("resolve.Options", o) }

// GoString is String: %#v must not show more than %v.
func (o Options) GoString() string { return o.String() }

// MarshalJSON shows what String shows, as an object.
func (o Options) MarshalJSON() ([]byte, error) { return mask.JSON(o) }

// LogValue shows what String shows, as a group.
func (o Options) LogValue() slog.Value { return mask.LogValue(o) }
