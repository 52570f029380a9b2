package gelfd

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// post sends one request over c and returns the status of the answer.
func post(t *testing.T, c *http.Client, s *HTTPServer, method, uri, body string, header ...string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.Addr().String()+uri, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	a, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	if _, err := io.Copy(io.Discard, a.Body); err != nil {
		t.Fatal(err)
	}
	return a.StatusCode
}

func serveHTTP(t *testing.T, o HTTPOptions) (*HTTPServer, *http.Client) {
	t.Helper()
	s, err := ListenHTTP("", o)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		s.Close()
	})
	return s, &http.Client{Transport: transport}
}

// texts returns the messages that were kept, once there are at least n.
func texts(t *testing.T, s *HTTPServer, n int) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := s.Wait(ctx, n); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, m := range s.Messages() {
		all = append(all, m.Fields["message"].(string))
	}
	return all
}

// ended waits until the server has seen the end of every connection, and judged what was left in it.
func ended(t *testing.T, s *HTTPServer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for s.Open() > 0 {
		select {
		case <-ctx.Done():
			t.Fatal(ctx.Err())
		case <-time.After(time.Millisecond):
		}
	}
}

// line is a message without a line end.
func line(text string) string {
	return fmt.Sprintf(`{"version":"1.1","host":"h","short_message":"%s"}`, text)
}

// padded is a message of n bytes.
func padded(n int) string {
	short := line("")
	return line(strings.Repeat("x", n-len(short)))
}

func TestHTTPAnswers(t *testing.T) {
	const auth = "Basic dTpw"
	for _, x := range []struct {
		name, method, uri, body string
		header                  []string
		status, kept            int
	}{
		{"post", "POST", "/gelf", line("m"), []string{"Authorization", auth}, 202, 1},
		{"no JSON", "POST", "/gelf", "no", []string{"Authorization", auth}, 202, 0},
		{"empty", "POST", "/gelf", "", []string{"Authorization", auth}, 202, 0},
		{"slash", "POST", "/gelf/", line("m"), []string{"Authorization", auth}, 404, 0},
		{"query", "POST", "/gelf?x=1", line("m"), []string{"Authorization", auth}, 404, 0},
		{"root", "POST", "/", line("m"), []string{"Authorization", auth}, 404, 0},
		{"get", "GET", "/gelf", "", []string{"Authorization", auth}, 405, 0},
		{"put", "PUT", "/gelf", line("m"), []string{"Authorization", auth}, 405, 0},
		{"options", "OPTIONS", "/gelf", "", nil, 200, 0},
		{"no credentials", "POST", "/gelf", line("m"), nil, 401, 0},
		{"wrong credentials", "POST", "/gelf", line("m"), []string{"Authorization", "x"}, 401, 0},
		{"as long as may be", "POST", "/gelf", padded(65536), []string{"Authorization", auth}, 202, 1},
		{"too long", "POST", "/gelf", padded(65537), []string{"Authorization", auth}, 413, 0},
		{"gzip", "POST", "/gelf", gz(line("m")), []string{"Authorization", auth, "Content-Encoding", "gzip"}, 202, 1},
		{"deflate", "POST", "/gelf", zl(line("m")), []string{"Authorization", auth, "Content-Encoding", "deflate"}, 202, 1},
		{"both", "POST", "/gelf", zl(gz(line("m"))), []string{"Authorization", auth, "Content-Encoding", "gzip,deflate"}, 202, 1},
		{"gzip of 200 KB", "POST", "/gelf", gz(padded(200_000)), []string{"Authorization", auth, "Content-Encoding", "gzip"}, 413, 0},
		{"zstd", "POST", "/gelf", "\x28\xb5\x2f\xfd", []string{"Authorization", auth, "Content-Encoding", "zstd"}, 202, 0},
		{"gzip of 1 MB unsaid", "POST", "/gelf", gz(padded(1 << 20)), []string{"Authorization", auth}, 202, 1},
		{"several lines", "POST", "/gelf", line("a") + "\n" + line("b") + "\n", []string{"Authorization", auth}, 202, 1},
		{"array", "POST", "/gelf", "[" + line("a") + "]\n", []string{"Authorization", auth}, 202, 0},
	} {
		t.Run(x.name, func(t *testing.T) {
			s, c := serveHTTP(t, HTTPOptions{Auth: auth})
			if got := post(t, c, s, x.method, x.uri, x.body, x.header...); got != x.status {
				t.Errorf("status %d, want %d", got, x.status)
			}
			r := s.Requests()
			if len(r) != 1 || r[0].Status != x.status || r[0].URI != x.uri || r[0].Conn != 1 || !bytes.Equal(r[0].Body, []byte(x.body)) {
				t.Errorf("%+v", r)
			}
			if got := len(s.Messages()); got != x.kept {
				t.Errorf("%d messages, want %d: %+v", got, x.kept, s.Stats())
			}
		})
	}
}

// With bulk receiving on, what follows the last line end of a body waits in the connection.
func TestHTTPBulk(t *testing.T) {
	for _, x := range []struct {
		name   string
		bodies []string
		before string // messages while the connection is open
		after  string // and when it was closed
	}{
		{"lines", []string{line("a") + "\n" + line("b") + "\r\n\n" + line("c") + "\n"}, "a b c", "a b c"},
		{"no line end", []string{line("a")}, "", "a"},
		{"no line end, then more", []string{line("a"), line("b") + "\n"}, "a", "a"}, // glued, the second is lost
		{"malformed", []string{`{"a":1` + "\n" + line("b") + "\n" + line("c") + "}\n" + line("d") + "\n"}, "d", "d"},
		{"braces and quotes in text", []string{line(`{[\"}`) + "\n" + line("b") + "\n"}, `{["} b`, `{["} b`},
		{"array", []string{"[" + line("a,") + ", " + line("b") + "]\n"}, "a, b", "a, b"},
		{"array without line end", []string{"[" + line("a") + "]"}, "", "a"},
		{"gzip unsaid", []string{gz(line("a") + "\n")}, "", ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			s, c := serveHTTP(t, HTTPOptions{Bulk: true})
			for _, b := range x.bodies {
				if got := post(t, c, s, "POST", "/gelf", b); got != 202 {
					t.Errorf("status %d", got)
				}
			}
			if s.Conns() != 1 {
				t.Errorf("%d connections", s.Conns())
			}
			if got := strings.Join(texts(t, s, 0), " "); got != x.before {
				t.Errorf("%q, want %q", got, x.before)
			}
			c.CloseIdleConnections()
			ended(t, s)
			if got := strings.Join(texts(t, s, 0), " "); got != x.after {
				t.Errorf("after the end %q, want %q", got, x.after)
			}
		})
	}
}

func TestHTTPAnswersOnDemand(t *testing.T) {
	s, c := serveHTTP(t, HTTPOptions{Answer: func(n int, _ Request) *Answer {
		return map[int]*Answer{
			1: {Status: 503, Header: http.Header{"Retry-After": {"3"}}, Body: "busy"},
			2: {Stall: true},
			3: {Break: true},
		}[n]
	}})
	send := func(ctx context.Context) (*http.Response, error) {
		r, err := http.NewRequestWithContext(ctx, "POST", "http://"+s.Addr().String()+"/gelf", strings.NewReader(line("m")))
		if err != nil {
			t.Fatal(err)
		}
		return c.Do(r)
	}
	a, err := send(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(a.Body)
	a.Body.Close()
	if a.StatusCode != 503 || a.Header.Get("Retry-After") != "3" || string(body) != "busy" {
		t.Errorf("%v: %s", a, body)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if a, err := send(ctx); err == nil {
		a.Body.Close()
		t.Error("a stalled request was answered")
	}
	if a, err := send(t.Context()); err == nil {
		a.Body.Close()
		t.Error("a broken connection answered")
	}
	if got := post(t, c, s, "POST", "/gelf", line("m")); got != 202 || len(s.Messages()) != 1 || len(s.Requests()) != 4 {
		t.Errorf("%d, %d messages, %+v", got, len(s.Messages()), s.Requests())
	}
}
