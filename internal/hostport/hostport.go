// Package hostport reads the host and port of the URLs that the protocols' constructors take. It does so by hand because the errors of
// net/url quote what they fail on, and that may be a password. No error here quotes any part of a URL, but for those of [Resolver],
// which quote the host when it is known to stand alone.
package hostport

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/wholelog/wholelog/resolve"
)

// CutScheme takes the scheme, one of known, off a URL.
func CutScheme(url string, known []string) (scheme, rest string, err error) {
	if strings.TrimSpace(url) != url {
		return "", "", errors.New("white space around it")
	}
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok {
		if scheme, _, _ := strings.Cut(strings.ToLower(url), ":"); slices.Contains(known, scheme) && len(scheme) < len(url) {
			return "", "", fmt.Errorf("no //host after %s:; want %[1]s://host:port", scheme)
		}
		return "", "", fmt.Errorf("no scheme; want %s://host:port, or another of %s", known[0], strings.Join(known, ", "))
	}
	if scheme = strings.ToLower(scheme); !slices.Contains(known, scheme) {
		return "", "", errors.New("scheme is unknown; want one of " + strings.Join(known, ", "))
	}
	return scheme, rest, nil
}

// Split takes the authority of a URL, without user-info, apart. The port is required, and an IPv6 address stands in brackets,
// which the host is returned without. The % before a zone is written %25 in a URL (RFC 6874), and may stand for itself.
func Split(authority string) (host, port string, err error) {
	if strings.Contains(authority, ",") {
		return "", "", errors.New("one host only; option Resolve.Resolver takes several, by resolve.Static")
	}
	if host, port, err = net.SplitHostPort(authority); err != nil {
		return "", "", splitError(authority)
	}
	brackets := strings.HasPrefix(authority, "[")
	if brackets {
		host = strings.Replace(host, "%25", "%", 1)
	}
	if err := checkHost(host, brackets); err != nil {
		return "", "", err
	}
	return host, port, checkPort(port)
}

// splitError says why an authority is not host:port.
func splitError(authority string) error {
	switch {
	case authority == "":
		return errors.New("no host")
	case strings.HasPrefix(authority, "[") && !strings.Contains(authority, "]"):
		return errors.New("host lacks the closing ]")
	case strings.HasPrefix(authority, "["), !strings.Contains(authority, ":"):
		return errors.New("no port; it is always required")
	}
	return errors.New("host is not valid; an IPv6 address stands in brackets")
}

func checkHost(host string, brackets bool) error {
	if host == "" {
		return errors.New("no host")
	}
	if brackets {
		if a, err := netip.ParseAddr(host); err != nil || !a.Is6() {
			return errors.New("host is not an IPv6 address, though it stands in brackets")
		}
		return nil
	}
	const special = `!"#$%&'()*+/:;<=>?@[\]^{|}` + "`"
	if strings.ContainsFunc(host, func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(special, r) }) {
		return errors.New("host holds a character that no host name has")
	}
	return nil
}

func checkPort(port string) error {
	if port == "" {
		return errors.New("no port; it is always required")
	}
	if strings.Trim(port, "0123456789") != "" {
		return errors.New("port is not a number")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return errors.New("port is outside 1…65535")
	}
	return nil
}

// Resolver looks a host and port up. It fails for a host that no look-up can ever find.
func Resolver(hostport string) (resolve.Resolver, error) {
	r := resolve.DNS(hostport, nil)
	// Of Options' error only the resolver's own: the user set no option.
	if err := errors.Unwrap((resolve.Options{Resolver: r}).Validate()); err != nil {
		return nil, err
	}
	return r, nil
}

// TLS returns what a connection to host is encrypted with: a copy of c, which may be nil. Its ServerName, when c has none, is the host as
// DNS writes it, without the final dot; a zone means something on this host only. Of an IP address no SNI is sent, and the certificate
// must list it.
func TLS(c *tls.Config, host string) *tls.Config {
	if c = c.Clone(); c == nil {
		c = new(tls.Config)
	}
	if c.ServerName == "" {
		c.ServerName, _, _ = strings.Cut(strings.TrimSuffix(host, "."), "%")
	}
	return c
}
