package gelf

import (
	"slices"
	"strings"
)

// Graylog stores the attribute _N as the field N, with every dot made an underscore. It silently drops a field whose name
// has other characters than these, or is taken, and keeps only one of two fields that come out with the same name. So the
// names are judged here as they come out there.

const (
	maxName   = 256 // bytes of a name; longer ones are cut
	emptyName = "unnamed"
	nameStart = `,"_` // stands before a name
	nameEnd   = `":`  // and behind it
)

// nameChar returns whether c may stand in a name as it is: what Graylog accepts, less "@".
func nameChar[T byte | rune](c T) bool {
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '.', c == '-':
		return true
	}
	return false
}

// reservedNames returns the fields that Graylog sets itself from the other parts of the message, or that mean something else
// there: an attribute of that name would be dropped, or replace what the server knows. An attribute N among them becomes
// _N_, which it stores as N_. (_id is the one name that the GELF specification forbids.)
func reservedNames() []string {
	return []string{
		"id", "message", "full_message", "short_message", "source", "host", "timestamp", "level", "streams",
		"truncated", // what a link adds when it cuts a message
	}
}

// reservedPrefix is the server's own: gl2_remote_ip and the like.
const reservedPrefix = "gl2_"

func reserved(name []byte) bool {
	return isReservedPrefix(name) || slices.Contains(reservedNames(), strings.ReplaceAll(string(name), ".", "_"))
}

// isReservedPrefix returns whether name begins with reservedPrefix as Graylog stores it.
func isReservedPrefix(name []byte) bool {
	const n = len(reservedPrefix) - 1
	return len(name) > n && string(name[:n]) == reservedPrefix[:n] && (name[n] == '_' || name[n] == '.')
}

// appendCleanName appends name with every character that Graylog does not accept replaced by "_". The whole name, which
// begins at start in dst, gets no longer than maxName bytes, has no underscore in front (the one that GELF asks for is
// there already; with two, Graylog drops names like __id) and is not empty. changed says that name did not stay as it was.
func appendCleanName(dst []byte, start int, name string) (out []byte, changed bool) {
	before := len(dst)
	for _, r := range name {
		if len(dst)-start >= maxName {
			break
		}
		c := byte('_')
		if nameChar(r) {
			c = byte(r)
		}
		if c != '_' || len(dst) > start {
			dst = append(dst, c)
		}
	}
	if len(dst) == start {
		dst = append(dst, emptyName...)
	}
	return dst, string(dst[before:]) != name
}

// plainName returns whether appendCleanName would change nothing.
func plainName(name string) bool {
	if len(name) == 0 || len(name) > maxName || name[0] == '_' {
		return false
	}
	for i := range len(name) {
		if !nameChar(name[i]) {
			return false
		}
	}
	return true
}
