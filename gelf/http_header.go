package gelf

import (
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
)

// checkHeader looks for what net/http would refuse with every single request, and for what is not the user's to say. Its errors show
// names and never values.
func checkHeader(h http.Header, userInfo bool) error {
	for name, values := range h {
		if name == "" || strings.ContainsFunc(name, func(r rune) bool { return !isTokenChar(r) }) {
			return errors.New("a name is not that of a field") // and perhaps a whole line, with its value
		}
		switch key := textproto.CanonicalMIMEHeaderKey(name); {
		case slices.Contains([]string{
			"Connection", "Content-Encoding", "Content-Length", "Expect", "Host", "Keep-Alive", "Proxy-Connection", "Te",
			"Trailer", "Transfer-Encoding", "Upgrade",
		}, key):
			return fmt.Errorf("%s is the transport's own", key)
		case key == "Authorization" && userInfo:
			return fmt.Errorf("%s stands beside user-info in the URL; want one of them", key)
		}
		for _, v := range values {
			if strings.ContainsFunc(v, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
				return fmt.Errorf("the value of %s holds a control character", name)
			}
		}
	}
	return nil
}

// isTokenChar is the tchar of RFC 9110 §5.6.2.
func isTokenChar(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}
