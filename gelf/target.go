package gelf

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/wholelog/wholelog/internal/hostport"
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

// parseTarget takes a URL apart, by hand for the reason that package hostport gives. No error here quotes any part of the URL. Callers
// put in front where it stands.
func parseTarget(s string) (target, error) {
	scheme, rest, err := hostport.CutScheme(s, schemes())
	if err != nil {
		return target{}, err
	}
	t := target{scheme: scheme}
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
	t.host, t.port, err = hostport.Split(authority)
	return t, err
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

// resolver looks the host up. It fails for a host that no look-up can ever find.
func (t target) resolver() (resolve.Resolver, error) { return hostport.Resolver(t.hostPort()) }

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
