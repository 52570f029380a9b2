package gelf_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/gelf"
	"github.com/wholelog/wholelog/internal/fake/gelfd"
	"github.com/wholelog/wholelog/internal/yardstick"
)

// What Graylog's HTTP input refuses, loses or misreads without a word. A handler logs everything that might lead there, and every
// request it made is held against each of the rules.
func TestHTTPConformance(t *testing.T) {
	for _, bulk := range []bool{false, true} {
		t.Run(fmt.Sprintf("bulk=%v", bulk), func(t *testing.T) {
			t.Parallel()
			node := httpNode(t, gelfd.HTTPOptions{Bulk: bulk, Auth: "Basic dTpw"})
			h := handlerOf(t, "http://u:p@"+node.Addr().String(), gelf.Options{
				Bulk: bulk, Sequence: true, AddSource: true, Delivery: delivery.Options{MaxBlock: time.Minute},
			})
			log := slog.New(h)
			sent := 0
			say := func(message string, args ...any) {
				log.Info(message, args...)
				sent++
			}
			for i := range 300 {
				say("short", "i", i)
			}
			say("")
			say("two\nlines\r\nand more", "text", "a\nb\x00c\u2028d", "brace", `{"[`, "quote", `\"`, "bool", true, "nil", nil)
			say("invalid \xff\xfe UTF-8", "big", uint64(1<<63), "name with space", 1)
			for _, n := range []int{60_000, 65_000, 66_000, 150_000, 400_000, 3_000_000} {
				say(yardstick.Text(n, uint64(n)), "long", yardstick.Text(40_000, 1))
			}
			flushed(t, h)
			requests := node.Requests()

			inflated := func(r gelfd.Request) []byte {
				z, err := gzip.NewReader(bytes.NewReader(r.Body))
				if err != nil {
					return r.Body
				}
				text, err := io.ReadAll(z)
				if err != nil {
					t.Errorf("a gzip body that is not whole: %v", err)
				}
				return text
			}
			each := func(name string, holds func(r gelfd.Request) bool) {
				t.Run(name, func(t *testing.T) {
					for i, r := range requests {
						if !holds(r) {
							t.Errorf("request %d: %s %s %v, %d bytes: %.100q", i, r.Method, r.URI, r.Header, len(r.Body), r.Body)
						}
					}
				})
			}
			each("POST to the very path", func(r gelfd.Request) bool { return r.Method == "POST" && r.URI == "/gelf" })
			each("the configured Authorization", func(r gelfd.Request) bool { return r.Header.Get("Authorization") == "Basic dTpw" })
			each("accepted", func(r gelfd.Request) bool { return r.Status == 202 })
			each("at most 65 536 bytes", func(r gelfd.Request) bool { return len(r.Body) <= 65_536 })
			each("no Content-Encoding", func(r gelfd.Request) bool { return r.Header.Get("Content-Encoding") == "" })
			each("never empty", func(r gelfd.Request) bool { return len(r.Body) > 2 })
			each("ends in a line end", func(r gelfd.Request) bool { return bytes.HasSuffix(inflated(r), []byte("}\n")) })
			each("inflates to less than 8 MiB", func(r gelfd.Request) bool { return len(inflated(r)) < 8<<20 })
			each("no array, no byte order mark", func(r gelfd.Request) bool { return inflated(r)[0] == '{' })
			each("one compact object in each line", func(r gelfd.Request) bool {
				for line := range bytes.Lines(inflated(r)) {
					if !json.Valid(line) || line[0] != '{' {
						return false
					}
				}
				return true
			})
			if bulk {
				each("no gzip with bulk receiving", func(r gelfd.Request) bool { return r.Body[0] == '{' })
			} else {
				each("one message without bulk receiving", func(r gelfd.Request) bool { return bytes.Count(inflated(r), []byte("\n")) == 1 })
			}
			t.Run("every message is kept with every field", func(t *testing.T) {
				s := node.Stats()
				if s.Messages != uint64(sent) || len(s.Rejected)+len(s.Dropped) > 0 || s.Wrapped+s.NoHost > 0 {
					t.Errorf("%d of %d: %+v", s.Messages, sent, s)
				}
				for _, m := range node.Messages() {
					if m.More {
						t.Errorf("something followed a message: %.100q", m.Raw)
					}
				}
			})
		})
	}
}

// R81: neither a password of the URL nor a token of Header is told, even when the server repeats the request in its answer.
func TestR81_HTTPSecretsAreNotTold(t *testing.T) {
	const password, token = "pa55-w0rd", "t0k3n-abc"
	node := httpNode(t, gelfd.HTTPOptions{Answer: func(n int, r gelfd.Request) *gelfd.Answer {
		return &gelfd.Answer{
			Status: []int{401, 500, 302, 422}[n%4],
			Header: map[string][]string{"Location": {"http://" + password + "@h/" + token + "?" + token}},
			Body:   fmt.Sprint(r.Header, " user:", password),
		}
	}})
	var told []string
	h, err := gelf.NewHandler("http://user:"+password+"@"+node.Addr().String(), &gelf.Options{
		Header: map[string][]string{"X-Token": {token}},
		Delivery: quickly(delivery.Options{
			CloseTimeout: time.Second,
			OnError:      func(err error) { told = append(told, err.Error()) },
			OnDrop:       func(d delivery.Drop) { told = append(told, fmt.Sprint(d)) },
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		slog.New(h).Info("m")
	}
	wait(t, func() bool { return h.Stats().Dropped > 0 && len(node.Requests()) > 10 }, func() string { return fmt.Sprintf("%+v", h.Stats()) })
	stats := fmt.Sprintf("%+v", h.Stats())
	told = append(told, fmt.Sprint(h.Close()), stats, fmt.Sprint(h), fmt.Sprintf("%#v", h))
	for _, text := range told {
		if strings.Contains(text, password) || strings.Contains(text, token) || strings.Contains(text, "dXNlcjpw") {
			t.Error(text)
		}
	}
	if !strings.Contains(strings.Join(told, "\n"), "gelf: http status") {
		t.Errorf("nothing told: %q", told)
	}
}
