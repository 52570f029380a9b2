//go:build linux

package interop

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long anything may take that is known to happen. A passing test never waits for it; a loaded machine may be slow.
const patience = 30 * time.Second

// nobody is whom the programs run as when the tests are root's.
const nobody = 65534

// scripts are copied to where the unprivileged programs can read them, which the checkout need not be.
//
//go:embed *.cfg *.conf *.py *.sh
var scripts embed.FS

// workDir makes a directory that belongs to whom the programs run as. t.TempDir would not do: others may not enter it.
func workDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "interop-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if c := unprivileged(); c != nil {
		if err := os.Chown(dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// script puts one of the scripts into dir and returns its path.
func script(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := scripts.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, text, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// unprivileged is whom a program runs as, or nil for the user the tests run as: who is not root stays who he is, and root of a
// namespace is nobody special outside of it.
func unprivileged() *syscall.Credential {
	if os.Getuid() != 0 || inside() {
		return nil
	}
	return &syscall.Credential{Uid: nobody, Gid: nobody}
}

// find returns the path of a program, also from the directories that ordinary users do not search.
func find(t *testing.T, name string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	for _, dir := range []string{"/usr/sbin", "/sbin"} {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path
		}
	}
	t.Fatalf("%s is not installed; the file debian-packages lists what these tests need", name)
	return ""
}

// command prepares a program that is no more privileged than it must be and does not outlive the tests.
func command(dir, path string, args ...string) *exec.Cmd {
	cmd := exec.Command(path, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "HOME="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: unprivileged(), Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = patience
	return cmd
}

// version logs the first line that a program says about itself.
func version(t *testing.T, path string, args ...string) {
	t.Helper()
	out, err := command("/", path, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", path, err, out)
	}
	line, _, _ := strings.Cut(string(out), "\n")
	t.Logf("version: %s", line)
}

// program is a running program.
type program struct {
	cmd    *exec.Cmd
	out    output // standard error, and standard output unless the caller took that
	exited chan struct{}
	err    error // set before exited is closed
}

// run starts a program; the test's end stops it with SIGTERM if it still runs, and shows what it said if the test failed.
func run(t *testing.T, cmd *exec.Cmd) *program {
	t.Helper()
	p := &program{cmd: cmd, exited: make(chan struct{})}
	if cmd.Stdout == nil {
		cmd.Stdout = &p.out
	}
	cmd.Stderr = &p.out
	if err := cmd.Start(); err != nil {
		t.Fatalf("%s: %v", cmd.Path, err)
	}
	go func() {
		p.err = cmd.Wait()
		close(p.exited)
	}()
	t.Cleanup(func() {
		p.stop(t, syscall.SIGTERM)
		if t.Failed() {
			said := p.out.String()
			t.Logf("%s said last:\n%s", cmd.Path, said[max(0, len(said)-4000):])
		}
	})
	return p
}

// signal sends s. A program that has ended by itself is not there to hear it.
func (p *program) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("%s: %v", p.cmd.Path, err)
	}
}

// stop sends s and waits for the end, which it enforces when it does not come.
func (p *program) stop(t *testing.T, s os.Signal) {
	t.Helper()
	p.signal(t, s)
	p.signal(t, syscall.SIGCONT) // one that was stopped hears nothing else
	select {
	case <-p.exited:
	case <-time.After(patience):
		t.Errorf("%s does not end on %v", p.cmd.Path, s)
		p.signal(t, os.Kill)
		<-p.exited
	}
}

// output collects what a program says; it may be read at any time.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

func (o *output) Bytes() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	return bytes.Clone(o.buf.Bytes())
}

// until waits for cond, and fails the test when it has not come true in time.
func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	if !within(t, patience, cond) {
		t.Fatalf("not within %v: %s", patience, what)
	}
}

// within says whether cond comes true in the time given.
func within(t *testing.T, limit time.Duration, cond func() bool) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	tick := time.NewTicker(200 * time.Microsecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return cond()
		}
	}
	return true
}
