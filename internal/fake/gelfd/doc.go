// Package gelfd is a GELF receiver for tests and examples. It refuses what Graylog refuses, drops the fields that Graylog drops,
// and says which and why: a fake that accepts everything proves nothing about a sender.
//
// [Listen] starts a receiver on a UDP socket, [ListenTCP] one for TCP and TLS, [ListenHTTP] one for HTTP. [Decode] is the same
// judgement without a socket, for tests that want to know whether every field of a payload would be kept.
package gelfd

import "fmt"

// Reason says why a datagram or a whole message was refused.
type Reason string

// The reasons for refusing. Graylog tells a sender none of them.
const (
	BadType    Reason = "type"          // the first two bytes name no known form, or there are fewer than two
	BadFrame   Reason = "frame"         // of a stream: too long, empty or of one byte; the connection is closed
	BadChunk   Reason = "chunk"         // a chunk without a place, the 129th, or a chunk inside chunks
	BadInflate Reason = "inflate"       // a compressed stream that is damaged or ends early
	BadJSON    Reason = "json"          // no JSON, also when the inflated text was cut at the limit
	BadHost    Reason = "host"          // present, and not a text or blank
	BadMessage Reason = "short_message" // missing, not a text, or blank
	BadIndex   Reason = "index"         // the index refuses the document: a keyword is too long
)

// Reject is the error of a refused payload.
type Reject struct {
	Reason Reason
	Detail string
}

func (r *Reject) Error() string { return fmt.Sprintf("gelfd: refused for %s: %s", r.Reason, r.Detail) }

func reject(reason Reason, format string, args ...any) error {
	return &Reject{Reason: reason, Detail: fmt.Sprintf(format, args...)}
}

// Fault says why a field was dropped although its message was kept.
type Fault string

// The faults of fields.
const (
	FaultBool      Fault = "bool"      // true and false have no place in the index
	FaultNull      Fault = "null"      //
	FaultBlank     Fault = "blank"     // a text that is empty when trimmed
	FaultName      Fault = "name"      // characters other than A–Z a–z 0–9 _ . @ -
	FaultReserved  Fault = "reserved"  // a name of the server's or the index's own
	FaultTaken     Fault = "taken"     // a field of this name, without its underscore, was there before
	FaultDuplicate Fault = "duplicate" // the same key came again later in the object
	FaultCollision Fault = "collision" // equal to another name once dots are underscores
)

// Dropped is a field that did not survive.
type Dropped struct {
	Name  string // the key as it was sent
	Fault Fault
}
