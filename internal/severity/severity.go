// Package severity turns slog levels into the severities of syslog, RFC 5424 section 6.2.1, which GELF uses too.
package severity

import "log/slog"

// Severity is a syslog severity: 0 is the worst, 7 the least.
type Severity uint8

// The severities of RFC 5424, table 2.
const (
	Emergency Severity = iota
	Alert
	Critical
	Error
	Warning
	Notice
	Info
	Debug
)

// Of returns the severity of a level. slog leaves room for three steps between its own four levels, so each severity
// begins at a level of its own: Info+2 is Notice, Error+4 Critical, Error+8 Alert, Error+12 Emergency.
func Of(l slog.Level) Severity {
	switch {
	case l < slog.LevelInfo:
		return Debug
	case l < slog.LevelInfo+2:
		return Info
	case l < slog.LevelWarn:
		return Notice
	case l < slog.LevelError:
		return Warning
	case l < slog.LevelError+4:
		return Error
	case l < slog.LevelError+8:
		return Critical
	case l < slog.LevelError+12:
		return Alert
	default:
		return Emergency
	}
}
