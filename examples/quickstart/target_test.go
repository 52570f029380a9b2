package main

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/fake/gelfd"
)

// A server that can be asked shows what a person is told to search for on a real one.
func TestTarget(t *testing.T) {
	node, err := gelfd.Listen("", gelfd.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	var out strings.Builder
	if err := run(t.Context(), []string{"-target", "udp://" + node.Addr().String()}, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if !strings.HasPrefix(out.String(), "accepted 34, delivered 34, dropped 0, pending 0, truncated 1, ") {
		t.Errorf("starts otherwise:\n%s", out.String())
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := node.Wait(ctx, 34); err != nil {
		t.Fatal(err)
	}
	found := map[int64]int{}
	for _, m := range node.Messages() {
		size, _ := m.Fields["size"].(int64)
		found[size]++
		run, _ := m.Fields["quickstart_run"].(string)
		if !strings.Contains(out.String(), "quickstart_run:"+run+" ") {
			t.Errorf("the run %q of a message is not the one to search for", run)
		}
	}
	for _, b := range load() {
		if found[int64(b.size)] != b.count {
			t.Errorf("%d characters: %d messages, want %d", b.size, found[int64(b.size)], b.count)
		}
	}
}

// Nobody listens and no name resolves: the messages are still pending when the time is over, and the exit code says so.
func TestTargetThatCannotBeFound(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	var out strings.Builder
	err := run(ctx, []string{"-target", "udp://quickstart.invalid:12201"}, &out)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(out.String(), "delivered 0, dropped 0, pending 34") {
		t.Errorf("%v\n%s", err, out.String())
	}
	if strings.Contains(out.String(), "search the server") {
		t.Errorf("a search for what never left:\n%s", out.String())
	}
}

func TestRenderRefusals(t *testing.T) {
	refused := delivery.EndpointStats{Errors: map[delivery.Cause]uint64{delivery.CauseRefused: 2}}
	for name, tc := range map[string]struct {
		stats   delivery.Stats
		text    string
		arrived bool
	}{
		"all well":       {delivery.Stats{Delivered: 34, Endpoints: make([]delivery.EndpointStats, 2)}, "", true},
		"nothing left":   {delivery.Stats{Pending: 34}, "", false},
		"one refuses":    {delivery.Stats{Delivered: 34, Endpoints: []delivery.EndpointStats{{}, refused}}, "1 of 2 addresses refused: ", true},
		"nobody listens": {delivery.Stats{Delivered: 22, Endpoints: []delivery.EndpointStats{refused}}, "1 of 1 addresses refused: ", false},
	} {
		var out strings.Builder
		arrived := renderRefusals(&out, tc.stats)
		if arrived != tc.arrived || !strings.Contains(out.String(), tc.text) || (tc.text == "") != (out.Len() == 0) {
			t.Errorf("%s: %v\n%s", name, arrived, out.String())
		}
	}
}

func TestRenderStats(t *testing.T) {
	var out strings.Builder
	renderStats(&out, delivery.Stats{
		Accepted: 34, Delivered: 31, Dropped: 3, Truncated: 1, Bytes: 1_234_567,
		Reasons: map[delivery.Reason]uint64{delivery.ReasonTooLarge: 1, delivery.ReasonClosed: 2},
		Endpoints: []delivery.EndpointStats{
			{Addr: netip.MustParseAddrPort("192.0.2.1:12201"), State: "up", Delivered: 31},
			{Addr: netip.MustParseAddrPort("[2001:db8::1]:12201"), State: "unknown", LastError: "connection refused"},
		},
	})
	want := `accepted 34, delivered 31, dropped 3, pending 0, truncated 1, 1 234 567 bytes on the wire
  dropped for closed: 2
  dropped for too_large: 1
  192.0.2.1:12201        up          31 messages
  [2001:db8::1]:12201    unknown      0 messages  connection refused
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestRenderSearch(t *testing.T) {
	var out strings.Builder
	renderSearch(&out, "RUN1")
	for _, want := range []string{
		"quickstart_run:RUN1",
		"\n  size:5                       6\n",
		"\n  size:300000                  3\n",
		"\n  size:2000000                 1  (over UDP it is cut",
		"\n  all                         34\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("lacks %q:\n%s", want, out.String())
		}
	}
}
