package main

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/internal/fake/dnsd"
)

// firstsOf turns "abc" into three addresses.
func firstsOf(pattern string) (addrs []netip.Addr) {
	for _, c := range []byte(pattern) {
		addrs = append(addrs, netip.AddrFrom4([4]byte{192, 0, 2, c - 'a' + 1}))
	}
	return addrs
}

func TestRotation(t *testing.T) {
	for _, tc := range []struct{ pattern, want string }{
		{strings.Repeat("abc", 20), "strict rotation (100 %"},
		{strings.Repeat("acb", 20), "strict rotation (100 %"},
		{strings.Repeat("ab", 20), "strict rotation (100 %"},
		{strings.Repeat("abc", 20) + "b" + strings.Repeat("cab", 20), "strict rotation (99 %"},
		{strings.Repeat("a", 60), "fixed"},
		{strings.Repeat("a", 30) + strings.Repeat("b", 30), "seldom changes"},
		{"abbcaacbbacbcabcccabbbacabacbbca", "random"},
	} {
		if got := rotation(firstsOf(tc.pattern)); !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s: %q, want %q", tc.pattern, got, tc.want)
		}
	}
}

func TestTogether(t *testing.T) {
	for _, tc := range []struct {
		pattern string
		chunks  int
		want    float64
	}{
		{"abcabc", 2, 0},
		{"aaaaaa", 4, 1},
		{"aabbaa", 2, 0.6},
		{"aabbaa", 3, 0},
	} {
		if got := together(firstsOf(tc.pattern), tc.chunks); got != tc.want {
			t.Errorf("%s by %d: %v, want %v", tc.pattern, tc.chunks, got, tc.want)
		}
	}
}

func TestRenderProbe(t *testing.T) {
	var answers [][]netip.Addr
	for i := range 300 {
		turned := firstsOf("abc")
		answers = append(answers, append(turned[i%3:], turned[:i%3]...))
	}
	var out strings.Builder
	renderProbe(&out, "logs.test", time.Minute, answers)
	want := `logs.test: 300 look-ups, addresses in all: 3, answers of [3], TTL 1m0s

  address          first in
  192.0.2.1         33.3 %  ███░░░░░░░
  192.0.2.2         33.3 %  ███░░░░░░░
  192.0.2.3         33.3 %  ███░░░░░░░

  order: strict rotation (100 % of the steps go where the last one says)

  whole messages of a sender that looks up per chunk and takes the first address:
   2 chunks      0.0 %  ░░░░░░░░░░
   3 chunks      0.0 %  ░░░░░░░░░░
   4 chunks      0.0 %  ░░░░░░░░░░
   6 chunks      0.0 %  ░░░░░░░░░░

  A sender that chooses once per message is not touched by any of this.
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestRenderProbeOfOneAddress(t *testing.T) {
	var out strings.Builder
	renderProbe(&out, "localhost", 0, [][]netip.Addr{firstsOf("a"), firstsOf("a")})
	want := `localhost: 2 look-ups, addresses in all: 1, answers of [1], TTL unknown (not from DNS: a hosts file, or an address)

  one address: nothing rotates
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

// The whole way, against a server that turns its answers as load balancers' names do.
func TestRunProbe(t *testing.T) {
	server, err := dnsd.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	server.Set("logs.test", dnsd.Answer{Addrs: firstsOf("abc"), TTL: time.Minute})
	var out strings.Builder
	if err := runProbe(t.Context(), &out, "logs.test.:12201", server.Resolver()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"logs.test.: 300 look-ups, addresses in all: 3, answers of [3], TTL 1m0s\n",
		"  192.0.2.2         33.3 %  ███",
		"  order: strict rotation (100 %",
		"   2 chunks      0.0 %",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("lacks %q:\n%s", want, out.String())
		}
	}
	if err := runProbe(t.Context(), &out, "absent.test.", server.Resolver()); err == nil {
		t.Error("a name that does not exist can be probed")
	}
}

// The probe must not take a machine's look-ups away from the services on it.
func TestProbeIsSlowEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		answers, err := probe(t.Context(), 200, 5*time.Millisecond, func(context.Context) ([]netip.Addr, error) {
			return firstsOf("a"), nil
		})
		if took := time.Since(begun); err != nil || len(answers) != 200 || took != time.Second {
			t.Errorf("%d answers in %v, %v; want 200 in 1 s", len(answers), took, err)
		}

		gone := errors.New("no such host")
		if _, err := probe(t.Context(), 200, time.Millisecond, func(context.Context) ([]netip.Addr, error) { return nil, gone }); !errors.Is(err, gone) {
			t.Errorf("a failed look-up gives %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := probe(ctx, 200, time.Millisecond, func(context.Context) ([]netip.Addr, error) { return firstsOf("a"), nil }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a probe past its time gives %v", err)
		}
	})
}
