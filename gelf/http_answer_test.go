package gelf

import (
	"math"
	"net/http"
	"testing"
	"time"
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
	s := newScrubber(httpTarget(t, "http://user:pa%2Fss@h:1"), http.Header{"X-Token": {"tok-123456"}})
	if got, want := s.Text("user:pa/ss, dXNlcjpwYS9zcw==, tok-123456"), "***, ***, ***"; got != want {
		t.Errorf("%q, want %q", got, want)
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
