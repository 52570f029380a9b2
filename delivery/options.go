package delivery

import (
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/wholelog/wholelog/internal/mask"
	"github.com/wholelog/wholelog/jitter"
)

// minQueueBytes is the smallest QueueBytes: the queue is charged by blocks of 64 KiB, and with fewer than eight of them one long
// record would be all it holds.
const minQueueBytes = 512 << 10

// Options says how records wait, leave and fail. The zero value is the default. Options are copied by the constructors that
// take them; changing them later has no effect. No duration may be negative.
type Options struct {
	// QueueBytes is the memory for records, in bytes: every byte held for them, whether queued, in flight, waiting for a
	// retry or for an acknowledgement. 0 means 16 MiB, and 64 MiB for HEC with acknowledgement. Less than 512 KiB is an error.
	QueueBytes int

	// Overflow says what happens to a record when QueueBytes are in use: Block (the zero value), DropNewest or DropOldest.
	Overflow Overflow

	// MaxBlock is the longest one log call waits for room under Block; then the record is dropped with ReasonQueueFull. After
	// such a drop, calls fail at once until a quarter of QueueBytes is free, so that a dead destination costs the application
	// one wait and not one per call. 0 means 100 ms.
	MaxBlock time.Duration

	// Reserve is the share of QueueBytes that only records at slog.LevelWarn and above may use, so that a flood of others does
	// not shut them out. 0 means 0.1, a negative share none; more than 0.5 is an error.
	Reserve float64

	// RecordRate is the most records that leave in a second, evenly spaced; what is more waits in the queue, also during Close,
	// and with Sync in the log call. 0 means no limit, negative is an error.
	RecordRate int

	// ByteRate is the most bytes of encoded records that leave in a second, like RecordRate. 0 means no limit, negative is an
	// error.
	ByteRate int

	// RetryFor is the longest time one record is tried, from Handle on; then it is dropped with ReasonRetryExpired. 0 means no
	// limit of its own: the record leaves by delivery, by DropOldest or at Close.
	RetryFor time.Duration

	// Tries is the most times one record is sent whose outcome was "perhaps taken"; then it is dropped with
	// ReasonTriesExhausted. Sends that certainly failed do not count. 0 means 10; negative is an error.
	Tries int

	// Backoff is the wait between tries when every address was tried, and between dials, look-ups and probes of credentials. It
	// grows until something is delivered, on TCP and TLS by a connection that has lasted a second.
	// A server's Retry-After is honoured up to the larger of Backoff.Max and 60 s. Its zero fields mean 250 ms, 30 s, 2, Full;
	// here negative fields and a Factor below 1 are errors.
	Backoff jitter.Backoff

	// DialTimeout is the longest time for connecting, the TLS handshake included. 0 means 5 s.
	DialTimeout time.Duration

	// SendTimeout is the longest time for one write or one request. Past it the connection is given up and what it had not
	// delivered goes elsewhere. 0 means 10 s, and 30 s for HTTP.
	SendTimeout time.Duration

	// CloseTimeout is the longest time for everything that Close does: the last records, the orderly goodbye, the outstanding
	// acknowledgements. What is left then is dropped with ReasonClosed. 0 means 5 s.
	CloseTimeout time.Duration

	// Sync makes Handle send the record itself and return its error. There is no queue, no pipeline goroutine and no timer (a
	// transport may keep a reader for each open connection). For processes that may be frozen or killed after any log call.
	Sync bool

	// SyncTimeout is the longest Handle may take with Sync: each usable address is tried once, and once more where the
	// connection that was open was dead; then the record is dropped with ReasonSyncFailed. 0 means 2 s. Without Sync it has no effect.
	SyncTimeout time.Duration

	// Summary sends one record at slog.LevelWarn through the handler itself after losses, at most every 10 s, that says how many
	// records were lost and why. It leaves when there is room for it, and is counted in Stats.Own only.
	Summary bool

	// OnDrop is called for every loss; losses that come fast are summed by reason, address and level. Calls come from one
	// goroutine and never overlap; with Sync they come at the end of Handle. The function should be fast. It may log through
	// the handler: such a record is admitted only when there is room at once, and its own loss is counted but not reported
	// again. It must not call Flush or Close. A panic in it is caught. nil: losses are summed by reason, and each sum becomes one
	// line on os.Stderr, at most once a second; a function that does nothing silences that.
	OnDrop func(Drop)

	// OnError is called for troubles that are not, or not yet, losses: a refused connection, a failed look-up. Each kind comes
	// at most once a second, with a count of those that were suppressed. It is called like OnDrop, with the same rules. nil:
	// each becomes one line on os.Stderr; never a record of log or slog, which may well lead back here.
	OnError func(error)
}

// Validate returns an error for the first field whose value is out of range. The text starts with the field's name ("QueueBytes: …"), so that a caller can put the path to it in front.
func (o Options) Validate() error {
	if o.QueueBytes != 0 && o.QueueBytes < minQueueBytes {
		return invalid("QueueBytes", "%d is less than %d (512 KiB)", o.QueueBytes, minQueueBytes)
	}
	if o.Overflow > DropOldest {
		return invalid("Overflow", "%v is not known", o.Overflow)
	}
	for _, d := range []struct {
		name string
		d    time.Duration
	}{
		{"MaxBlock", o.MaxBlock},
		{"RetryFor", o.RetryFor},
		{"Backoff.Base", o.Backoff.Base},
		{"Backoff.Max", o.Backoff.Max},
		{"DialTimeout", o.DialTimeout},
		{"SendTimeout", o.SendTimeout},
		{"CloseTimeout", o.CloseTimeout},
		{"SyncTimeout", o.SyncTimeout},
	} {
		if d.d < 0 {
			return invalid(d.name, "%v is negative", d.d)
		}
	}
	if o.Tries < 0 {
		return invalid("Tries", "%d is negative", o.Tries)
	}
	if f := o.Backoff.Factor; f != 0 && (!(f >= 1) || math.IsInf(f, 0)) { // not ≥ 1: NaN too
		return invalid("Backoff.Factor", "%v is not a number from 1 up", f)
	}
	if o.Backoff.Mode > jitter.None {
		return invalid("Backoff.Mode", "%v is not known", o.Backoff.Mode)
	}
	if !(o.Reserve <= 0.5) { // NaN too; with more, the largest records of other levels would never find room
		return invalid("Reserve", "%v is more than half", o.Reserve)
	}
	if o.RecordRate < 0 {
		return invalid("RecordRate", "%d is negative", o.RecordRate)
	}
	if o.ByteRate < 0 {
		return invalid("ByteRate", "%d is negative", o.ByteRate)
	}
	return nil
}

// invalid is an error that starts with an option's name, spelled as the user spelled it.
func invalid(option, format string, args ...any) error {
	return fmt.Errorf("%s: %s", option, fmt.Sprintf(format, args...))
}

// String returns the fields that are not zero, for people, and of each hook whether it is set. It never panics.
func (o Options) String() string { return mask.String("delivery.Options", o) }

// GoString returns what String returns.
func (o Options) GoString() string { return o.String() }

// MarshalJSON returns what String shows as a JSON object: durations and enums as text, hooks as "set" or "unset". It is
// for reading; there is no way back.
func (o Options) MarshalJSON() ([]byte, error) { return mask.JSON(o) }

// LogValue returns what String shows as a group.
func (o Options) LogValue() slog.Value { return mask.LogValue(o) }

// Overflow says what happens to a record that finds no room.
type Overflow uint8

// The overflow policies.
const (
	// Block waits for room, at most MaxBlock, then drops the new record.
	Block Overflow = iota
	// DropNewest drops the new record at once.
	DropNewest
	// DropOldest makes room by dropping the records that wait longest.
	DropOldest
)

// String returns the name of the policy.
func (o Overflow) String() string { return mask.Enum(o, "Block", "DropNewest", "DropOldest") }
