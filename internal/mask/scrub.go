package mask

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
)

const (
	// MaxWords is how many bytes of a server's words are repeated.
	MaxWords = 256
	// minSecret is the length from which the value of a header field counts as a secret. A shorter one guards nothing, and to hide
	// every "1" would make answers unreadable.
	minSecret = 4
)

// Scrubber takes a client's own secrets out of what a server says: some repeat the request in their answer. It is safe for
// concurrent use.
type Scrubber struct{ secrets *strings.Replacer }

// NewScrubber returns one for the credentials of Basic authentication, "" where there are none, and for the values of header fields.
func NewScrubber(user, password string, h http.Header) *Scrubber {
	var secrets []string
	if user+password != "" {
		pair := user + ":" + password
		secrets = append(secrets, pair, base64.StdEncoding.EncodeToString([]byte(pair)), password)
		if password == "" {
			secrets = append(secrets, user) // a token without a name
		}
	}
	for _, values := range h {
		for _, v := range values {
			_, token, _ := strings.Cut(v, " ") // "Bearer …"
			for _, s := range []string{v, token} {
				if len(s) >= minSecret {
					secrets = append(secrets, s)
				}
			}
		}
	}
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) }) // the longest first, which may hold others
	var pairs []string
	for _, s := range secrets {
		if s != "" {
			pairs = append(pairs, s, Hidden)
		}
	}
	return &Scrubber{strings.NewReplacer(pairs...)}
}

// Text makes a server's words fit for an error: without secrets, in one line, not longer than [MaxWords] and an ellipsis.
func (s *Scrubber) Text(words string) string {
	words = Text(s.secrets.Replace(words))
	words = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(words, "�"), func(r rune) bool { return r <= ' ' || r == 0x7f }), " ")
	if len(words) > MaxWords {
		words = strings.ToValidUTF8(words[:MaxWords], "") + "…"
	}
	return words
}
