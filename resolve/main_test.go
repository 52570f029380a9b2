package resolve

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/wholelog/wholelog/internal/fake/dnsd"
	"github.com/wholelog/wholelog/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

func serve(t *testing.T) *dnsd.Server {
	t.Helper()
	s, err := dnsd.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// inBubble runs a test of time against a server without sockets.
func inBubble(t *testing.T, name string, f func(t *testing.T, s *dnsd.Server)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { dnsd.Bubble(t, f) })
}

func addrs(texts ...string) []netip.Addr {
	var out []netip.Addr
	for _, text := range texts {
		out = append(out, netip.MustParseAddr(text))
	}
	return out
}

// holds says whether an answer is exactly the addresses, in sorted order.
func holds(a Answer, want ...string) bool {
	got := make([]string, 0, len(a.Endpoints))
	for _, e := range a.Endpoints {
		if e.Weight != 0 || e.Priority != 0 {
			return false
		}
		got = append(got, e.Addr.String())
	}
	return slices.Equal(got, want)
}
