package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/gelf"
)

// runTarget sends the load to a real server and says what should be found there. Over UDP nothing comes back, so the server's own
// search is the only proof.
func runTarget(ctx context.Context, out io.Writer, target string) error {
	h, err := gelf.NewHandler(target, &gelf.Options{
		PacketRate: 1000,                                        // so gently that a message that is missing was not lost by a small receive buffer
		Delivery:   delivery.Options{CloseTimeout: time.Second}, // Flush has waited before
	})
	if err != nil {
		return err
	}
	defer h.Close()
	run := rand.Text() // tells this run's messages from those of the last one
	log := slog.New(h).With("quickstart_run", run)
	for _, b := range load() {
		for i := range b.count {
			log.InfoContext(ctx, message{b.size, i}.text(), "size", b.size, "number", i)
		}
	}
	// The counters are shown in any case: where not everything left, they say how much did.
	flushed := h.Flush(ctx)
	s := h.Stats()
	renderStats(out, s)
	if arrived := renderRefusals(out, s); arrived {
		renderSearch(out, run)
	}
	if flushed != nil {
		return fmt.Errorf("not everything left: %w", flushed)
	}
	if s.Dropped > 0 {
		return fmt.Errorf("%d of %d messages were dropped", s.Dropped, s.Accepted)
	}
	return nil
}

func renderStats(out io.Writer, s delivery.Stats) {
	fmt.Fprintf(out, "accepted %d, delivered %d, dropped %d, pending %d, truncated %d, %s bytes on the wire\n",
		s.Accepted, s.Delivered, s.Dropped, s.Pending, s.Truncated, thousands(int(s.Bytes)))
	for _, reason := range slices.Sorted(maps.Keys(s.Reasons)) {
		fmt.Fprintf(out, "  dropped for %s: %d\n", reason, s.Reasons[reason])
	}
	for _, e := range s.Endpoints {
		fmt.Fprintln(out, strings.TrimRight(fmt.Sprintf("  %-21s  %-8s  %4d messages  %s", e.Addr, e.State, e.Delivered, e.LastError), " "))
	}
}

// renderRefusals explains the addresses that refused, and says whether any message may have arrived at all.
func renderRefusals(out io.Writer, s delivery.Stats) bool {
	refused := 0
	for _, e := range s.Endpoints {
		if e.Errors[delivery.CauseRefused] > 0 {
			refused++
		}
	}
	if refused > 0 {
		fmt.Fprintf(out, "\n%d of %d addresses refused: the host is there, but nothing listens on this UDP port (ICMP port unreachable).\n", refused, len(s.Endpoints))
		fmt.Fprintln(out, "A refusal comes back after the datagrams have left, so messages before it count as delivered and are lost.")
	}
	return s.Delivered > 0 && refused < len(s.Endpoints)
}

// renderSearch says what a complete arrival looks like. "Delivered" over UDP means that the kernel took the datagrams.
func renderSearch(out io.Writer, run string) {
	fmt.Fprintf(out, "\nNow search the server for  quickstart_run:%s  and compare:\n\n", run)
	fmt.Fprintf(out, "  %-20s  %s\n", "search for", "messages")
	total := 0
	for _, b := range load() {
		note := ""
		if b.size > longestUDP {
			note = "  (over UDP it is cut: the field truncated holds the bytes left out)"
		}
		fmt.Fprintf(out, "  size:%-15d  %8d%s\n", b.size, b.count, note)
		total += b.count
	}
	fmt.Fprintf(out, "  %-20s  %8d\n\n", "all", total)
	fmt.Fprintln(out, "Sizes missing from 5000 up and the small ones complete: chunks are not let through, or spread over several nodes.")
	fmt.Fprintln(out, "Everything missing: wrong port, no UDP input there, or a firewall.")
}
