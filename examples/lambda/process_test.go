//go:build linux || darwin

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience is how long anything may take that is known to happen. A passing test never waits for it; a loaded machine may be slow.
const patience = 30 * time.Second

// notice is how long the process has to end once it is told so. Lambda gives 300 ms or 500 ms, which a loaded machine may need for
// waking it up; it is less than the library takes when nobody sets CloseTimeout and records are left.
const notice = 3 * time.Second

// process is the function's process, which the tests freeze as Lambda does. SIGSTOP comes close: nothing runs and no timer fires, but
// the monotonic clock goes on. That ages are right when it does not is held by the library's own tests.
type process struct {
	pid     int
	out     string        // the file with what it said, on either stream
	stopped chan struct{} // one for each time it has stopped
	exited  chan struct{}
	status  syscall.WaitStatus // once exited is closed
}

// startProcess starts the function with these variables added to the environment.
func startProcess(t *testing.T, env ...string) *process {
	t.Helper()
	p := &process{
		out:     filepath.Join(t.TempDir(), "out"),
		stopped: make(chan struct{}, 1),
		exited:  make(chan struct{}),
	}
	out, err := os.Create(p.out)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close() }() // the process has its own
	cmd := exec.Command(binary)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = out, out
	// In a group of its own a stopped process gets SIGHUP and SIGCONT from the kernel when the tests end before it, and ends too.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.pid = cmd.Process.Pid
	_ = cmd.Process.Release() // reaped by watch, because Wait does not tell of stops
	go p.watch()
	t.Cleanup(func() {
		select {
		case <-p.exited:
		default:
			_ = syscall.Kill(p.pid, syscall.SIGKILL)
			<-p.exited
		}
		if t.Failed() {
			t.Logf("the function said:\n%s", p.said(t))
		}
	})
	return p
}

// watch tells of every stop, and of the end.
func (p *process) watch() {
	defer close(p.exited)
	for {
		var s syscall.WaitStatus
		_, err := syscall.Wait4(p.pid, &s, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err == nil && s.Stopped():
			p.stopped <- struct{}{}
		default:
			p.status = s
			return
		}
	}
}

// freeze returns when no thread of the process runs any more.
func (p *process) freeze(t *testing.T) {
	t.Helper()
	p.signal(t, syscall.SIGSTOP)
	wait(t, p, p.stopped, "the process does not stop")
}

func (p *process) thaw(t *testing.T) {
	t.Helper()
	p.signal(t, syscall.SIGCONT)
}

func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	select {
	case <-p.exited:
		t.Fatalf("%v: the process has ended with status %#x", s, p.status)
	default:
	}
	if err := syscall.Kill(p.pid, s); err != nil {
		t.Fatal(err)
	}
}

// terminate does what Lambda does at an environment's end, and returns when the process has ended.
func (p *process) terminate(t *testing.T) {
	t.Helper()
	begun := time.Now()
	p.signal(t, syscall.SIGTERM)
	p.thaw(t)
	select {
	case <-p.exited:
	case <-time.After(notice):
		t.Fatalf("the process does not end within %v", notice)
	}
	t.Logf("ended %v after SIGTERM", time.Since(begun).Round(time.Millisecond))
	if !p.status.Exited() || p.status.ExitStatus() != 0 {
		t.Errorf("status %d (exited: %v, signal %v), want exit status 0", p.status.ExitStatus(), p.status.Exited(), p.status.Signal())
	}
}

func (p *process) said(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(p.out)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// wait receives from c, unless the process ends or patience does.
func wait[T any](t *testing.T, p *process, c <-chan T, otherwise string) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-p.exited:
		t.Fatalf("%s: the process has ended with status %#x", otherwise, p.status)
	case <-time.After(patience):
		t.Fatal(otherwise)
	}
	return v
}
