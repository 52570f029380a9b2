package pool

import (
	"context"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wholelog/wholelog/resolve"
)

// A Check that panics fails. So does one that ignores its context, and it is not called again before it has returned, however many
// addresses come and go.
func TestBadChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, check := checkRig(t, addrA, addrB)
		check.do = func(context.Context, string) (resolve.Report, error) { panic("a bug") }
		r.driven(t)
		pass(10 * time.Second)
		r.wantStates(t, "panics", "down down")
		if text, _ := r.Text(netip.MustParseAddrPort(addrA)); text != "check: it panicked: a bug" {
			t.Errorf("%q", text)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		check := &checker{do: func(context.Context, string) (resolve.Report, error) {
			<-release
			return resolve.Report{State: resolve.Up}, nil
		}}
		r := newRig(t, resolve.Options{Refresh: time.Second, Check: check}, addrA)
		r.driven(t)
		pass(10 * time.Second)
		r.wantStates(t, "hangs", "down")
		if n := len(check.at(addrA)); n != 1 {
			t.Errorf("%d calls hang", n)
		}
		for i := range 200 {
			r.script.answer(addrOf(i))
			pass(10 * time.Second)
		}
		check.mu.Lock()
		hanging := len(check.calls)
		check.mu.Unlock()
		if hanging > maxStrays+4 {
			t.Errorf("%d calls hang", hanging)
		}
		close(release)
		pass(10 * time.Second)
		r.wantStates(t, "returns", "up")
	})
}

// panicky panics wherever it is asked.
type panicky struct{}

func (panicky) SkipConnected() bool { panic("no") }

func (panicky) Check(context.Context, netip.AddrPort) (resolve.Report, error) {
	return resolve.Report{}, panicError{}
}

type panicError struct{}

func (panicError) Error() string { panic("no text") }

func TestPanickyCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, resolve.Options{Check: panicky{}}, addrA, addrB)
		r.driven(t)
		pass(10 * time.Second)
		r.wantStates(t, "in the end", "down down")
	})
}
