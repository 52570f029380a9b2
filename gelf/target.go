package gelf

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/wholelog/wholelog/resolve"
)

// target is the place a handler sends to, as its URL names it.
type target struct {
	scheme, host, port string
}

// parseTarget takes a URL apart. It does so by hand because the errors of net/url quote what they fail on, and that may be a
// password. No error here quotes any part of the URL; that of resolver quotes the host, when it is known to stand alone.
func parseTarget(s string) (target, error) {
	if strings.TrimSpace(s) != s {
		return target{}, errors.New("target: white space around it")
	}
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok {
		if strings.HasPrefix(strings.ToLower(s), "udp:") {
			return target{}, errors.New("target: no //host after udp:; want udp://host:port")
		}
		return target{}, errors.New("target: no scheme; want udp://host:port")
	}
	t := target{scheme: strings.ToLower(scheme)}
	switch t.scheme {
	case "udp":
	case "tcp", "tls", "http", "https":
		return target{}, fmt.Errorf("target: scheme %s is not available in this version; use udp", t.scheme)
	default:
		return target{}, errors.New("target: scheme is unknown; want udp://host:port")
	}
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		part := map[byte]string{'/': "path", '?': "query", '#': "fragment"}[rest[i]]
		return target{}, fmt.Errorf("target: %s has no %s", t.scheme, part)
	}
	if strings.Contains(rest, "@") {
		return target{}, fmt.Errorf("target: %s has no user-info", t.scheme)
	}
	if strings.Contains(rest, ",") {
		return target{}, errors.New("target: one host only; option Resolve.Resolver takes several, by resolve.Static")
	}
	var err error
	if t.host, t.port, err = net.SplitHostPort(rest); err != nil {
		return target{}, splitError(rest)
	}
	if err := checkTargetHost(t.host, strings.HasPrefix(rest, "[")); err != nil {
		return target{}, err
	}
	return t, checkPort(t.port)
}

// splitError says why an authority is not host:port.
func splitError(authority string) error {
	switch {
	case authority == "":
		return errors.New("target: no host")
	case strings.HasPrefix(authority, "[") && !strings.Contains(authority, "]"):
		return errors.New("target: host lacks the closing ]")
	case strings.HasPrefix(authority, "["), !strings.Contains(authority, ":"):
		return errors.New("target: no port; it is always required")
	}
	return errors.New("target: host is not valid; an IPv6 address stands in brackets")
}

func checkTargetHost(host string, brackets bool) error {
	if host == "" {
		return errors.New("target: no host")
	}
	if brackets {
		if a, err := netip.ParseAddr(host); err != nil || !a.Is6() {
			return errors.New("target: host is not an IPv6 address, though it stands in brackets")
		}
		return nil
	}
	const special = `!"#$%&'()*+/:;<=>?@[\]^{|}` + "`"
	if strings.ContainsFunc(host, func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(special, r) }) {
		return errors.New("target: host holds a character that no host name has")
	}
	return nil
}

func checkPort(port string) error {
	if port == "" {
		return errors.New("target: no port; it is always required")
	}
	if strings.Trim(port, "0123456789") != "" {
		return errors.New("target: port is not a number")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return errors.New("target: port is outside 1…65535")
	}
	return nil
}

// resolver looks the host up. It fails for a host that no look-up can ever find.
func (t target) resolver() (resolve.Resolver, error) {
	r := resolve.DNS(t.hostPort(), nil)
	// Of Options' error only the resolver's own: the user set no option.
	if err := errors.Unwrap((resolve.Options{Resolver: r}).Validate()); err != nil {
		return nil, fmt.Errorf("target: %w", err)
	}
	return r, nil
}

// hostPort returns the address, an IPv6 one in brackets.
func (t target) hostPort() string { return net.JoinHostPort(t.host, t.port) }

// String returns the URL.
func (t target) String() string { return t.scheme + "://" + t.hostPort() }
