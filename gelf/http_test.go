package gelf

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/internal/fake/gelfd"
	"github.com/wholelog/wholelog/internal/ship"
)

// readRequest reads one request from c and returns its bytes.
func readRequest(c io.Reader) (string, error) {
	var raw bytes.Buffer
	r, err := http.ReadRequest(bufio.NewReader(io.TeeReader(c, &raw)))
	if err != nil {
		return "", err
	}
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return "", err
	}
	return raw.String(), nil
}

const accepted = "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"

// The whole of what leaves, byte by byte.
func TestHTTPRequestBytes(t *testing.T) {
	record := []byte(`{"version":"1.1","host":"h","short_message":"m"}`)
	for _, x := range []struct {
		url  string
		o    Options
		send [][]byte
		want string
	}{
		{
			"http://graylog.test:12202",
			Options{},
			[][]byte{record},
			"POST /gelf HTTP/1.1\r\nHost: graylog.test:12202\r\nUser-Agent: wholelog\r\nContent-Length: 49\r\n" +
				"Content-Type: application/json\r\n\r\n" + string(record) + "\n",
		},
		{
			"http://us%2Fer:p%40ss@[::1]:80/a%2fb//c",
			Options{Header: http.Header{"x-Env": {"test", "two"}, "Content-Type": {"text/json"}}},
			[][]byte{record},
			"POST /a%2fb//c HTTP/1.1\r\nHost: [::1]:80\r\nUser-Agent: wholelog\r\nContent-Length: 49\r\n" +
				"Authorization: Basic dXMvZXI6cEBzcw==\r\nContent-Type: text/json\r\nX-Env: test\r\nX-Env: two\r\n\r\n" + string(record) + "\n",
		},
		{
			"http://h:1",
			Options{Bulk: true},
			[][]byte{record, record},
			"POST /gelf HTTP/1.1\r\nHost: h:1\r\nUser-Agent: wholelog\r\nContent-Length: 98\r\n" +
				"Content-Type: application/json\r\n\r\n" + string(record) + "\n" + string(record) + "\n",
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			var got []string
			r := rigFor(t, x.o, x.url, answers(func(s string) { got = append(got, s) }, accepted))
			r.dialLink(t)
			if err := r.send(t.Context(), x.send...); err != nil {
				t.Error(err)
			}
			if len(got) != 1 || got[0] != x.want {
				t.Errorf("%q\nwant %q", got, x.want)
			}
			if want := fmt.Sprintf("%d delivered", len(x.send)); r.outcomes() != want || r.wire != len(x.want) {
				t.Errorf("not %s, %d bytes of %d", want, r.wire, len(x.want))
			}
		})
	}
}

// What every answer means for the records of its request, alone and with Bulk together with others.
func TestHTTPAnswersAndOutcomes(t *testing.T) {
	for _, x := range []struct {
		answer      gelfd.Answer
		alone, bulk string
		after       time.Duration // at least, and at most a quarter more
		text        string
	}{
		{gelfd.Answer{Status: 200}, "1 delivered", "3 delivered", 0, ""},
		{gelfd.Answer{Status: 202, Body: "thanks"}, "1 delivered", "3 delivered", 0, ""}, // R74
		{gelfd.Answer{Status: 204}, "1 delivered", "3 delivered", 0, ""},
		{gelfd.Answer{Status: 301, Header: http.Header{"Location": {"https://u:s3cret@other.test/x?key=s3cret"}}}, "1 requeue protocol", "3 requeue protocol", 4 * time.Second, "gelf: http status 301: a redirect is not followed; it leads to https://***@other.test/x"},
		{gelfd.Answer{Status: 307}, "1 requeue protocol", "3 requeue protocol", 4 * time.Second, "gelf: http status 307: a redirect is not followed"},
		{gelfd.Answer{Status: 400, Body: "no\n  good\x00"}, "1 drop rejected", "3 halve", 0, "gelf: http status 400: no good"}, // R78
		{gelfd.Answer{Status: 401}, "1 requeue unauthorized", "3 requeue unauthorized", 4 * time.Second, "gelf: http status 401"},
		{gelfd.Answer{Status: 403, Body: "Basic dXNlcjpwQHNz, user:p@ss, p@ss, hush-hush"}, "1 requeue unauthorized", "3 requeue unauthorized", 4 * time.Second, "gelf: http status 403: Basic ***, ***, ***, ***"},
		{gelfd.Answer{Status: 404, Header: http.Header{"Retry-After": {"7"}}}, "1 requeue protocol", "3 requeue protocol", 7 * time.Second, "gelf: http status 404"},
		{gelfd.Answer{Status: 405}, "1 requeue protocol", "3 requeue protocol", 4 * time.Second, "gelf: http status 405"},
		{gelfd.Answer{Status: 407}, "1 requeue unauthorized", "3 requeue unauthorized", 4 * time.Second, "gelf: http status 407"},
		{gelfd.Answer{Status: 408}, "1 requeue busy", "3 requeue busy", 0, "gelf: http status 408"},
		{gelfd.Answer{Status: 410}, "1 requeue protocol", "3 requeue protocol", 4 * time.Second, "gelf: http status 410"},
		{gelfd.Answer{Status: 413}, "1 drop rejected", "3 halve", 0, "gelf: http status 413"},
		{gelfd.Answer{Status: 418}, "1 drop rejected", "3 halve", 0, "gelf: http status 418"},
		{gelfd.Answer{Status: 421}, "1 requeue protocol", "3 requeue protocol", 4 * time.Second, "gelf: http status 421"},
		{gelfd.Answer{Status: 425}, "1 requeue busy", "3 requeue busy", 0, "gelf: http status 425"},
		{gelfd.Answer{Status: 429, Header: http.Header{"Retry-After": {"30"}}}, "1 requeue busy", "3 requeue busy", 30 * time.Second, "gelf: http status 429"},
		{gelfd.Answer{Status: 500, Body: strings.Repeat("ü", 400)}, "1 resend other", "3 resend other", 0, "gelf: http status 500: " + strings.Repeat("ü", 128) + "…"},
		{gelfd.Answer{Status: 502}, "1 resend other", "3 resend other", 0, "gelf: http status 502"},
		{gelfd.Answer{Status: 503, Header: http.Header{"Retry-After": {"Sat, 01 Jan 2000 00:00:10 GMT"}}}, "1 requeue busy", "3 requeue busy", 10 * time.Second, "gelf: http status 503"},
		{gelfd.Answer{Status: 504}, "1 resend other", "3 resend other", 0, "gelf: http status 504"},
	} {
		for _, bulk := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d bulk=%v", x.answer.Status, bulk), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := rigFor(t, Options{Bulk: bulk, Header: http.Header{"X-Key": {"hush-hush"}}}, "http://user:p%40ss@graylog.test:1", nil)
					l := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
					server := gelfd.ServeHTTP(l, gelfd.HTTPOptions{Answer: func(int, gelfd.Request) *gelfd.Answer { return &x.answer }})
					defer server.Close()
					r.serve = func(c net.Conn) { l.conns <- c }
					r.dialLink(t)
					records, want := [][]byte{[]byte(`{"a":1}`)}, x.alone
					if bulk {
						records, want = append(records, records[0], records[0]), x.bulk
					}
					if err := r.send(t.Context(), records...); err != nil {
						t.Errorf("the link ends: %v", err)
					}
					s := r.settled[0]
					if got := r.outcomes(); got != want {
						t.Errorf("%s, want %s", got, want)
					}
					if s.After < x.after || s.After > x.after*3/2 || x.after == 0 && s.After > 0 {
						t.Errorf("after %v, want %v", s.After, x.after)
					}
					if s.Do == ship.Halve {
						return
					}
					var e *StatusError
					if x.text == "" != (s.Err == nil) || s.Err != nil && (s.Err.Error() != x.text || !errors.As(s.Err, &e) || e.Status != x.answer.Status) {
						t.Errorf("%v, want %q", s.Err, x.text)
					}
				})
			})
		}
	}
}

// Of several requests in flight that fail alike, one is the evidence: eight would have the address rest as after eight outages.
func TestHTTPOneOutageIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHTTPRig(t, Options{}, gelfd.HTTPOptions{Answer: func(int, gelfd.Request) *gelfd.Answer { return &gelfd.Answer{Status: 503} }}, nil)
		records := make([][]byte, 8)
		for i := range records {
			records[i] = []byte(`{"a":1}`)
		}
		if err := r.send(t.Context(), records...); err != nil {
			t.Error(err)
		}
		evidence := 0
		for _, s := range r.settled {
			if s.Err != nil || s.Cause != "" {
				evidence++
			}
		}
		if evidence != 1 || len(r.settled) != 8 {
			t.Errorf("%d of %d outcomes blame the address", evidence, len(r.settled))
		}
	})
}

// As many requests as connections are in flight at once; no more connections are opened than needed.
func TestHTTPRequestsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const before, most = 5, 3
		var mu sync.Mutex
		inFlight, top := 0, 0
		count := func(by int) {
			mu.Lock()
			defer mu.Unlock()
			inFlight += by
			top = max(top, inFlight)
		}
		r := newHTTPRig(t, Options{ConnsPerAddr: most}, gelfd.HTTPOptions{Answer: func(n int, _ gelfd.Request) *gelfd.Answer {
			if n > before {
				count(1)
				<-time.After(time.Second) // of a bubble: all that can come have come
				count(-1)
			}
			return nil
		}}, nil)
		one := []byte(`{"host":"h","short_message":"m"}`)
		for range before {
			if err := r.send(t.Context(), one); err != nil {
				t.Fatal(err)
			}
			synctest.Wait() // the connection goes back to the pool
		}
		if r.dials != 1 {
			t.Errorf("%d connections for one request after the other", r.dials)
		}
		if c := r.chosen[0]; c != (chosen{c.local, 1, len(one) + 1, whyOpened}) || c.local.String() != "192.0.2.9:40000" {
			t.Errorf("the first request: %+v", c)
		}
		if c := r.chosen[before-1]; c.why != whyReused {
			t.Errorf("the last request: %+v", c)
		}
		if err := r.send(t.Context(), one, one, one, one, one, one, one); err != nil {
			t.Fatal(err)
		}
		if r.dials != most || top != most || r.server.Conns() != most {
			t.Errorf("%d connections and %d requests at once, want %d", r.dials, top, most)
		}
		if got := len(r.server.Messages()); got != before+7 {
			t.Errorf("%d messages", got)
		}
	})
}

func TestHTTPLimits(t *testing.T) {
	for _, x := range []struct {
		o    Options
		want ship.Limits
	}{
		{Options{}, ship.Limits{LinksPerAddr: 1, BatchBytes: 64512, BatchRecords: 8, MaxAge: 5 * time.Minute}},
		{Options{ConnsPerAddr: 2, ConnAge: -1}, ship.Limits{LinksPerAddr: 1, BatchBytes: 64512, BatchRecords: 2}},
		{Options{Bulk: true, ConnAge: time.Minute}, ship.Limits{LinksPerAddr: 1, BatchBytes: 64512, MaxAge: time.Minute}},
		{Options{Bulk: true, ConnsPerAddr: 3}, ship.Limits{LinksPerAddr: 1, BatchBytes: 3 * 64512, MaxAge: 5 * time.Minute}},
	} {
		if got := rigFor(t, x.o, "http://h:1", nil).Limits(); got != x.want {
			t.Errorf("%+v, want %+v", got, x.want)
		}
	}
}

// A proxy of the environment is not used, and that is said once.
func TestHTTPProxyIsNotUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 2 {
			r := rigFor(t, Options{}, "http://graylog.test:1", answers(nil, accepted))
			r.proxy = func(q *http.Request) (*url.URL, error) {
				if q.URL.Host != "graylog.test:1" {
					t.Errorf("asked for %v", q.URL)
				}
				return &url.URL{Scheme: "http", Host: "user:s3cret@proxy.test"}, nil
			}
			r.dialLink(t)
			r.dialLink(t)
			if err := r.send(t.Context(), []byte("{}")); err != nil || r.outcomes() != "1 delivered" {
				t.Error(err)
			}
			if len(r.troubles) != 1 || !strings.Contains(r.troubles[0].err.Error(), "proxy") || strings.Contains(r.troubles[0].err.Error(), "s3cret") {
				t.Errorf("%v", r.troubles)
			}
		}
	})
}

// Close ends a request that waits for its answer, and every connection; a closed link sends nothing.
func TestHTTPCloseUnblocksSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHTTPRig(t, Options{}, gelfd.HTTPOptions{Answer: func(int, gelfd.Request) *gelfd.Answer { return &gelfd.Answer{Stall: true} }}, nil)
		done := make(chan error)
		go func() { done <- r.send(context.Background(), []byte(`{"a":1}`), []byte(`{"a":2}`)) }()
		synctest.Wait()
		r.link.Nudge()
		if err := r.link.Drain(t.Context()); err != nil {
			t.Error(err)
		}
		if r.link.Gone() != nil {
			t.Error("an HTTP server does not go")
		}
		r.link.Close()
		if err := <-done; !errors.Is(err, net.ErrClosed) || r.outcomes() != "" {
			t.Errorf("%v", err)
		}
		r.link.Close()
		synctest.Wait()
		for _, c := range r.conns {
			<-c.closed
		}
		if err := r.send(t.Context(), []byte(`{}`)); !errors.Is(err, net.ErrClosed) || r.dials != 2 {
			t.Errorf("%v, %d connections", err, r.dials)
		}
	})
}
