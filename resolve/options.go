package resolve

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/wholelog/wholelog/internal/mask"
)

// minRefresh is the shortest explicit Refresh: below it a handler would ask DNS more often than any answer can change.
const minRefresh = 100 * time.Millisecond

// minCheckEvery is the shortest explicit CheckEvery: the half of it must do for a connection across a network.
const minCheckEvery = 100 * time.Millisecond

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
	// Zone, such as "eu-central-1a", prefers the addresses of "<Zone>.<host>". Those of host itself are used as long as there are
	// none, or none that is fit for use. When the zone's name cannot be looked up, what was last found there serves, else host. It
	// needs a Resolver that is nil or from DNS, and a host that is a name; else it is an error.
	Zone string
	// Check asks each address for its health; nil means that health is observed from sends alone, which cannot see that the
	// receiver of datagrams is dead: its share is then lost, uncounted.
	Check Check
	// CheckEvery is the time between two checks of an address, ±20 %; a check is given half of it. 0 means 3 s; below 100 ms is an
	// error. Checks run from the first look-up to Close, whether records come or not. Without a Check it has no effect.
	CheckEvery time.Duration
	// Trace, when set, is told every choice: for datagrams one call per message, for streams and requests one per write or
	// request. It is called from the goroutine that sends, for several addresses at once. It must be fast and must not log
	// through the handler that it traces.
	Trace func(Choice)
}

// Validate returns an error for the first field whose value is wrong. The text starts with the field's name ("Zone: …"), so that a
// caller can put the path to it in front. Constructors of handlers call it.
func (o Options) Validate() error {
	switch {
	case o.Policy > PerProcess:
		return invalid("Policy", fmt.Errorf("%d is not known", uint8(o.Policy)))
	case o.Refresh < 0 || o.Refresh > 0 && o.Refresh < minRefresh:
		return invalid("Refresh", fmt.Errorf("%v is neither 0 nor at least %v", o.Refresh, minRefresh))
	case o.CheckEvery < 0 || o.CheckEvery > 0 && o.CheckEvery < minCheckEvery:
		return invalid("CheckEvery", fmt.Errorf("%v is neither 0 nor at least %v", o.CheckEvery, minCheckEvery))
	}
	if err := validate(o.Resolver); err != nil {
		return invalid("Resolver", err)
	}
	if o.Zone != "" {
		if err := validZone(o.Zone, o.Resolver); err != nil {
			return invalid("Zone", err)
		}
	}
	if err := validate(o.Check); err != nil {
		return invalid("Check", err)
	}
	return nil
}

// invalid is an error that starts with a field's name, spelled as the user spelled it.
func invalid(field string, err error) error { return fmt.Errorf("%s: %w", field, err) }

// validate asks a Resolver or Check that can tell whether it is set up rightly. A panic in it, of a nil pointer for instance, is an
// answer too.
func validate(r any) (err error) {
	v, ok := r.(interface{ Validate() error })
	if !ok {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("its Validate panicked: %v", p)
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
