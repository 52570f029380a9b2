package cluster

import (
	"context"
	"net/netip"
	"testing"

	"github.com/wholelog/wholelog/internal/fake/gelfd"
	"github.com/wholelog/wholelog/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// Both forms of the cluster rotate strictly, and the resolver always has all nodes.
func TestRotates(t *testing.T) {
	for name, begin := range map[string]func(int, gelfd.Options) (*Cluster, error){"by address": Start, "by port": StartByPort} {
		t.Run(name, func(t *testing.T) {
			c, err := begin(3, gelfd.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			first := make(map[netip.AddrPort]int)
			for range 9 {
				addrs, err := c.Lookup(context.Background())
				if err != nil || len(addrs) != 3 {
					t.Fatalf("%v, %v", addrs, err)
				}
				first[addrs[0]]++
			}
			for _, node := range c.Nodes {
				if first[node.Addr()] != 3 {
					t.Errorf("first in nine answers: %v", first)
				}
			}
			a, err := c.Resolver.Resolve(context.Background())
			if err != nil || len(a.Endpoints) != 3 {
				t.Errorf("%+v, %v", a, err)
			}
		})
	}
}
