//go:build linux

package interop

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/wholelog/wholelog/internal/fake/gelfd"
)

// service is the name that stands for all nodes. With the final dot no search list multiplies the queries.
const service = "graylog.test."

// dnsmasq is a running name server.
type dnsmasq struct {
	*program
	dir     string
	port    int
	reloads int
	asked   atomic.Int64 // connections that the resolver opened: one for each query it sent
}

// startDNSMasq starts dnsmasq with the addresses of service on a port of 127.0.0.1; 0 means one that is free.
func startDNSMasq(t *testing.T, port int, addrs ...netip.Addr) *dnsmasq {
	t.Helper()
	path := find(t, "dnsmasq")
	version(t, path, "--version")
	d := &dnsmasq{dir: workDir(t)}
	d.write(t, addrs)
	conf := script(t, d.dir, "dnsmasq.conf")
	for range 20 { // the port may be taken between being found free and being used
		d.port = port
		if port == 0 {
			d.port = freePort(t)
		}
		d.program = run(t, command(d.dir, path, "-C", conf, "--no-daemon", "--port="+strconv.Itoa(d.port), "--addn-hosts="+d.hosts()))
		ready := func() bool { return strings.Contains(d.out.String(), "read "+d.hosts()) }
		until(t, "dnsmasq starts", func() bool { return ready() || d.ended() })
		if ready() && !d.ended() {
			return d
		}
	}
	t.Fatalf("dnsmasq does not start:\n%s", d.out.String())
	return nil
}

func (d *dnsmasq) ended() bool {
	select {
	case <-d.exited:
		return true
	default:
		return false
	}
}

// freePort is free for UDP and TCP.
func freePort(t *testing.T) int {
	t.Helper()
	for range 20 {
		tcp, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		udp, err := net.ListenPacket("udp4", tcp.Addr().String())
		port := tcp.Addr().(*net.TCPAddr).Port
		tcp.Close()
		if err == nil {
			udp.Close()
			return port
		}
	}
	t.Fatal("no port is free for both UDP and TCP")
	return 0
}

func (d *dnsmasq) hosts() string { return filepath.Join(d.dir, "hosts") }

// write makes the hosts file new in one step, so that no reload sees half of it.
func (d *dnsmasq) write(t *testing.T, addrs []netip.Addr) {
	t.Helper()
	var b strings.Builder
	for _, a := range addrs {
		fmt.Fprintf(&b, "%v %s\n", a, strings.TrimSuffix(service, "."))
	}
	if err := os.WriteFile(d.hosts()+".new", []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(d.hosts()+".new", d.hosts()); err != nil {
		t.Fatal(err)
	}
}

// set changes the answer. It returns when it is in force.
func (d *dnsmasq) set(t *testing.T, addrs ...netip.Addr) {
	t.Helper()
	d.write(t, addrs)
	d.reloads++
	d.signal(t, syscall.SIGHUP)
	until(t, "dnsmasq reads its hosts file again", func() bool {
		return strings.Count(d.out.String(), "read "+d.hosts()) == 1+d.reloads
	})
}

// queries is how often service was asked for with a type of record, by dnsmasq's own log.
func (d *dnsmasq) queries(typ string) int {
	return strings.Count(d.out.String(), "query["+typ+"] "+strings.TrimSuffix(service, ".")+" ")
}

// resolver asks this server and no other.
func (d *dnsmasq) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		d.asked.Add(1)
		var dialer net.Dialer
		return dialer.DialContext(ctx, network, "127.0.0.1:"+strconv.Itoa(d.port))
	}}
}

// lookup is one query, for IPv4 addresses. Go does not sort them, so the first is the server's first.
func lookup(t *testing.T, r *net.Resolver) []netip.Addr {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	addrs, err := r.LookupNetIP(ctx, "ip4", service)
	if err != nil {
		t.Fatal(err)
	}
	for i := range addrs {
		addrs[i] = addrs[i].Unmap()
	}
	return addrs
}

func addrsOf(nodes []*gelfd.Server) (out []netip.Addr) {
	for _, n := range nodes {
		out = append(out, n.Addr().Addr())
	}
	return out
}

// The control of all that follows: the order turns by one place with each query, and never otherwise.
func TestDNSMasqRotatesStrictly(t *testing.T) {
	want := []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("127.0.0.3")}
	d := startDNSMasq(t, 0, want...)
	r := d.resolver()
	before := lookup(t, r)
	for i := range 30 {
		got := lookup(t, r)
		if turned := append(slices.Clone(before[1:]), before[0]); !slices.Equal(got, turned) {
			t.Errorf("answer %d is %v after %v", i, got, before)
		}
		before = got
	}
	if sent := d.asked.Load(); sent != 31 {
		t.Errorf("%d queries were sent, want 31", sent)
	}
	until(t, "dnsmasq has logged 31 queries", func() bool { return d.queries("A") == 31 })
	d.set(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if addrs, err := r.LookupNetIP(ctx, "ip4", service); err == nil {
		t.Errorf("the name that vanished has %v", addrs)
	}
}
