package main

import (
	"strings"
	"testing"
)

func TestRender(t *testing.T) {
	rows := []row{
		{size: 5, sent: 6, whole: [nodes]int{2, 2, 2}, datagrams: [nodes]int{2, 2, 2}},
		{size: 50_000, sent: 6, datagrams: [nodes]int{28, 26, 24}},
		{size: 2_000_000, sent: 1, cut: [nodes]int{0, 1, 0}, datagrams: [nodes]int{0, 126, 0}, note: "does not fit UDP: truncated, marked"},
	}
	var out strings.Builder
	render(&out, "One way", rows)
	want := `One way

  characters  chunks   sent  whole  lost   arrived on node 1/2/3
           5       1      6      6     0     2   2   2   ██████████
      50 000      13      6      0     6     -   -   -   ░░░░░░░░░░
   2 000 000     126      1  1 cut     0     -   1   -   ▒▒▒▒▒▒▒▒▒▒  does not fit UDP: truncated, marked
         all             13    6+1     6     2   3   2

  datagrams of the messages that fit UDP:
  node 1 received   30  ██████████████████████████████
  node 2 received   28  ████████████████████████████
  node 3 received   26  ██████████████████████████

`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestBar(t *testing.T) {
	for _, tc := range []struct {
		share float64
		want  string
	}{
		{0, "░░░░░░░░░░"},
		{0.001, "█░░░░░░░░░"},
		{0.5, "█████░░░░░"},
		{0.999, "█████████░"},
		{1, "██████████"},
	} {
		if got := bar(tc.share); got != tc.want {
			t.Errorf("bar(%v) = %s, want %s", tc.share, got, tc.want)
		}
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[int]string{0: "0", 50: "50", 500: "500", 5_000: "5 000", 50_000: "50 000", 300_000: "300 000", 2_000_000: "2 000 000"} {
		if got := thousands(n); got != want {
			t.Errorf("thousands(%d) = %q, want %q", n, got, want)
		}
	}
}

// The lines shown are the lines run; here they must be the right ones.
func TestRenderCode(t *testing.T) {
	var out strings.Builder
	if err := renderCode(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\n    for datagram := range datagrams {\n        addrs, err := c.lookup(ctx)",
		"\n    h, err := gelf.NewHandler(",
		"\n    defer h.Close()\n",
		"\n    log := slog.New(h)\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the code shown lacks %q:\n%s", want, out.String())
		}
	}
	if _, err := excerpt("no such file"); err == nil {
		t.Error("an excerpt of nothing")
	}
}
