package main

// bench is a benchmark: a package's folder, seen from this module's, and its name.
type bench struct{ dir, name string }

// pair is one claim: ours against theirs.
type pair struct {
	name, ours, theirs string
	a, b               bench
	faster             float64 // at least so many times faster than theirs; 0: see cost
	cost               float64 // at most so many times the cost of theirs
	free               bool    // and without an allocation
}

// pairs are the claims, in the order of the table.
var pairs = []pair{
	{
		name: "handle: one record, encoded and handed over", ours: "gelf Handle with Put", theirs: "go-gelf marshal alone",
		a: bench{"../gelf", "BenchmarkHandle/put"}, b: bench{".", "BenchmarkGoGELFMarshal"}, faster: 7, free: true,
	},
	{
		name: "handle: one record, encoded and handed over", ours: "gelf Handle with Put", theirs: "slog.JSONHandler Handle to nowhere",
		a: bench{"../gelf", "BenchmarkHandle/put"}, b: bench{".", "BenchmarkSlogJSONHandle"}, faster: 2, free: true,
	},
	{
		name: "pick: the address of one record, of three", ours: "stride pick", theirs: "atomic load and counter",
		a: bench{"../internal/ship", "BenchmarkPick"}, b: bench{".", "BenchmarkAtomicPick"}, cost: 3, free: true,
	},
	{
		name: "put: hand-off of a 500-byte record", ours: "Put, delivered by the pipeline", theirs: "copy under a mutex, into as much memory",
		a: bench{"../internal/ship", "BenchmarkPut/put_16MiB"}, b: bench{"../internal/ship", "BenchmarkPut/mutex_copy_16MiB"}, cost: 3, free: true,
	},
}
