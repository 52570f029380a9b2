package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// row is what became of the messages of one size. All numbers but sent are the nodes' own counts.
type row struct {
	size      int
	sent      int
	whole     [nodes]int // arrived, and equal to what was logged
	cut       [nodes]int // arrived shortened, with a mark that says so
	datagrams [nodes]int
	note      string
}

func (r row) lost() int { return r.sent - sum(r.whole) - sum(r.cut) }

// tooLong says that no way of splitting would bring the messages of this row over UDP.
func (r row) tooLong() bool { return r.size > longestUDP }

// chunked says that the messages of this row, which all need about the same, took two datagrams or more.
func (r row) chunked() bool { return r.tooLong() || sum(r.datagrams) >= 2*r.sent }

// render prints one way's table: what was sent, what arrived and where, and how the datagrams spread over the nodes.
func render(out io.Writer, title string, rows []row) {
	fmt.Fprintf(out, "%s\n\n", title)
	fmt.Fprintf(out, "  characters  chunks   sent  whole  lost   arrived on node 1/2/3\n")
	total := total(rows)
	for _, r := range rows {
		fmt.Fprintf(out, "  %10s  %6s  %5d  %5s  %4d   %s   %s\n", thousands(r.size), chunks(r), r.sent, arrived(r), r.lost(), places(r), outcome(r))
	}
	fmt.Fprintf(out, "  %10s  %6s  %5d  %5s  %4d   %s\n\n", "all", "", total.sent, arrived(total), total.lost(), places(total))
	// That the datagrams spread evenly in both ways is the point: the network loses nothing here.
	fmt.Fprintf(out, "  datagrams of the messages that fit UDP:\n")
	for i, n := range total.datagrams {
		fmt.Fprintf(out, "  node %d received %4d  %s\n", i+1, n, strings.Repeat("█", scale(n, total.datagrams)))
	}
	fmt.Fprintln(out)
}

// total adds rows up. The giant's datagrams stay out: they are as many as those of all others together, and all on one node.
func total(rows []row) (t row) {
	for _, r := range rows {
		t.sent += r.sent
		for i := range nodes {
			t.whole[i] += r.whole[i]
			t.cut[i] += r.cut[i]
			if !r.tooLong() {
				t.datagrams[i] += r.datagrams[i]
			}
		}
	}
	return t
}

// chunks is the number of datagrams of one message of the row, as the nodes saw them: a rounded mean, because texts of one size do
// not compress to quite the same. A message that could not be split sent none.
func chunks(r row) string {
	if sum(r.datagrams) == 0 {
		return "-"
	}
	return thousands(int(math.Round(float64(sum(r.datagrams)) / float64(r.sent))))
}

// arrived is the count of a row, which says "cut" where not all of the text is there.
func arrived(r row) string {
	switch whole, cut := sum(r.whole), sum(r.cut); {
	case cut == 0:
		return strconv.Itoa(whole)
	case whole == 0:
		return fmt.Sprintf("%d cut", cut)
	default:
		return fmt.Sprintf("%d+%d", whole, cut)
	}
}

// places is the number of messages that arrived at each node.
func places(r row) string {
	var b strings.Builder
	for i := range nodes {
		n := "-"
		if here := r.whole[i] + r.cut[i]; here > 0 {
			n = strconv.Itoa(here)
		}
		fmt.Fprintf(&b, " %3s", n)
	}
	return b.String()[1:]
}

// outcome is the picture at the end of a line: full blocks for what arrived whole, half ones for what arrived cut.
func outcome(r row) string {
	picture := bar(share(sum(r.whole), r.sent))
	if sum(r.cut) > 0 {
		picture = strings.ReplaceAll(bar(share(sum(r.cut), r.sent)), "█", "▒")
	}
	return strings.TrimRight(picture+"  "+r.note, " ")
}

const barWidth = 10

// bar draws a share from 0 to 1. Anything above 0 shows, and nothing below 1 looks full.
func bar(share float64) string {
	n := int(math.Round(share * barWidth))
	if share > 0 {
		n = max(n, 1)
	}
	if share < 1 {
		n = min(n, barWidth-1)
	}
	return strings.Repeat("█", n) + strings.Repeat("░", barWidth-n)
}

// scale is the length of a bar beside the longest of its group. These compare with each other and not with a whole, so that small
// differences show.
func scale(n int, group [nodes]int) int {
	return n * 3 * barWidth / max(1, group[0], group[1], group[2])
}

func share(n, of int) float64 { return float64(n) / float64(max(1, of)) }

func sum(counts [nodes]int) (total int) {
	for _, n := range counts {
		total += n
	}
	return total
}

// thousands groups digits, since 300000 and 2000000 are easily mistaken for their neighbours: it writes 300000 as "300 000".
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return s
}
