//go:build linux

package interop

import (
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wholelog/wholelog/internal/fake/gelfd"
)

// insideVar tells a test that it runs inside the namespaces, and where their directory is.
const insideVar = "INTEROP_NLBSIM_DIR"

func inside() bool { return os.Getenv(insideVar) != "" }

// behindBalancer says whether the test runs in the client's place before the balancer of nlbsim.sh. Outside, it builds the balancer,
// runs the same test there, takes over its verdict, and returns false.
func behindBalancer(t *testing.T, mode string) bool {
	t.Helper()
	if inside() {
		return true
	}
	version(t, find(t, "ip"), "-V")
	version(t, find(t, "nft"), "--version")
	dir := workDir(t)
	sim := script(t, dir, "nlbsim.sh")
	enter(t, dir, sim, dir, "sandbox", "sh", "-c", `"$0" "$1" up "$2" && shift 2 && exec "$0" "$@"`, sim, dir, mode, dir, "cli")
	return false
}

// ownNetwork says whether the test runs in a network namespace with a loopback interface and nothing else, in which it may capture.
// Outside, it behaves like behindBalancer. The user keeps its number there, because tcpdump as root insists on becoming another.
//
// The loopback interface there does not take trains of datagrams whole, as the one of this machine does: like a network card without
// that offload it gets them cut apart, so that a capture shows what would be on a wire.
func ownNetwork(t *testing.T) bool {
	t.Helper()
	if inside() {
		return true
	}
	enter(t, workDir(t), find(t, "unshare"), "-Un", "--map-current-user", "--keep-caps",
		"sh", "-c", `"$0" link set lo up && "$1" -K lo tx-udp-segmentation off && shift && exec "$@"`, find(t, "ip"), find(t, "ethtool"))
	return false
}

// enter runs the test that calls it once more, as the last arguments of a command that makes namespaces. Where the system allows
// none, it says so loudly and skips the test.
func enter(t *testing.T, dir string, prefix ...string) {
	t.Helper()
	version(t, find(t, "unshare"), "--version")
	who, ok := namespaceUser(t, dir)
	if !ok {
		t.Log("!!!! NO NAMESPACES: this system allows none, and WHAT THIS TEST IS ABOUT WAS NOT TESTED !!!!")
		t.Skip("!!!! no namespaces")
	}
	args := append(slices.Clone(prefix), ownBinary(t, dir), "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=5m")
	cmd := command(dir, args[0], args[1:]...)
	cmd.SysProcAttr.Credential = who
	cmd.Env = append(cmd.Env, insideVar+"="+dir)
	p := run(t, cmd)
	<-p.exited
	// The exit status alone would be content with a test that was not there.
	if p.err != nil || !strings.Contains(p.out.String(), "--- PASS: "+t.Name()) {
		t.Errorf("the test inside the namespaces: %v", p.err)
	}
	t.Logf("inside the namespaces:\n%s", p.out.String())
}

// namespaceUser finds out who may make the namespaces: an unprivileged user where the system lets one, else whoever runs the tests.
func namespaceUser(t *testing.T, dir string) (*syscall.Credential, bool) {
	t.Helper()
	for _, who := range slices.Compact([]*syscall.Credential{unprivileged(), nil}) {
		cmd := command(dir, find(t, "unshare"), "-Urnm", "true")
		cmd.SysProcAttr.Credential = who
		out, err := cmd.CombinedOutput()
		if err == nil {
			return who, true
		}
		t.Logf("no namespaces as %+v: %v\n%s", who, err, out)
	}
	return nil, false
}

// ownBinary copies this test's program to where the unprivileged may run it.
func ownBinary(t *testing.T, dir string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	from, err := os.Open(self)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	path := filepath.Join(dir, "interop.test")
	to, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(to, from); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// sim runs a verb of nlbsim.sh from inside.
func sim(t *testing.T, args ...string) {
	t.Helper()
	dir := os.Getenv(insideVar)
	cmd := exec.Command(filepath.Join(dir, "nlbsim.sh"), append([]string{dir}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("nlbsim.sh %v: %v\n%s", args, err, out)
	}
}

// gelfPort is the port of the VIPs and of the nodes behind them: the balancer changes addresses, not ports.
const gelfPort = "12201"

// balancedNodes starts a receiver on each of the three targets.
func balancedNodes(t *testing.T) []*gelfd.Server {
	t.Helper()
	var nodes []*gelfd.Server
	for _, i := range []string{"1", "2", "3"} {
		var node *gelfd.Server
		var err error
		inNamespace(t, "/run/netns/nlb-n"+i, func() {
			node, err = gelfd.Listen("10.77.1"+i+".2:"+gelfPort, gelfd.Options{})
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { node.Close() })
		nodes = append(nodes, node)
	}
	return nodes
}

// vips returns the balancer's addresses.
func vips() []netip.AddrPort {
	var all []netip.AddrPort
	for _, i := range []string{"1", "2", "3"} {
		all = append(all, netip.MustParseAddrPort("10.77.1.1"+i+":"+gelfPort))
	}
	return all
}

// inNamespace calls f where new sockets belong to another network namespace. Sockets stay where they were made, so that one process
// can hold all ends.
func inNamespace(t *testing.T, path string, f func()) {
	t.Helper()
	var err error
	var wg sync.WaitGroup
	wg.Go(func() {
		// Never unlocked: the thread, which belongs to the other namespace, ends with the goroutine.
		runtime.LockOSThread()
		var ns *os.File
		if ns, err = os.Open(path); err != nil {
			return
		}
		defer ns.Close()
		if err = unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err == nil {
			f()
		}
	})
	wg.Wait()
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}
