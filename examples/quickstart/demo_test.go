package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/wholelog/wholelog/internal/fake/cluster"
	"github.com/wholelog/wholelog/internal/fake/gelfd"
)

// The demonstration itself: it fails when its outcome is not the one it claims. Here its text is checked as well.
func TestDemonstration(t *testing.T) {
	var out strings.Builder
	if err := runDemo(t.Context(), &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	lossy, whole, both := strings.Cut(out.String(), "WHOLELOG")
	if !both {
		t.Fatalf("one table is missing:\n%s", out.String())
	}
	for _, tc := range []struct{ part, want string }{
		{lossy, "         500       1      6      6     0     2   2   2   ██████████\n"},
		{lossy, "      50 000 "},
		{lossy, "     6      0     6     -   -   -   ░░░░░░░░░░\n"},
		{lossy, "     3      0     3     -   -   -   ░░░░░░░░░░\n"},
		{lossy, "   2 000 000       -      1      0     1     -   -   -   ░░░░░░░░░░  does not fit UDP\n"},
		{whole, "     6      6     0     2   2   2   ██████████\n"},
		{whole, "     3      3     0     1   1   1   ██████████\n"},
		{whole, "▒▒▒▒▒▒▒▒▒▒  does not fit UDP: truncated, marked\n"},
		{whole, "gelf.NewHandler("},
	} {
		if !strings.Contains(tc.part, tc.want) {
			t.Errorf("lacks %q:\n%s", tc.want, out.String())
		}
	}
}

// The way for systems where 127.0.0.2 does not exist shows the same.
func TestDemonstrationByPort(t *testing.T) {
	c, err := cluster.StartByPort(nodes, gelfd.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	b := &bed{c, c.Lookup}
	lossy, err := runPerChunk(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := runWhole(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	if err := verdict(lossy, whole); err != nil {
		t.Error(err)
	}
}

func TestVerdict(t *testing.T) {
	lossy := []row{
		{size: 50, sent: 3, whole: [nodes]int{1, 1, 1}, datagrams: [nodes]int{1, 1, 1}},
		{size: 5_000, sent: 3, datagrams: [nodes]int{2, 2, 2}},
		{size: 2_000_000, sent: 1},
	}
	whole := []row{
		{size: 50, sent: 3, whole: [nodes]int{1, 1, 1}, datagrams: [nodes]int{1, 1, 1}},
		{size: 5_000, sent: 3, whole: [nodes]int{1, 1, 1}, datagrams: [nodes]int{2, 2, 2}},
		{size: 2_000_000, sent: 1, cut: [nodes]int{1}, datagrams: [nodes]int{126}},
	}
	if err := verdict(lossy, whole); err != nil {
		t.Errorf("the outcome meant to be shown is refused: %v", err)
	}
	for name, tc := range map[string]struct {
		spoil func(lossy, whole []row)
		want  string
	}{
		"a chunked message survives": {func(l, _ []row) { l[1].whole[0] = 1 }, "per chunk, 5 000 characters: 2 of 3 messages lost, expected 3"},
		"a short one does not":       {func(l, _ []row) { l[0].whole[0] = 0 }, "per chunk, 50 characters: 1 of 3 messages lost, expected 0"},
		"wholelog loses one":         {func(_, w []row) { w[1].whole[2] = 0 }, "wholelog, 5 000 characters: 1 of 3 messages lost"},
		"wholelog cuts what fits":    {func(_, w []row) { w[1].whole[2], w[1].cut[2] = 0, 1 }, "wholelog, 5 000 characters: 1 of 3 messages cut"},
		"the giant arrives":          {func(_, w []row) { w[2].whole[0], w[2].cut[0] = 1, 0 }, "wholelog, 2 000 000 characters: 0 of 1 messages cut"},
	} {
		l, w := slices.Clone(lossy), slices.Clone(whole)
		tc.spoil(l, w)
		if err := verdict(l, w); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}
