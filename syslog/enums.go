package syslog

import (
	"fmt"

	"github.com/wholelog/wholelog/internal/mask"
)

// Format is a format of messages.
type Format uint8

// The formats.
const (
	RFC5424 Format = iota // <PRI>1 TIMESTAMP HOSTNAME APP-NAME PROCID MSGID STRUCTURED-DATA MSG
	RFC3164               // <PRI>Mmm dd hh:mm:ss HOSTNAME TAG[PROCID]: MSG, in local time
)

// String returns "rfc5424" or "rfc3164".
func (f Format) String() string { return mask.Enum(f, "rfc5424", "rfc3164") }

// Framing tells the messages of a stream apart (RFC 6587). On datagrams each message is one.
type Framing uint8

// The framings.
const (
	FramingAuto   Framing = iota // octet counting with tcp and tls, newline on a unix stream
	OctetCounting                // the length in front: what TLS demands (RFC 5425), and rsyslog, syslog-ng's syslog() and HAProxy take
	Newline                      // a line feed behind: what syslog-ng's network() takes, and unix streams
)

// String returns "auto", "octet-counting" or "newline".
func (f Framing) String() string { return mask.Enum(f, "auto", "octet-counting", "newline") }

// Attrs says how attributes are written.
type Attrs uint8

// The ways to write attributes.
const (
	AttrsStructured Attrs = iota // as STRUCTURED-DATA: [attrs@32473 k="v" group.k="v"]; RFC 3164 has none, and gets AttrsText
	AttrsJSON                    // MSG is @cee:{"msg":…,"level":…,attributes nested}; of a NUL, at which receivers end a string, \x00
	AttrsText                    // MSG is the message and k=v group.k="v 2", quoted as slog's TextHandler does
)

// String returns "structured", "json" or "text".
func (a Attrs) String() string { return mask.Enum(a, "structured", "json", "text") }

// Facility is a facility of RFC 5424, table 1: its code minus 16, so that the zero value is Local0.
type Facility int8

// The facilities.
const (
	Kern Facility = iota - 16
	User
	Mail
	Daemon
	Auth
	Syslog
	LPR
	News
	UUCP
	Cron
	AuthPriv
	FTP
	NTP
	Audit
	Alert
	Clock
	Local0
	Local1
	Local2
	Local3
	Local4
	Local5
	Local6
	Local7
)

// code is what stands in PRI.
func (f Facility) code() int { return int(f - Kern) }

// String returns the name in lower case: "kern", "authpriv", "local0".
func (f Facility) String() string {
	if f < Kern || f > Local7 {
		return fmt.Sprintf("Facility(%d)", int8(f))
	}
	return [...]string{
		"kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv", "ftp",
		"ntp", "audit", "alert", "clock", "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7",
	}[f.code()]
}
