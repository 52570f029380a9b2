package gelf

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/wholelog/wholelog/internal/mask"
	"github.com/wholelog/wholelog/resolve"
)

// defaultPath is where a GELF HTTP input listens. It compares the path byte by byte.
const defaultPath = "/gelf"

// target is a place to send to, as its URL names it.
type target struct {
	scheme, host, port string
	path               string // of HTTP: as it is sent
	user, password     string // of HTTP, decoded; both "": no user-info
}

// schemes are the known ones, with what is wanted of each.
func schemes() []string { return []string{"udp", "tcp", "tls", "http", "https"} }

// overHTTP says whether t is spoken to by requests.
func (t target) overHTTP() bool { return t.scheme == "http" || t.scheme == "https" }

// encrypted says whether t is spoken to over TLS.
func (t target) encrypted() bool { return t.scheme == "tls" || t.scheme == "https" }

// parseTarget takes a URL apart. It does so by hand because the errors of net/url quote what they fail on, and that may be a
// password. No error here quotes any part of the URL; that of resolver quotes the host, when it is known to stand alone. Callers
// put in front where the URL stands.
func parseTarget(s string) (target, error) {
	if strings.TrimSpace(s) != s {
		return target{}, errors.New("white space around it")
	}
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok {
		if scheme, _, _ := strings.Cut(strings.ToLower(s), ":"); slices.Contains(schemes(), scheme) && len(scheme) < len(s) {
			return target{}, fmt.Errorf("no //host after %s:; want %[1]s://host:port", scheme)
		}
		return target{}, errors.New("no scheme; want udp://host:port, or another of " + strings.Join(schemes(), ", "))
	}
	t := target{scheme: strings.ToLower(scheme)}
	if !slices.Contains(schemes(), t.scheme) {
		return target{}, errors.New("scheme is unknown; want one of " + strings.Join(schemes(), ", "))
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	authority, tail := rest[:end], rest[end:]
	if err := t.setPath(tail); err != nil {
		return target{}, err
	}
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		if err := t.setUser(authority[:i]); err != nil {
			return target{}, err
		}
		authority = authority[i+1:]
	}
	if strings.Contains(authority, ",") {
		return target{}, errors.New("one host only; option Resolve.Resolver takes several, by resolve.Static")
	}
	var err error
	if t.host, t.port, err = net.SplitHostPort(authority); err != nil {
		return target{}, splitError(authority)
	}
	if err := checkTargetHost(t.host, strings.HasPrefix(authority, "[")); err != nil {
		return target{}, err
	}
	return t, checkPort(t.port)
}

// setPath takes what stands behind host:port. A GELF input knows no query: one more byte than its path is another path.
func (t *target) setPath(tail string) error {
	if i := strings.IndexAny(tail, "?#"); i >= 0 && (i == 0 || t.overHTTP()) {
		part := map[byte]string{'?': "query", '#': "fragment"}[tail[i]]
		return fmt.Errorf("%s has no %s", t.scheme, part)
	}
	switch {
	case !t.overHTTP() && tail != "":
		return fmt.Errorf("%s has no path", t.scheme)
	case strings.Contains(tail, "@"):
		// More likely a password with a slash in it, which must not end up where paths are shown.
		return errors.New("path holds an @; in user-info a / is written %2F, in a path an @ is written %40")
	case tail == "" && t.overHTTP():
		tail = defaultPath
	}
	const special = `"<>\^{|}` + "`"
	_, err := url.PathUnescape(tail)
	if err != nil || strings.ContainsFunc(tail, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(special, r) }) {
		return errors.New("path holds a character that must be escaped")
	}
	t.path = tail
	return nil
}

// setUser takes the user-info, which becomes Basic authentication (RFC 7617).
func (t *target) setUser(info string) error {
	if !t.overHTTP() {
		return fmt.Errorf("%s has no user-info", t.scheme)
	}
	user, password, _ := strings.Cut(info, ":")
	var userErr, passwordErr error
	t.user, userErr = url.PathUnescape(user)
	t.password, passwordErr = url.PathUnescape(password)
	switch {
	case userErr != nil || passwordErr != nil:
		return errors.New("user-info holds a % that begins no escape; a % itself is written %25")
	case strings.Contains(t.user, ":"):
		return errors.New("user-info: the user holds a colon, which Basic authentication cannot carry")
	case t.user == "" && t.password == "":
		return errors.New("user-info is empty")
	case strings.ContainsFunc(t.user+t.password, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return errors.New("user-info holds a control character")
	}
	return nil
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

func checkTargetHost(host string, brackets bool) error {
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

// resolver looks the host up. It fails for a host that no look-up can ever find.
func (t target) resolver() (resolve.Resolver, error) {
	r := resolve.DNS(t.hostPort(), nil)
	// Of Options' error only the resolver's own: the user set no option.
	if err := errors.Unwrap((resolve.Options{Resolver: r}).Validate()); err != nil {
		return nil, err
	}
	return r, nil
}

// hostPort returns the address, an IPv6 one in brackets.
func (t target) hostPort() string { return net.JoinHostPort(t.host, t.port) }

// String returns the URL. Of user-info it says only that there is one.
func (t target) String() string {
	at := ""
	if t.user+t.password != "" {
		at = mask.Hidden + "@"
	}
	return t.scheme + "://" + at + t.hostPort() + t.path
}

// GoString returns what String returns.
func (t target) GoString() string { return t.String() }
