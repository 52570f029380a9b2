package gelf

import (
	"math"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for _, x := range []struct {
		value, date string
		want        time.Duration
	}{
		{"", "", 0},
		{"0", "", 0},
		{"1", "", time.Second},
		{" 120 ", "", 2 * time.Minute},
		{"86400", "", 24 * time.Hour},
		{"86401", "", 24 * time.Hour},
		{"4294967296", "", 24 * time.Hour},
		{"99999999999999999999999999", "", 24 * time.Hour},
		{"-1", "", 0},
		{"+1", "", 0},
		{"1.5", "", 0},
		{"1 s", "", 0},
		{"soon", "", 0},
		{"Fri, 02 Jan 2026 12:00:30 GMT", "", 30 * time.Second},
		{"Friday, 02-Jan-26 12:00:30 GMT", "", 30 * time.Second}, // RFC 850
		{"Fri Jan  2 12:00:30 2026", "", 30 * time.Second},       // asctime
		{"Fri, 02 Jan 2026 11:59:30 GMT", "", 0},
		{"Fri, 02 Jan 2099 11:59:30 GMT", "", 24 * time.Hour},
		{"Fri, 02 Jan 2026 12:00:30 CET", "", 0},
		// By the server's clock, which is an hour late.
		{"Fri, 02 Jan 2026 11:00:30 GMT", "Fri, 02 Jan 2026 11:00:00 GMT", 30 * time.Second},
		{"Fri, 02 Jan 2026 12:00:30 GMT", "noon", 30 * time.Second},
	} {
		h := http.Header{}
		h.Set("Retry-After", x.value)
		h.Set("Date", x.date)
		if got := retryAfter(h, now); got != x.want {
			t.Errorf("%q at %q: %v, want %v", x.value, x.date, got, x.want)
		}
	}
}

func FuzzRetryAfter(f *testing.F) {
	f.Add("120", "Fri, 02 Jan 2026 11:00:00 GMT", int64(0))
	f.Add("Fri, 02 Jan 2026 12:00:30 GMT", "", int64(math.MaxInt64))
	f.Add("Mon, 01 Jan 0001 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", int64(math.MinInt64))
	f.Fuzz(func(t *testing.T, value, date string, now int64) {
		got := retryAfter(http.Header{"Retry-After": {value}, "Date": {date}}, time.Unix(now, 0))
		if got < 0 || got > maxRetryAfter {
			t.Fatalf("%q at %q: %v", value, date, got)
		}
	})
}

// R81: servers and proxies that repeat a request in their answer must not bring its secrets into errors.
func TestR81_ScrubbedAnswers(t *testing.T) {
	to := httpTarget(t, "http://user:pa%2Fss@h:1")
	s := newScrubber(to, http.Header{"X-Token": {"tok-123456"}, "Authorization": {"Bearer abcdef"}, "X-Env": {"dev"}, "X-Empty": {""}})
	for in, want := range map[string]string{
		"":                                      "",
		"plain":                                 "plain",
		"user:pa/ss":                            "***",
		"bad Basic dXNlcjpwYS9zcw== given":      "bad Basic *** given",
		"password pa/ss of user":                "password *** of user",
		"X-Token: tok-123456, tok-12":           "X-Token: ***, tok-12",
		"Authorization: Bearer abcdef / abcdef": "Authorization: *** / ***",
		"dev and development":                   "dev and development",
		"see http://a:b@h/x":                    "see http://***@h/x",
		"two\r\n\tlines\x00\x7fand  more":       "two lines and more",
		"not \xff UTF-8":                        "not � UTF-8",
		strings.Repeat("x", 300):                strings.Repeat("x", 256) + "…",
		strings.Repeat("x", 255) + "ü":          strings.Repeat("x", 255) + "…",
	} {
		if got := s.text(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	token := newScrubber(httpTarget(t, "http://tok@h:1"), nil)
	if got := token.text("tok, dG9rOg=="); got != "***, ***" {
		t.Errorf("a token in the place of a user: %q", got)
	}
	for in, want := range map[string]string{
		"":                            "a redirect is not followed",
		"/login?next=pa/ss":           "a redirect is not followed; it leads to /login",
		"https://u:p@other.test/#key": "a redirect is not followed; it leads to https://***@other.test/",
	} {
		if got := s.redirect(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func FuzzScrubber(f *testing.F) {
	f.Add("the password s3cret was refused")
	f.Add("http://x:s3cret@h/" + strings.Repeat("ü", 300))
	to := target{scheme: "http", host: "h", port: "1", user: "u", password: "s3cret"}
	s := newScrubber(to, http.Header{"X-Token": {"t0ken"}})
	f.Fuzz(func(t *testing.T, in string) {
		got := s.text(in)
		if strings.Contains(got, "s3cret") || strings.Contains(got, "t0ken") || !utf8.ValidString(got) || len(got) > maxText+len("…") || strings.ContainsAny(got, "\r\n\x00") {
			t.Fatalf("%q: %q", in, got)
		}
	})
}
