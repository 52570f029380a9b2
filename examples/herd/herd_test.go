package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Every way reaches the server as often as it should, and no more than so many at once. The peaks of what a stable hash decides are
// exact: were they to move, every schedule out there would. The bounds of what is random are far from what is seen.
func TestPeaks(t *testing.T) {
	for i, want := range []struct {
		name        string
		events      int // least and, but for what falls behind the span, all
		least, most int
	}{
		{"at :00, :10, :20 …", 6 * hosts, 1000, 1000},
		{"after Sleep(ctx, 10 s)", 6 * hosts, 10, 45},
		{"at Next(now, 10 s, Phase(host))", 6 * hosts, 17, 17},
		{"0 * * * *", hosts, 1000, 1000},
		{"MinuteOfHour(host) * * * *", hosts, 26, 26},
		{"and Sleep(ctx, 30 s) in the job", hosts, 1, 8},
		{"time.NewTicker(10 s)", 5 * hosts, 100, 100},
		{"a timer of Duration(10 s, 0.1)", 5 * hosts, 30, 95},
		{"jitter.NewTicker(10 s, host)", 5 * hosts, 17, 17},
		{"Backoff, no noise", hosts, 1000, 1000},
		{"Backoff, half of it noise", hosts, 10, 60},
		{"Backoff, all of it noise", hosts, 10, 60},
	} {
		r := play(scenes())[i]
		t.Run(want.name, func(t *testing.T) {
			if r.way.name != want.name {
				t.Fatalf("it is %q", r.way.name)
			}
			if n := r.peak(); n < want.least || n > want.most {
				t.Errorf("peak %d, want %d to %d", n, want.least, want.most)
			}
			sum := 0
			for _, n := range r.count {
				sum += n
			}
			// A random age may put a seventh report into the minute, and a long backoff an attempt behind it.
			if sum < want.events*9/10 || sum > want.events*12/10 {
				t.Errorf("%d requests, want about %d", sum, want.events)
			}
		})
	}
}

// 1000 hosts that turn to a server every 10 s: with a phase at most 25 of them do so within 100 ms, by the clock all of them do.
func TestPhaseSpreads(t *testing.T) {
	results := play(scenes())
	if aligned, phased := results[0].peak(), results[2].peak(); aligned != hosts || phased > 25 {
		t.Errorf("aligned %d, phased %d", aligned, phased)
	}
}

// What happens in the last bin counts, what happens behind it does not.
func TestPlayCountsTheSpan(t *testing.T) {
	s := scene{"", time.Second, []way{{"", func(h int) []time.Duration {
		if h > 1 {
			return nil
		}
		return []time.Duration{0, bin - 1, bin, time.Second - 1, time.Second, time.Hour}
	}}}}
	got := play([]scene{s})[0].count
	want := []int{4, 2, 0, 0, 0, 0, 0, 0, 0, 2}
	if len(got) != len(want) {
		t.Fatalf("%v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("%v, want %v", got, want)
		}
	}
}

func TestBars(t *testing.T) {
	first := scene{title: "One"}
	got := string(bars([]result{
		{first, way{name: "all at once"}, []int{0, 1000, 2}},
		{first, way{name: "with an …"}, []int{24, 12}},
		{scene{title: "Two"}, way{name: "a quarter"}, []int{250}},
	}))
	want := "1000 hosts; the most requests that reach the server within 100 ms\n" +
		"\nOne\n" +
		"  all at once                       1000  ████████████████████████████████████████\n" +
		"  with an …                           24  ▏\n" +
		"\nTwo\n" +
		"  a quarter                          250  ██████████\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// The picture is well-formed, has a panel for every way, and its columns are as high as the counts say.
func TestPicture(t *testing.T) {
	s := scene{title: "Less < more & so on", span: time.Second}
	svg := picture([]result{
		{s, way{name: "one"}, []int{0, 10, 0, 0, 0, 0, 0, 0, 0, 5}},
		{s, way{name: "two"}, []int{1, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
		{scene{title: "Hour", span: time.Hour}, way{name: "three"}, make([]int, 36000)},
	})
	var texts, columns []string
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			for _, a := range e.Attr {
				if a.Name.Local == "d" && strings.Contains(a.Value, ".") || a.Name.Local == "d" && a.Value == "" {
					columns = append(columns, a.Value)
				}
			}
		case xml.CharData:
			if s := strings.TrimSpace(string(e)); s != "" && !strings.Contains(s, "{") {
				texts = append(texts, s)
			}
		}
	}
	want := []string{
		"Requests per 100 ms of 1000 hosts, with and without jitter",
		"Less < more & so on", "one", "at most 10 in 100 ms", "two", "at most 1 in 100 ms",
		"0 s", "0.166666666 s", "0.333333333 s", "0.5 s", "0.666666666 s", "0.833333333 s", "1 s",
		"Hour", "three", "at most 0 in 100 ms", "0 s", "10 min", "20 min", "30 min", "40 min", "50 min", "60 min",
	}
	if strings.Join(texts, "|") != strings.Join(want, "|") {
		t.Errorf("texts %q", texts)
	}
	if want := "M382.00 122v-54.00M958.00 122v-27.00|M310.00 194v-5.40|"; strings.Join(columns, "|") != want {
		t.Errorf("columns %q, want %q", strings.Join(columns, "|"), want)
	}
}

// The command prints all ways and, when asked, draws them.
func TestRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "herd.svg")
	var out bytes.Buffer
	if err := run([]string{"-svg", file}, &out); err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?m)^  \S.{31} +\d+  [█▏]+$`).FindAllString(out.String(), -1)
	if len(lines) != 12 || !strings.Contains(out.String(), "  at Next(now, 10 s, Phase(host))     17  ▏\n") {
		t.Errorf("%d lines in\n%s", len(lines), out.String())
	}
	svg, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(svg, []byte(`class="bars"`)); n != 12 {
		t.Errorf("%d panels", n)
	}
}

func TestCommandLine(t *testing.T) {
	for _, tc := range []struct {
		args []string
		code int
		want string // the beginning of what goes to standard error
	}{
		{nil, 0, ""},
		{[]string{"-h"}, 0, ""},
		{[]string{"-bogus"}, 2, "herd: flag provided but not defined: -bogus\nUsage of herd:\n"},
		{[]string{"x"}, 2, "herd: \"x\" is not a flag\nUsage of herd:\n"},
		{[]string{"-svg", filepath.Join(t.TempDir(), "none", "x.svg")}, 1, "herd: open "},
	} {
		var errs bytes.Buffer
		if code := exitCode(run(tc.args, io.Discard), &errs); code != tc.code || !strings.HasPrefix(errs.String(), tc.want) || tc.want == "" && errs.Len() > 0 {
			t.Errorf("%v: exit code %d, %q", tc.args, code, errs.String())
		}
	}
}
