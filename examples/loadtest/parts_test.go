package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/delivery"
)

func TestText(t *testing.T) {
	for _, tc := range []struct {
		size int
		want string
	}{
		{0, "loadtest 0000beef 7"},
		{20, "loadtest 0000beef 7"}, // a blank alone is no filling
		{24, "loadtest 0000beef 7 ...."},
	} {
		got := text(0xbeef, 7, tc.size)
		if got != tc.want {
			t.Errorf("size %d: %q, want %q", tc.size, got, tc.want)
		}
		if id, n, ok := parseText(got); id != "0000beef" || n != 7 || !ok {
			t.Errorf("%q is read as %q %d %v", got, id, n, ok)
		}
	}
	for _, s := range []string{
		"", "loadtest", "loadtest 0000beef", "loadtest 0000beef ", "loadtest 0000beef 0", "loadtest 0000beef 07", "loadtest 0000beef -7",
		"loadtest 0000beef 1234567890123", "loadtest beef 7", "loadtest 0000BEEF 7", "loadtest 0000beeg 7", "a loadtest 0000beef 7",
	} {
		if id, n, ok := parseText(s); ok {
			t.Errorf("%q is read as %q %d", s, id, n)
		}
	}
}

func FuzzParseText(f *testing.F) {
	f.Add("loadtest 0000beef 7 ....")
	f.Add("loadtest 0000beef 007")
	f.Fuzz(func(t *testing.T, s string) {
		id, n, ok := parseText(s)
		if ok && (n == 0 || len(id) != 8) || !ok && (n != 0 && id != "") {
			t.Errorf("%q: %q %d %v", s, id, n, ok)
		}
	})
}

func TestTally(t *testing.T) {
	x := tally{names: []string{"a", "b"}, other: make([]uint64, 2)}
	for _, n := range []uint64{1, 2, 4, 4, 63, 64, 65, 127, 128, 129, 200} {
		x.hear(0, text(1, n, 0))
	}
	x.hear(1, text(1, 4, 0))
	x.hear(1, text(2, 1, 0))
	x.hear(1, "something else")
	var out bytes.Buffer
	if missing := x.write(&out, 3); missing != 200-10 {
		t.Errorf("%d missing", missing)
	}
	want := `load test 00000001

  receiver                      messages     twice   share
  a                                   11         1  91.7 %
  b                                    1         1   8.3 %
  all                                 12         2

  numbers 1 to 200, 190 missing: 3, 5–62, 66–126, 130–199

load test 00000002

  receiver                      messages     twice   share
  a                                    0         0   0.0 %
  b                                    1         0  100.0 %
  all                                  1         0

  numbers 1 to 1, none is missing

besides, 1 other messages, and 3 that were refused
`
	if out.String() != want {
		t.Errorf("got\n%s", out.String())
	}
	if counts, total := x.counts(); total != 14 || counts["a"] != 11 || counts["b"] != 2 {
		t.Errorf("%v %d", counts, total)
	}
}

// However many gaps there are, a few are told, and a number out of this world takes no time.
func TestManyGaps(t *testing.T) {
	x := tally{names: []string{"a"}, other: make([]uint64, 1)}
	for n := uint64(2); n < 100; n += 2 {
		x.hear(0, text(1, n, 0))
	}
	x.hear(0, text(1, 999_999_999_999, 0))
	if got := x.tests[0].gaps(); got != "1, 3, 5, 7, 9 …" {
		t.Error(got)
	}
	y := tally{names: []string{"a"}, other: make([]uint64, 1)}
	y.hear(0, text(1, 999_999_999_999, 0))
	if got := y.tests[0].gaps(); got != "1–999999999998" || y.tests[0].missing() != 999_999_999_998 {
		t.Error(got)
	}
}

func TestNothingHeard(t *testing.T) {
	var out bytes.Buffer
	x := tally{names: []string{"a"}, other: make([]uint64, 1)}
	if x.write(&out, 0) != 0 || out.String() != "no message of a load test came\n" {
		t.Error(out.String())
	}
}

func TestReport(t *testing.T) {
	var out bytes.Buffer
	report{
		target: "gelf+udp://x:1", test: 0xbeef, loggers: 2, sent: 10, took: 2 * time.Second,
		stats: delivery.Stats{
			Accepted: 10, Delivered: 6, Dropped: 3, Pending: 1, Resent: 2, Reconnects: 1, Truncated: 4, Diverted: 5, Waits: 4, WaitTime: 1500 * time.Microsecond,
			Reasons: map[delivery.Reason]uint64{delivery.ReasonQueueFull: 2, delivery.ReasonClosed: 1},
			Endpoints: []delivery.EndpointStats{
				{Addr: netip.MustParseAddrPort("[::1]:7001"), State: "up", Delivered: 5, Resent: 2},
				{Addr: netip.MustParseAddrPort("192.0.2.1:7001"), State: "down", Errors: map[delivery.Cause]uint64{delivery.CauseRefused: 3, delivery.CauseTimeout: 1}},
				{State: "gone", Delivered: 1},
			},
		},
	}.write(&out)
	want := `load test 0000beef to gelf+udp://x:1

  sent                10  numbers 1 to 10, by 2 loggers, in 2s: 5/s
  delivered            6
  dropped              3  closed 1, queue_full 2
  pending              1
  resent               2  each may have arrived twice
  truncated            4
  diverted             5
  reconnects           1
  waits                4  log calls that waited for room, 1.5ms in all

  address                      delivered    resent   share  state     troubles
  [::1]:7001                           5         2  83.3 %  up
  192.0.2.1:7001                       0         0   0.0 %  down      refused 3, timeout 1
  earlier ones                         1         0  16.7 %  gone
`
	if out.String() != want {
		t.Errorf("got\n%s", out.String())
	}
	out.Reset()
	report{sent: 2, stats: delivery.Stats{Accepted: 3, Pending: 1}}.write(&out)
	if !strings.Contains(out.String(), "the counters do not add up: 3 accepted\n") || !strings.Contains(out.String(), "in 0s: 0/s") {
		t.Errorf("got\n%s", out.String())
	}
}

// The rate holds, also for loggers that were held up, who catch up a little and no more.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		p := pace{next: began, step: 2 * time.Millisecond}
		for range 1001 {
			if err := p.wait(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("1000 steps of 2 ms took %v", took)
		}
		time.Sleep(time.Minute) // held up
		began = time.Now()
		for range 500 {
			_ = p.wait(t.Context())
		}
		if took := time.Since(began); took < time.Second-behind-2*p.step || took > time.Second {
			t.Errorf("500 steps after a minute took %v", took)
		}
	})
}

func TestSeriesIsBounded(t *testing.T) {
	s := series{step: time.Second}
	for i := range 100_000 {
		s.add(time.Duration(i)*time.Second, map[string]uint64{"a": uint64(i)})
	}
	s.end(100_000*time.Second, map[string]uint64{"a": 100_000})
	if n := len(s.list); n > maxSamples+1 || n < maxSamples/2 || s.list[0].at != 0 || s.list[n-1].counts["a"] != 100_000 {
		t.Fatalf("%d samples", n)
	}
	for i, x := range s.list {
		if x.counts["a"] != uint64(x.at/time.Second) || i > 0 && x.at <= s.list[i-1].at {
			t.Fatalf("sample %d: %+v", i, x)
		}
	}
}

// A chart is well-formed, and its lines end at the totals.
func TestChart(t *testing.T) {
	svg := chart("A < B", []sample{
		{0, map[string]uint64{"a": 0}},
		{time.Second, map[string]uint64{"a": 50, "b & c": 25}},
		{2 * time.Second, map[string]uint64{"a": 100, "b & c": 75}},
	})
	var lines, texts []string
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
				if a.Name.Local == "points" {
					lines = append(lines, a.Value)
				}
			}
		case xml.CharData:
			texts = append(texts, string(e))
		}
	}
	want := []string{"70.0,350.0 390.0,200.0 710.0,50.0 ", "70.0,350.0 390.0,275.0 710.0,125.0 "}
	if len(lines) != 2 || lines[0] != want[0] || lines[1] != want[1] {
		t.Errorf("lines %q", lines)
	}
	all := strings.Join(texts, "|")
	for _, s := range []string{"A < B", "a  100", "b & c  75", "2 s", "messages"} {
		if !strings.Contains(all, s) {
			t.Errorf("no %q in %q", s, all)
		}
	}
	// Nothing was sampled: an empty chart, and no division by nothing.
	if svg := chart("", []sample{{}}); bytes.Contains(svg, []byte("NaN")) {
		t.Errorf("%s", svg)
	}
}
