package resolve

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// target is a host:port taken apart.
type target struct {
	host string     // as written, without brackets
	addr netip.Addr // valid when host is an IP literal
	port uint16
}

// parseTarget reads "name:port", "192.0.2.1:port" or "[2001:db8::1]:port". The port is a number; a zone as in "[fe80::1%eth0]:514"
// is kept. Its errors quote s, except what may be a secret.
func parseTarget(s string) (target, error) {
	t, err := splitTarget(s)
	if err == nil {
		return t, nil
	}
	if strings.Contains(s, "@") {
		return target{}, errors.New("resolve: host:port must not hold user-info")
	}
	return target{}, fmt.Errorf("resolve: %.100q: %w", s, err)
}

func splitTarget(s string) (target, error) {
	colon := strings.LastIndexByte(s, ':')
	if colon < 0 || strings.HasSuffix(s, "]") {
		return target{}, errors.New("the port is missing: write host:port")
	}
	host, digits := s[:colon], s[colon+1:]
	port, err := parsePort(digits)
	if err != nil {
		return target{}, err
	}
	bare, bracketed := strings.CutPrefix(host, "[")
	if bracketed {
		var closed bool
		if bare, closed = strings.CutSuffix(bare, "]"); !closed {
			return target{}, errors.New("] is missing")
		}
	}
	addr, err := netip.ParseAddr(bare)
	switch {
	case strings.ContainsAny(bare, "[]"): // ParseAddr takes anything for a zone
		return target{}, errors.New("brackets stand around the address, not inside it")
	case err == nil && bracketed != addr.Is6():
		return target{}, errors.New("brackets belong around an IPv6 address, as in [::1]:12201, and only there")
	case err == nil:
		return target{host: bare, addr: addr.Unmap(), port: port}, nil
	case bracketed:
		return target{}, errors.New("there is no IPv6 address between the brackets")
	}
	if err := checkName(host); err != nil {
		return target{}, err
	}
	return target{host: host, port: port}, nil
}

func parsePort(digits string) (uint16, error) {
	if digits == "" {
		return 0, errors.New("the port is missing: write host:port")
	}
	// ParseUint takes no sign and no space, but accepts underscores only with base 0.
	port, err := strconv.ParseUint(digits, 10, 16)
	if err != nil || port == 0 {
		return 0, errors.New("the port must be a number from 1 to 65535")
	}
	return uint16(port), nil
}

// checkName finds what can never be looked up, so that it is an error of the configuration and not a failing look-up for ever.
// Lengths are those of RFC 1035 §2.3.4; underscores occur in real names. A final dot is welcome: it saves the search list.
func checkName(name string) error {
	trimmed := strings.TrimSuffix(name, ".")
	if trimmed == "" {
		return errors.New("the host is missing")
	}
	if len(trimmed) > 253 {
		return errors.New("the host name is longer than 253 bytes")
	}
	if strings.Contains(name, ":") {
		return errors.New("an IPv6 address needs brackets, as in [::1]:12201")
	}
	labels := strings.Split(trimmed, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 {
			return errors.New("a part of the host name is empty or longer than 63 bytes")
		}
		for _, c := range []byte(label) {
			if !isNameByte(c) {
				return errors.New("the host name may hold letters, digits, hyphens, underscores and dots only")
			}
		}
	}
	// No top-level domain is a number (RFC 3696 §2), so this is a mistyped IPv4 address.
	if last := labels[len(labels)-1]; len(labels) > 1 && strings.Trim(last, "0123456789") == "" {
		return errors.New("the host is neither a name nor an IP address")
	}
	return nil
}

func isNameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}
