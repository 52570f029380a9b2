package mask

import (
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"
)

// R81: what a server repeats of a request must not bring its secrets into errors and statistics.
func TestR81_Scrubber(t *testing.T) {
	basic := NewScrubber("user", "pa/ss", http.Header{"X-Token": {"tok-123456"}, "Authorization": {"Bearer abcdef"}, "X-Env": {"dev"}, "X-Empty": {""}})
	token := NewScrubber("tok", "", nil)
	none := NewScrubber("", "", nil)
	for _, c := range []struct {
		s        *Scrubber
		in, want string
	}{
		{basic, "", ""},
		{basic, "plain", "plain"},
		{basic, "user:pa/ss", "***"},
		{basic, "bad Basic dXNlcjpwYS9zcw== given", "bad Basic *** given"},
		{basic, "password pa/ss of user", "password *** of user"},
		{basic, "X-Token: tok-123456, tok-12", "X-Token: ***, tok-12"},
		{basic, "Authorization: Bearer abcdef / abcdef", "Authorization: *** / ***"},
		{basic, "dev and development", "dev and development"},
		{token, "tok, dG9rOg==", "***, ***"},
		{none, "user:pa/ss", "user:pa/ss"},
		{none, "see http://a:b@h/x", "see http://***@h/x"},
		{none, "two\r\n\tlines\x00\x7fand  more", "two lines and more"},
		{none, "not \xff UTF-8", "not � UTF-8"},
		{none, strings.Repeat("x", 300), strings.Repeat("x", 256) + "…"},
		{none, strings.Repeat("x", 255) + "ü", strings.Repeat("x", 255) + "…"},
	} {
		if got := c.s.Text(c.in); got != c.want {
			t.Errorf("%q: %q, want %q", c.in, got, c.want)
		}
	}
}

func FuzzScrubber(f *testing.F) {
	f.Add("the password s3cret was refused")
	f.Add("http://x:s3cret@h/" + strings.Repeat("ü", 300))
	s := NewScrubber("u", "s3cret", http.Header{"X-Token": {"t0ken"}})
	f.Fuzz(func(t *testing.T, in string) {
		got := s.Text(in)
		if strings.Contains(got, "s3cret") || strings.Contains(got, "t0ken") || !utf8.ValidString(got) || len(got) > MaxWords+len("…") || strings.ContainsAny(got, "\r\n\x00") {
			t.Fatalf("%q: %q", in, got)
		}
	})
}
