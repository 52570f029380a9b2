package main

import "fmt"

// bench is a benchmark: a package's folder, seen from this module's, and its name.
type bench struct{ dir, name string }

// pair is one comparison: ours against theirs. With faster or cost it is a claim.
type pair struct {
	name, ours, theirs string
	a, b               bench
	faster             float64 // at least so many times faster than theirs
	cost               float64 // at most so many times the cost of theirs
	free               bool    // and without an allocation
}

// pairs are the comparisons, in the order of the table.
func pairs() []pair {
	var (
		handle  = bench{"../gelf", "BenchmarkHandle/put"}
		unbound = bench{"../gelf", "BenchmarkCall/unbound"}
		bound   = bench{"../gelf", "BenchmarkCall/bound"}
	)
	all := []pair{
		{name: "handle", ours: "gelf Handle with Put", theirs: "go-gelf marshal alone", a: handle, b: bench{".", "BenchmarkGoGELFMarshal"}, faster: 7, free: true},
		{name: "handle", ours: "gelf Handle with Put", theirs: "slog JSON Handle to nowhere", a: handle, b: bench{".", "BenchmarkHandle/slog_json"}, faster: 2, free: true},
		{name: "handle", ours: "gelf Handle with Put", theirs: "slog text Handle to nowhere", a: handle, b: bench{".", "BenchmarkHandle/slog_text"}},
		{name: "handle, dead destination", ours: "gelf Handle, queue full, DropNewest", theirs: "gelf Handle that delivers", a: bench{"../gelf", "BenchmarkHandle/dead"}, b: handle, cost: 1.2, free: true},
		{name: "handle", ours: "gelf Handle with Put", theirs: "tint Handle to nowhere", a: handle, b: bench{".", "BenchmarkHandle/tint"}},
	}
	for _, peer := range []string{"slog_json", "slog_text", "zap", "zerolog", "logrus", "tint"} {
		all = append(all, pair{name: "call", ours: "slog to gelf", theirs: peer, a: unbound, b: bench{".", "BenchmarkCall/" + peer}})
	}
	all = append(all, pair{name: "call", ours: "slog to gelf", theirs: "go-gelf, map and marshal", a: unbound, b: bench{".", "BenchmarkCall/gogelf"}})
	for _, peer := range []string{"slog_json", "slog_text", "zap", "zerolog", "logrus", "tint"} {
		all = append(all, pair{name: "call, attributes bound", ours: "slog to gelf", theirs: peer, a: bound, b: bench{".", "BenchmarkCall/" + peer + "_bound"}})
	}
	all = append(all,
		pair{name: "pick", ours: "by weight and health, of 3", theirs: "atomic load and counter", a: bench{"../internal/ship", "BenchmarkPick/of_3"}, b: bench{".", "BenchmarkAtomicPick"}, cost: 6, free: true},
		pair{name: "pick", ours: "by weight and health, of 3000", theirs: "atomic load and counter", a: bench{"../internal/ship", "BenchmarkPick/of_3000"}, b: bench{".", "BenchmarkAtomicPick"}, free: true},
		pair{name: "stats", ours: "Stats of eight addresses", theirs: "a copy of the same maps and rows", a: bench{"../internal/ship", "BenchmarkStats/snapshot"}, b: bench{"../internal/ship", "BenchmarkStats/copy"}, cost: 2},
		pair{name: "put", ours: "Put of 500 bytes", theirs: "copy under a mutex, into as much memory", a: bench{"../internal/ship", "BenchmarkPut/put_16MiB"}, b: bench{"../internal/ship", "BenchmarkPut/mutex_copy_16MiB"}, cost: 3, free: true},
	)
	for _, h := range []struct {
		producers int
		faster    float64
	}{{1, 2}, {8, 1.5}, {64, 1.5}} {
		producers, faster := h.producers, h.faster
		ours := fmt.Sprintf("Put to delivery, %d goroutines", producers)
		a := bench{".", fmt.Sprintf("BenchmarkHandoff/put_%d", producers)}
		all = append(all,
			pair{name: "hand-off", ours: ours, theirs: "channel and sync.Pool", a: a, b: bench{".", fmt.Sprintf("BenchmarkHandoff/chan_pool_%d", producers)}, faster: faster, free: true},
			pair{name: "hand-off", ours: ours, theirs: "slice under a mutex and sync.Pool", a: a, b: bench{".", fmt.Sprintf("BenchmarkHandoff/mutex_slice_%d", producers)}},
		)
	}
	for _, size := range []string{"1KB", "10KB", "100KB"} {
		for _, peer := range []string{"std_fresh", "std_reused"} {
			all = append(all, pair{
				name: "compress " + size, ours: "stateless deflate", theirs: peer,
				a: bench{"../gelf", "BenchmarkCompress/ours_" + size}, b: bench{"../gelf", "BenchmarkCompress/" + peer + "_" + size},
			})
		}
	}
	for _, u := range []struct {
		size   string
		faster float64
	}{{"300B", 60}, {"8KB", 18}, {"100KB", 5.5}} {
		for _, mode := range []string{"gzip", "none"} {
			p := pair{
				name: "UDP " + u.size, ours: "log call to kernel, " + mode, theirs: "go-gelf, " + mode,
				a: bench{".", "BenchmarkUDP/" + u.size + "_" + mode + "_ours"}, b: bench{".", "BenchmarkUDP/" + u.size + "_" + mode + "_gogelf"},
			}
			if mode == "gzip" {
				p.faster = u.faster
			}
			all = append(all, p)
		}
	}
	all = append(all,
		pair{name: "syslog format", ours: "RFC 5424, 330 bytes", theirs: "srslog's formatter", a: bench{"../syslog", "BenchmarkEncode/text"}, b: bench{".", "BenchmarkSrslogFormat"}, faster: 20, free: true},
		pair{name: "syslog format", ours: "RFC 5424 with octet count, 330 bytes", theirs: "srslog's formatter and framer", a: bench{"../syslog", "BenchmarkEncode/framed"}, b: bench{".", "BenchmarkSrslogFrame"}, free: true},
		pair{name: "slog alone", ours: "log call to a handler that does nothing", theirs: "the same call to syslog TCP, ours", a: bench{".", "BenchmarkSlogAlone"}, b: bench{".", "BenchmarkSyslogTCP/text_ours"}},
	)
	for _, x := range []struct {
		what, ours, theirs string
		srslog, std        float64
	}{
		{"Handle to kernel, 330 bytes", "handle", "text", 25, 18},
		{"log call to kernel, 330 bytes", "text", "text", 0, 0},
		{"log call to kernel, ten attributes as structured data", "attrs", "attrs", 4, 4},
	} {
		a := bench{".", "BenchmarkSyslogTCP/" + x.ours + "_ours"}
		all = append(all,
			pair{name: "syslog TCP", ours: x.what, theirs: "srslog", a: a, b: bench{".", "BenchmarkSyslogTCP/" + x.theirs + "_srslog"}, faster: x.srslog},
			pair{name: "syslog TCP", ours: x.what, theirs: "log/syslog", a: a, b: bench{".", "BenchmarkSyslogTCP/" + x.theirs + "_std"}, faster: x.std},
		)
	}
	return append(all,
		pair{name: "TCP 300B", ours: "gelf Handle to the peer's kernel", theirs: "go-gelf TCP writer", a: bench{".", "BenchmarkTCP/handle_ours"}, b: bench{".", "BenchmarkTCP/gogelf"}, faster: 15},
		pair{name: "TCP 300B", ours: "log call to the peer's kernel", theirs: "go-gelf TCP writer", a: bench{".", "BenchmarkTCP/ours"}, b: bench{".", "BenchmarkTCP/gogelf"}},
	)
}
