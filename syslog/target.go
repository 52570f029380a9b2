package syslog

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/wholelog/wholelog/internal/hostport"
	"github.com/wholelog/wholelog/resolve"
)

// target is a place to send to, as its URL names it.
type target struct {
	scheme, host, port string
	path               string // of unix
}

// schemes are the known ones, with what is wanted of each.
func schemes() []string { return []string{"udp", "tcp", "tls", "relp", "relp+tls", "unix"} }

// parseTarget takes a URL apart. No error quotes any part of it: whoever puts a password there must not find it in a log.
func parseTarget(s string) (target, error) {
	scheme, rest, err := hostport.CutScheme(s, schemes())
	if err != nil && strings.HasPrefix(s, "unix:") { // CutScheme would ask for a host and a port
		err = errNoPath
	}
	if err != nil {
		return target{}, err
	}
	t := target{scheme: scheme}
	if scheme == "unix" {
		return t, t.setPath(rest)
	}
	authority, tail := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, tail = rest[:i], rest[i:]
	}
	if tail != "" {
		part := map[byte]string{'/': "path", '?': "query", '#': "fragment"}[tail[0]]
		return target{}, fmt.Errorf("%s has no %s", scheme, part)
	}
	if strings.Contains(authority, "@") {
		return target{}, fmt.Errorf("%s has no user-info", scheme)
	}
	t.host, t.port, err = hostport.Split(authority)
	return t, err
}

var errNoPath = errors.New("unix wants an absolute path: unix:///path")

// maxPath is what sockaddr_un holds on Linux, less the final NUL. Other systems hold less.
const maxPath = 107

// setPath takes the path of a socket.
func (t *target) setPath(path string) error {
	switch {
	case strings.HasPrefix(path, "@"):
		return errors.New("unix has no abstract sockets; want an absolute path: unix:///path")
	case !strings.HasPrefix(path, "/"):
		return errNoPath
	case strings.ContainsAny(path, "?#"):
		return errors.New("unix has no query and no fragment")
	case len(path) > maxPath:
		return fmt.Errorf("path is longer than %d bytes", maxPath)
	case strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return errors.New("path holds a control character")
	}
	t.path = path
	return nil
}

// resolver finds the addresses of t. It fails for a host that no look-up can ever find.
func (t target) resolver() (resolve.Resolver, error) { return hostport.Resolver(t.hostPort()) }

// hostPort returns the address, an IPv6 one in brackets.
func (t target) hostPort() string { return net.JoinHostPort(t.host, t.port) }

// String returns the URL.
func (t target) String() string {
	if t.scheme == "unix" {
		return "unix://" + t.path
	}
	return t.scheme + "://" + t.hostPort()
}

// GoString returns what String returns.
func (t target) GoString() string { return t.String() }
