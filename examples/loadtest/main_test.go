package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wholelog/wholelog/internal/fake/authority"
	"github.com/wholelog/wholelog/internal/fake/loopback"
	"github.com/wholelog/wholelog/internal/leak"
	"github.com/wholelog/wholelog/resolve"
)

func TestMain(m *testing.M) { leak.Main(m) }

// safeBuffer is an output that a test reads while it is written.
type safeBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// until polls for a condition that another goroutine brings about.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(time.Minute); !ok(); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// receiving runs the receivers of one scheme and returns their addresses, and a function that waits until they have heard so many
// messages, interrupts them and returns what they printed.
func receiving(t *testing.T, scheme string, n int, more ...string) (addrs []string, stop func(messages int) string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	urls := make([]string, n)
	for i := range urls {
		urls[i] = scheme + "://127.0.0.1:0"
	}
	var out, progress safeBuffer
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, append([]string{"-receive", strings.Join(urls, ",")}, more...), &out, &progress)
	}()
	at := regexp.MustCompile(`receiving at \S+://(\S+)\n`)
	until(t, "the receivers listen", func() bool {
		if len(done) > 0 {
			t.Fatal(<-done)
		}
		return len(at.FindAllString(progress.String(), -1)) == n
	})
	for _, m := range at.FindAllStringSubmatch(progress.String(), -1) {
		addrs = append(addrs, m[1])
	}
	return addrs, func(messages int) string {
		t.Helper()
		until(t, "the receivers heard all", func() bool { return strings.Contains(progress.String(), fmt.Sprintf("  %d messages", messages)) })
		cancel()
		if err := <-done; err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
		return out.String()
	}
}

// table returns the second column of the rows whose first is one of names.
func table(t *testing.T, text string, names []string) []int {
	t.Helper()
	counts := make([]int, len(names))
	for i, name := range names {
		m := regexp.MustCompile(`(?m)^  ` + regexp.QuoteMeta(name) + ` +(\d+)`).FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("no row of %s in\n%s", name, text)
		}
		counts[i], _ = strconv.Atoi(m[1])
	}
	return counts
}

// number finds what stands behind a word at the beginning of a line.
func number(t *testing.T, text, word string) int {
	t.Helper()
	return table(t, text, []string{word})[0]
}

// One sender and three receivers: both tables say the same, and nothing is missing.
func TestTablesAgree(t *testing.T) {
	const messages = 900
	roots, cert, key := certificate(t)
	for _, scheme := range schemes() {
		t.Run(scheme, func(t *testing.T) {
			var ours []string
			if protocols()[scheme].secure {
				ours = []string{"-cert", cert, "-key", key}
			}
			addrs, stop := receiving(t, scheme, 3, ours...)
			var out, progress safeBuffer
			file := filepath.Join(t.TempDir(), "sent.svg")
			err := run(t.Context(), []string{
				"-target", scheme + "://" + addrs[0], "-addr", strings.Join(addrs, ","), "-count", fmt.Sprint(messages), "-rate", "3000",
				"-loggers", "3", "-size", "120", "-wait", "1m", "-chart", file, "-ca", trusted(scheme, roots),
			}, &out, &progress)
			if err != nil {
				t.Fatalf("%v\n%s", err, out.String())
			}
			sent := out.String()
			received := stop(messages)
			if number(t, sent, "sent") != messages || number(t, sent, "delivered") != messages || number(t, sent, "dropped") != 0 || number(t, sent, "pending") != 0 {
				t.Errorf("sender:\n%s", sent)
			}
			there := make([]string, len(addrs))
			for i, a := range addrs {
				there[i] = scheme + "://" + a
			}
			sentTo, theirs := table(t, sent, addrs), table(t, received, there) // TestR45_Thirds is about the shares
			for i := range addrs {
				if sentTo[i] != theirs[i] {
					t.Errorf("%s: %d sent, %d received, of %d", addrs[i], sentTo[i], theirs[i], messages)
				}
			}
			if !strings.Contains(received, "numbers 1 to 900, none is missing\n") || strings.Contains(received, "besides") {
				t.Errorf("receivers:\n%s", received)
			}
			id := regexp.MustCompile(`load test [0-9a-f]{8}`)
			if a, b := id.FindString(sent), id.FindString(received); a == "" || a != b {
				t.Errorf("tests %q and %q", a, b)
			}
			svg, err := os.ReadFile(file)
			if err != nil || !bytes.Contains(svg, fmt.Appendf(nil, ">%s  %d</text>", addrs[0], sentTo[0])) {
				t.Errorf("chart: %v\n%s", err, svg)
			}
		})
	}
}

// On connections that live long, each of three receivers gets a third of what one handler sends, to the message.
func TestR45_Thirds(t *testing.T) {
	const messages = 3134
	for _, scheme := range []string{"syslog+tcp", "syslog+udp", "gelf+tcp"} {
		t.Run(scheme, func(t *testing.T) {
			addrs, _ := receiving(t, scheme, 3)
			p, target, err := find(scheme + "://" + addrs[0])
			if err != nil {
				t.Fatal(err)
			}
			h, err := p.open(target, options{resolve: resolve.Options{Resolver: resolve.Static(addrs...)}})
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			deliver := func(n int) map[string]uint64 {
				log(t.Context(), h, 1, settings{count: n, rate: 5000, loggers: 1})
				if err := h.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
				return delivered(h.Stats())
			}
			// A connection that takes long to open costs its address some of its share.
			var before map[string]uint64
			until(t, "all connections are open", func() bool {
				before = deliver(1)
				return len(before) == 3 && !slices.Contains(slices.Collect(maps.Values(before)), 0)
			})
			for addr, n := range deliver(messages) {
				if off := int(n-before[addr]) - messages/3; off < -2 || off > 2 {
					t.Errorf("%s has %d of %d: %+v", addr, n-before[addr], messages, h.Stats())
				}
			}
		})
	}
}

// trusted is what -ca is for a scheme: there is no option for certificates where none is shown.
func trusted(scheme, roots string) string {
	if protocols()[scheme].secure {
		return roots
	}
	return ""
}

// certificate writes one for 127.0.0.1 and its key, and what to trust for it to be good.
func certificate(t *testing.T) (roots, cert, key string) {
	t.Helper()
	a := authority.New(t)
	return a.Files(a.Issue(time.Hour, "127.0.0.1"))
}

// A certificate of an unknown authority is refused: the trouble is told while it happens, nothing is delivered, and the table says
// that it was TLS.
func TestStrangeCertificate(t *testing.T) {
	_, cert, key := certificate(t)
	other, _, _ := certificate(t)
	for _, scheme := range []string{"gelf+tls", "gelf+https", "syslog+tls"} {
		t.Run(scheme, func(t *testing.T) {
			addrs, _ := receiving(t, scheme, 1, "-cert", cert, "-key", key)
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			var out, progress safeBuffer
			done := make(chan error, 1)
			go func() {
				done <- run(ctx, []string{"-target", scheme + "://" + addrs[0], "-ca", other, "-rate", "50", "-for", "1h", "-wait", "50ms"}, &out, &progress)
			}()
			until(t, "the trouble is told", func() bool { return strings.Contains(progress.String(), "certificate") })
			interrupt()
			if err := <-done; !errors.Is(err, errLost) {
				t.Errorf("%v", err)
			}
			s := out.String()
			if number(t, s, "delivered") != 0 || number(t, s, "sent") != number(t, s, "pending") || !strings.Contains(s, "  tls ") {
				t.Errorf("\n%s", s)
			}
		})
	}
}

// A destination that refuses costs the exit code, and the table says where the messages are.
func TestWhatIsNotDelivered(t *testing.T) {
	addr, err := loopback.Addr()
	if err != nil {
		t.Fatal(err)
	}
	var out safeBuffer
	err = run(t.Context(), []string{"-target", "gelf+http://" + addr, "-count", "5", "-wait", "50ms"}, &out, io.Discard)
	if !errors.Is(err, errLost) || !strings.Contains(err.Error(), "0 dropped, 5 still pending") {
		t.Errorf("%v", err)
	}
	if s := out.String(); number(t, s, "sent") != 5 || number(t, s, "delivered") != 0 || number(t, s, "pending") != 5 || !strings.Contains(s, "refused ") {
		t.Errorf("\n%s", s)
	}
	if exitCode(err, io.Discard) != 1 {
		t.Error("exit code")
	}
}

// User-info is used and never shown: not in the tables, not meanwhile, not in the chart.
func TestUserInfoIsHidden(t *testing.T) {
	addrs, _ := receiving(t, "gelf+http", 1)
	var out, progress safeBuffer
	file := filepath.Join(t.TempDir(), "sent.svg")
	target := "gelf+http://who:hush@" + addrs[0] + "/gelf"
	if err := run(t.Context(), []string{"-target", target, "-count", "1", "-wait", "1m", "-chart", file}, &out, &progress); err != nil {
		t.Fatal(err)
	}
	svg, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string]string{"table": out.String(), "progress": progress.String(), "chart": string(svg)} {
		if strings.Contains(text, "who") || strings.Contains(text, "hush") || !strings.Contains(text, "gelf+http://"+addrs[0]+"/gelf") {
			t.Errorf("%s:\n%s", what, text)
		}
	}
}

// An interrupt ends the test early; the tables are printed all the same.
func TestInterrupt(t *testing.T) {
	addrs, stop := receiving(t, "gelf+http", 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out, progress safeBuffer
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, []string{"-target", "gelf+http://" + addrs[0], "-rate", "200", "-for", "1h", "-wait", "1m"}, &out, &progress)
	}()
	until(t, "a progress line", func() bool { return strings.Contains(progress.String(), " delivered, ") })
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	n := number(t, out.String(), "sent")
	if received := stop(n); n == 0 || number(t, received, "all") != n {
		t.Errorf("\n%s\n%s", out.String(), received)
	}
}

// Receivers end by themselves when it is quiet.
func TestQuiet(t *testing.T) {
	var progress safeBuffer
	var out bytes.Buffer
	done := make(chan error, 1)
	go func() {
		done <- run(t.Context(), []string{"-receive", "gelf+http://127.0.0.1:0", "-quiet", "300ms"}, &out, &progress)
	}()
	at := regexp.MustCompile(`receiving at (\S+)\n`)
	until(t, "the receiver listens", func() bool { return at.MatchString(progress.String()) })
	if err := run(t.Context(), []string{"-target", at.FindStringSubmatch(progress.String())[1], "-count", "1"}, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil || !strings.Contains(out.String(), "numbers 1 to 1, none is missing") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

func TestCommandLine(t *testing.T) {
	for _, tc := range []struct {
		args string
		code int
		want string // in what goes to standard error
	}{
		{"-h", 0, ""},
		{"", 2, "want either -target or -receive\nUsage of loadtest:\n"},
		{"-target gelf+udp://x:1 -receive gelf+udp://x:1", 2, "want either -target or -receive"},
		{"-target gelf+udp://x:1 more", 2, `"more" is not a flag`},
		{"-bogus", 2, "flag provided but not defined: -bogus"},
		{"-target gelf+udp://x:1 -rate 0", 2, "-rate 0 is outside"},
		{"-target gelf+udp://x:1 -rate NaN", 2, "-rate NaN is outside"},
		{"-target gelf+udp://x:1 -count -1", 2, "are not negative"},
		{"-target gelf+udp://x:1 -loggers 0", 2, "-loggers 0 is outside"},
		{"-target gelf+udp://x:1 -size 99999999", 2, "-size 99999999 is more than"},
		{"-target smoke://x:1", 1, "-target: want SCHEME://host:port, SCHEME one of gelf+http, gelf+https,"},
		{"-target gelf+udp://x", 1, "gelf: target: no port"},
		{"-target gelf+udp://x:1 -ca /nonexistent", 1, "-ca: open /nonexistent"},
		{"-target gelf+udp://x:1 -addr a:b", 1, "gelf: option Resolve.Resolver: "},
		{"-receive smoke://x:1", 1, "-receive: want SCHEME://host:port"},
		{"-receive gelf+https://127.0.0.1:0", 1, "-receive: receiving over TLS needs -cert and -key"},
		{"-receive gelf+udp://127.0.0.1:99999", 1, "-receive: "},
	} {
		var errs bytes.Buffer
		code := exitCode(run(t.Context(), strings.Fields(tc.args), io.Discard, io.Discard), &errs)
		if code != tc.code || !strings.Contains(errs.String(), tc.want) || code == 0 && errs.Len() > 0 {
			t.Errorf("%s: exit code %d, %q", tc.args, code, errs.String())
		}
	}
}
