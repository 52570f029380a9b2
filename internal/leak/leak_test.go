package leak

import (
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) { Main(m) }

func TestForeign(t *testing.T) {
	const caller = "goroutine 1 [running]:\ngithub.com/wholelog/wholelog/internal/leak.stacks()\n\t/src/leak.go:1 +0x1\n"
	for name, tc := range map[string]struct {
		stack string
		leak  bool
	}{
		"ours":             {"goroutine 7 [select]:\ngithub.com/wholelog/wholelog/internal/ship.(*Engine).run()\n\t/src/e.go:9 +0x1\ncreated by github.com/wholelog/wholelog/internal/ship.New in goroutine 6\n\t/src/e.go:3 +0x1", true},
		"on our behalf":    {"goroutine 8 [IO wait]:\nnet/http.(*persistConn).readLoop(0x1)\n\t/go/transport.go:9 +0x1\ncreated by net/http.(*Transport).dialConn in goroutine 6\n\t/go/transport.go:3 +0x1", true},
		"main":             {"goroutine 1 [chan receive]:\ntesting.(*T).Run(0x1, 0x2)\n\t/go/testing.go:9 +0x1\ntesting.(*M).Run(0x1)\n\t/go/testing.go:3 +0x1\nmain.main()\n\t_testmain.go:1 +0x1", false},
		"a running test":   {"goroutine 9 [chan receive]:\ngithub.com/wholelog/wholelog/gelf.TestX(0x1)\n\t/src/x_test.go:9 +0x1\ncreated by testing.(*T).Run in goroutine 1\n\t/go/testing.go:3 +0x1", false},
		"fuzzing's signal": {"goroutine 10 [syscall]:\nos/signal.signal_recv()\n\t/go/sigqueue.go:9 +0x1\nos/signal.loop()\n\t/go/signal_unix.go:23 +0x1\ncreated by os/signal.Notify.func1.1 in goroutine 1\n\t/go/signal.go:3 +0x1", false},
	} {
		t.Run(name, func(t *testing.T) {
			got := foreign(caller + "\n" + tc.stack + "\n")
			if tc.leak != (len(got) == 1) || len(got) == 1 && got[0] != tc.stack {
				t.Errorf("foreign = %q, want a leak: %v", got, tc.leak)
			}
		})
	}
	if got := foreign(caller); got != nil {
		t.Errorf("the caller alone counts as %q", got)
	}
}

func TestVerdict(t *testing.T) {
	stop, done := make(chan struct{}), make(chan struct{})
	leaky := func() int {
		go func() {
			defer close(done)
			<-stop
		}()
		return 0
	}
	var out strings.Builder
	if code := verdict(leaky, 10*time.Millisecond, &out); code != 1 {
		t.Errorf("a leak ends with %d, want 1", code)
	}
	for _, want := range []string{"leak: 1 goroutines left 10ms after the tests", "leak.TestVerdict"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report does not say %q:\n%s", want, out.String())
		}
	}
	close(stop)
	<-done

	out.Reset()
	if code := verdict(func() int { return 0 }, patience, &out); code != 0 || out.Len() > 0 {
		t.Errorf("a clean run ends with %d and %q", code, out.String())
	}
	if code := verdict(func() int { return 3 }, patience, &out); code != 3 || out.Len() > 0 {
		t.Errorf("a failed run ends with %d and %q, want its own code and no stacks", code, out.String())
	}
}

// A goroutine that is on its way out is no leak: Find has to wait for it.
func TestFindWaits(t *testing.T) {
	timer := time.NewTimer(20 * time.Millisecond)
	go func() { <-timer.C }()
	if left := Find(patience); left != nil {
		t.Errorf("left: %q", left)
	}
}
