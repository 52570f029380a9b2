package layering

import "slices"

// Rule says what one package, or a tree of them, may import besides the standard library. Patterns are paths relative to the
// module ("." is its root), with "/..." for everything below.
type Rule struct {
	Package    string
	Module     []string // of this repository
	Outside    []string // of other modules
	AnyOutside bool     // other modules at will: for nested modules, whose go.mod already says what they need
}

const (
	compress = "github.com/klauspost/compress/..."
	xsync    = "golang.org/x/sync/..."
	xsys     = "golang.org/x/sys/..."
)

// Rules returns the arrows, from the ground up. Nobody imports the root, a protocol never imports another, and internal/fake,
// internal/handlertest, internal/leak and internal/yardstick are absent from every row of the library, which leaves them to tests, examples
// and each other.
func Rules() []Rule {
	ground := []string{"delivery", "jitter", "internal/mask"}
	engine := slices.Concat(ground, []string{"resolve", "internal/pool", "internal/ship"})
	protocol := slices.Concat(engine, []string{
		"internal/front", "internal/stream", "internal/datagram", "internal/attrs", "internal/severity", "internal/hostport", "internal/errno", "internal/outq",
	})
	public := []string{".", "gelf", "syslog", "hec", "chunk", "resolve", "delivery", "jitter"}

	return []Rule{
		{Package: "chunk"},
		{Package: "jitter"},
		{Package: "internal/mask"},
		{Package: "internal/severity"},
		{Package: "internal/errno"},
		{Package: "internal/outq"},
		{Package: "delivery", Module: []string{"jitter", "internal/mask"}},
		{Package: "internal/attrs", Module: []string{"internal/severity", "internal/mask"}},

		{Package: "resolve", Module: ground},
		{Package: "internal/pool", Module: slices.Concat(ground, []string{"resolve"}), Outside: []string{xsync}},
		{Package: "internal/ship", Module: slices.Concat(ground, []string{"resolve", "internal/pool"}), Outside: []string{xsync}},
		{Package: "internal/hostport", Module: []string{"resolve"}},
		{Package: "internal/stream", Module: []string{"delivery", "internal/outq", "internal/ship"}},
		{Package: "internal/datagram", Module: []string{"delivery", "jitter", "internal/errno", "internal/ship"}},
		{Package: "internal/front", Module: []string{"delivery", "internal/attrs", "internal/ship"}},

		{Package: "gelf", Module: slices.Concat(protocol, []string{"chunk"}), Outside: []string{compress, xsys}},
		{Package: "syslog", Module: protocol},
		{Package: "hec", Module: protocol, Outside: []string{compress}},
		{Package: ".", Module: slices.Concat(ground, []string{"resolve", "gelf", "syslog", "hec", "internal/severity"})},

		// Nested modules: their users bring their own handler, so that an adapter never pins a version of this module.
		{Package: "adapters/...", AnyOutside: true},

		{Package: "internal/fake/...", Module: []string{"chunk", "resolve", "internal/fake/..."}, Outside: []string{compress}},
		{Package: "internal/leak"},
		{Package: "internal/yardstick"},
		{Package: "internal/handlertest", Module: slices.Concat(engine, []string{"internal/yardstick"})},
		{Package: "internal/layering"},
		{Package: "examples/...", Module: slices.Concat(public, []string{"examples/...", "internal/fake/...", "internal/yardstick"}), Outside: []string{compress}},
		{Package: "examples/lambda", Module: public, AnyOutside: true},
		{Package: "interop/...", Module: slices.Concat(public, []string{"interop/...", "internal/fake/...", "internal/yardstick"}), AnyOutside: true},
		// Benchmarks measure single parts against single parts, so they may reach inside.
		{Package: "benchmarks/...", Module: slices.Concat(public, []string{"benchmarks/...", "internal/..."}), AnyOutside: true},
	}
}
