package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/wholelog/wholelog/delivery"
)

// report is what a sender tells at the end.
type report struct {
	target  string
	test    uint32
	loggers int
	sent    uint64
	took    time.Duration // of the logging
	stats   delivery.Stats
}

func (r report) write(out io.Writer) {
	s := r.stats
	fmt.Fprintf(out, "load test %08x to %s\n\n", r.test, r.target)
	line := func(what string, n uint64, more string) {
		fmt.Fprintln(out, strings.TrimRight(fmt.Sprintf("  %-12s %9d  %s", what, n, more), " "))
	}
	line("sent", r.sent, fmt.Sprintf("numbers 1 to %d, by %s, in %v: %.0f/s", r.sent, plural(r.loggers, "logger"), r.took.Round(time.Millisecond), average(r.sent, r.took)))
	line("delivered", s.Delivered, "")
	line("dropped", s.Dropped, reasons(s.Reasons))
	line("pending", s.Pending, "")
	line("resent", s.Resent, when(s.Resent, "each may have arrived twice"))
	line("truncated", s.Truncated, "")
	line("diverted", s.Diverted, "")
	line("reconnects", s.Reconnects, "")
	line("waits", s.Waits, when(s.Waits, fmt.Sprintf("log calls that waited for room, %v in all", s.WaitTime.Round(time.Microsecond))))
	if s.Accepted != s.Delivered+s.Dropped+s.Pending || s.Accepted != r.sent {
		fmt.Fprintf(out, "  the counters do not add up: %d accepted\n", s.Accepted)
	}
	fmt.Fprintf(out, "\n  %-28s %9s %9s  %6s  %-8s  %s\n", "address", "delivered", "resent", "share", "state", "troubles")
	for _, e := range s.Endpoints {
		row := fmt.Sprintf("  %-28s %9d %9d  %6s  %-8s  %s", addrName(e), e.Delivered, e.Resent, share(e.Delivered, s.Delivered), e.State, troubles(e.Errors))
		fmt.Fprintln(out, strings.TrimRight(row, " "))
	}
}

// when is a remark on something that happened.
func when(n uint64, remark string) string {
	if n == 0 {
		return ""
	}
	return remark
}

func average(n uint64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// share is a part of a whole, in percent.
func share(part, whole uint64) string {
	if whole == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(whole))
}

func reasons(counts map[delivery.Reason]uint64) string {
	var parts []string
	for _, r := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s %d", r, counts[r]))
	}
	return strings.Join(parts, ", ")
}

func troubles(counts map[delivery.Cause]uint64) string {
	var parts []string
	for _, c := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s %d", c, counts[c]))
	}
	return strings.Join(parts, ", ")
}

// names are the keys of counts, in order.
func names(counts map[string]uint64) []string { return slices.Sorted(maps.Keys(counts)) }
