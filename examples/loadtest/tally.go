package main

import (
	"fmt"
	"io"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"sync"
)

// tally counts what several receivers hear, test by test.
type tally struct {
	mu    sync.Mutex
	names []string // of the receivers
	tests []*test  // in the order in which they were first heard
	other []uint64 // messages of no test, by receiver
	total uint64
}

// test is what was heard of one run of a sender.
type test struct {
	id     string
	heard  []uint64          // by receiver
	twice  []uint64          // of these, numbers that were heard before, anywhere
	seen   map[uint64]uint64 // number/64 → a bit for each of 64 numbers
	unique uint64
	last   uint64 // the highest number
}

// hear counts a message at receiver i.
func (t *tally) hear(i int, text string) {
	id, n, ok := parseText(text)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.total++
	if !ok {
		t.other[i]++
		return
	}
	t.find(id).hear(i, n)
}

// find returns the test of this id, a new one if it was not heard of. Senders are few: a list does.
func (t *tally) find(id string) *test {
	for _, x := range t.tests {
		if x.id == id {
			return x
		}
	}
	x := &test{id: id, heard: make([]uint64, len(t.names)), twice: make([]uint64, len(t.names)), seen: make(map[uint64]uint64)}
	t.tests = append(t.tests, x)
	return x
}

func (x *test) hear(i int, n uint64) {
	x.heard[i]++
	x.last = max(x.last, n)
	word, bit := n/64, uint64(1)<<(n%64)
	if x.seen[word]&bit != 0 {
		x.twice[i]++
		return
	}
	x.seen[word] |= bit
	x.unique++
}

// missing is how many numbers up to the last were not heard.
func (x *test) missing() uint64 { return x.last - x.unique }

// gaps tells the first few runs of missing numbers.
func (x *test) gaps() string {
	const most = 5
	var runs []string
	before := uint64(0) // the number heard before n; numbers begin with 1
	for _, word := range slices.Sorted(maps.Keys(x.seen)) {
		for rest := x.seen[word]; rest != 0; rest &= rest - 1 {
			n := word*64 + uint64(bits.TrailingZeros64(rest))
			switch n - before {
			case 0, 1: // 0 is no number a sender gives
			case 2:
				runs = append(runs, fmt.Sprint(before+1))
			default:
				runs = append(runs, fmt.Sprintf("%d–%d", before+1, n-1))
			}
			if before = n; len(runs) > most {
				return strings.Join(runs[:most], ", ") + " …"
			}
		}
	}
	return strings.Join(runs, ", ")
}

// parseText reads what text wrote. The id comes back as the sender prints it.
func parseText(s string) (id string, n uint64, ok bool) {
	rest, ok := strings.CutPrefix(s, marker+" ")
	if !ok {
		return "", 0, false
	}
	id, rest, _ = strings.Cut(rest, " ")
	number, _, _ := strings.Cut(rest, " ")
	if len(id) != 8 || strings.Trim(id, "0123456789abcdef") != "" || len(number) == 0 || len(number) > 12 || number[0] == '0' {
		return "", 0, false
	}
	for _, c := range []byte(number) {
		if c < '0' || c > '9' {
			return "", 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return id, n, true
}

// counts is what every receiver heard, of all tests.
func (t *tally) counts() (counts map[string]uint64, total uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	counts = make(map[string]uint64, len(t.names))
	for i, name := range t.names {
		for _, x := range t.tests {
			counts[name] += x.heard[i]
		}
	}
	return counts, t.total
}

// write prints a table for every test, and says whether any number is missing.
func (t *tally) write(out io.Writer, refused uint64) (missing uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.tests) == 0 {
		fmt.Fprintln(out, "no message of a load test came")
	}
	for i, x := range t.tests {
		if i > 0 {
			fmt.Fprintln(out)
		}
		x.write(out, t.names)
		missing += x.missing()
	}
	var other uint64
	for _, n := range t.other {
		other += n
	}
	if other+refused > 0 {
		fmt.Fprintf(out, "\nbesides, %d other messages, and %d that were refused\n", other, refused)
	}
	return missing
}

func (x *test) write(out io.Writer, names []string) {
	var heard, twice uint64
	for i := range names {
		heard += x.heard[i]
		twice += x.twice[i]
	}
	fmt.Fprintf(out, "load test %s\n\n  %-28s %9s %9s  %6s\n", x.id, "receiver", "messages", "twice", "share")
	for i, name := range names {
		fmt.Fprintf(out, "  %-28s %9d %9d  %6s\n", name, x.heard[i], x.twice[i], share(x.heard[i], heard))
	}
	fmt.Fprintf(out, "  %-28s %9d %9d\n\n  numbers 1 to %d, ", "all", heard, twice, x.last)
	if x.missing() == 0 {
		fmt.Fprintln(out, "none is missing")
		return
	}
	fmt.Fprintf(out, "%d missing: %s\n", x.missing(), x.gaps())
}
