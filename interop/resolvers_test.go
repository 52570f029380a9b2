//go:build linux

package interop

import (
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wholelog/wholelog/resolve"
)

// Go's resolver sees the rotation of any name, and the C library's that of remote addresses only: it sorts those that share a subnet
// with the host by nearness, and the nearest is then always first. So what a program loses by a look-up per chunk depends on its
// resolver; what ours reaches must not, and does not, because it takes the whole set.
func TestSystemResolversRotate(t *testing.T) {
	if !behindBalancer(t, "cross") {
		return
	}
	near := []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("127.0.0.3")}
	d := startDNSMasq(t, dnsPort, vipAddrs()...)
	getent := find(t, "getent")
	version(t, getent, "--version")
	viaGo := func() netip.Addr { return lookup(t, net.DefaultResolver)[0] }
	viaC := func() netip.Addr {
		out, err := command("/", getent, "ahostsv4", service).Output()
		if err != nil {
			t.Fatalf("getent: %v", err)
		}
		return netip.MustParseAddr(strings.Fields(string(out))[0])
	}
	for _, tt := range []struct {
		name  string
		addrs []netip.Addr
		first func() netip.Addr
		want  [3]int // how often each is first in 30 answers
	}{
		{"Go, remote", vipAddrs(), viaGo, [3]int{10, 10, 10}},
		{"Go, near", near, viaGo, [3]int{10, 10, 10}},
		{"C library, remote", vipAddrs(), viaC, [3]int{10, 10, 10}},
		{"C library, near", near, viaC, [3]int{30, 0, 0}},
	} {
		d.set(t, tt.addrs...)
		var firsts [3]int
		for range 30 {
			first := tt.first()
			if i := slices.Index(tt.addrs, first); i >= 0 {
				firsts[i]++
			}
		}
		if firsts != tt.want {
			t.Errorf("%s: first %v times, want %v", tt.name, firsts, tt.want)
		}
		answer, err := resolve.DNS(service+":"+gelfPort, nil).Resolve(t.Context())
		var found []netip.Addr
		for _, e := range answer.Endpoints {
			found = append(found, e.Addr.Addr())
		}
		if err != nil || !slices.Equal(found, tt.addrs) || answer.TTL != time.Second {
			t.Errorf("%s: %+v, %v; want %v and a TTL of 0, given as 1 s", tt.name, answer, err, tt.addrs)
		}
	}
}
