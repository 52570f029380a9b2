// Package leak fails a package's tests when they leave goroutines behind. It is for tests only:
//
//	func TestMain(m *testing.M) { leak.Main(m) }
//
// It looks at stacks and not at a number of goroutines, so that its report says who was started where, and it counts every
// goroutine that is not the test's own: one parked in net or net/http is a leak of ours although no line of ours is on its stack.
package leak

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// patience is how long goroutines that were told to end may take: far more than they need, because a passing run never waits
// for it and a loaded CI machine may be slow.
const patience = 30 * time.Second

// Main runs the tests of a package and exits with their result, or with 1 when they pass but goroutines are left over.
func Main(m *testing.M) {
	os.Exit(verdict(m.Run, patience, os.Stderr))
}

// verdict is Main without the exit. A failed run is not searched for leaks: t.Fatal skips the code that would have closed things,
// and the stacks would bury the failure that matters.
func verdict(run func() int, wait time.Duration, out io.Writer) int {
	if code := run(); code != 0 {
		return code
	}
	left := Find(wait)
	if len(left) == 0 {
		return 0
	}
	fmt.Fprintf(out, "leak: %d goroutines left %v after the tests\n\n%s\n", len(left), wait, strings.Join(left, "\n\n"))
	return 1
}

// Find returns the stacks of all goroutines besides the caller's and the test framework's, as soon as there are none, or what
// remains when wait is over. Inside a test it is meaningful only while no other test runs.
func Find(wait time.Duration) []string {
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		left := foreign(stacks())
		if len(left) == 0 {
			return nil
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			return left
		}
	}
}

// stacks returns the stacks of all goroutines, the calling one first.
func stacks() string {
	for buf := make([]byte, 64<<10); ; buf = make([]byte, 2*len(buf)) {
		if n := runtime.Stack(buf, true); n < len(buf) {
			return string(buf[:n])
		}
	}
}

// foreign picks the goroutines of a stack dump that are neither the first, which took it, nor the framework's.
func foreign(dump string) []string {
	var left []string
	for _, stack := range strings.Split(strings.TrimSpace(dump), "\n\n")[1:] {
		if !framework(stack) {
			left = append(left, stack)
		}
	}
	return left
}

// framework says whether a goroutine belongs to package testing. That is the one that runs main, the one of each test (their
// starter is testing, whatever they are doing now) and the signal loop that `go test -fuzz` starts and never ends.
func framework(stack string) bool {
	return strings.Contains(stack, "\ntesting.(*M).Run(") ||
		strings.Contains(stack, "\ncreated by testing.") ||
		strings.Contains(stack, "\nos/signal.loop(")
}
