package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// binaries builds each package's benchmarks once.
type binaries struct {
	dir   string
	built map[string]string // by folder
}

func (b *binaries) of(dir string) (string, error) {
	if path := b.built[dir]; path != "" {
		return path, nil
	}
	home, err := root()
	if err != nil {
		return "", err
	}
	path := filepath.Join(b.dir, "bench"+strconv.Itoa(len(b.built)))
	cmd := exec.Command("go", "test", "-c", "-o", path, ".")
	cmd.Dir = filepath.Join(home, dir)
	cmd.Env = append(os.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", dir, err, out)
	}
	b.built[dir] = path
	return path, nil
}

// once runs one benchmark once.
func (b *binaries) once(x bench, benchtime string) (sample, error) {
	path, err := b.of(x.dir)
	if err != nil {
		return sample{}, err
	}
	parts := strings.Split(x.name, "/")
	cmd := exec.Command(path, "-test.run=^$", "-test.bench=^"+strings.Join(parts, "$/^")+"$", "-test.benchtime="+benchtime, "-test.benchmem")
	cmd.Dir = b.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		return sample{}, fmt.Errorf("%s: %w\n%s", x.name, err, out)
	}
	return parse(x.name, string(out))
}

// sample is what one run of a benchmark printed.
type sample struct{ ns, allocs float64 }

// parse finds the line of the named benchmark: name-CPUs, iterations, then values with their units.
func parse(name, out string) (sample, error) {
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if len(f) < 4 {
			continue
		}
		printed, _, _ := strings.Cut(f[0], "-")
		if printed != name {
			continue
		}
		var s sample
		for i := 2; i+1 < len(f); i += 2 {
			v, err := strconv.ParseFloat(f[i], 64)
			if err != nil {
				return sample{}, fmt.Errorf("%s: %w in %q", name, err, line)
			}
			switch f[i+1] {
			case "ns/op":
				s.ns = v
			case "allocs/op":
				s.allocs = v
			}
		}
		if s.ns > 0 {
			return s, nil
		}
	}
	return sample{}, fmt.Errorf("%s: no such benchmark in\n%s", name, out)
}

// result is what all passes of a pair came to.
type result struct {
	a, b   float64   // median ns/op
	ratios []float64 // theirs over ours, sorted
	allocs float64
}

func (p *pair) measure(b *binaries, o options) (result, error) {
	var as, bs []float64
	var r result
	for range o.passes {
		ours, err := b.once(p.a, o.benchtime)
		if err != nil {
			return r, err
		}
		theirs, err := b.once(p.b, o.benchtime)
		if err != nil {
			return r, err
		}
		as, bs = append(as, ours.ns), append(bs, theirs.ns)
		r.ratios = append(r.ratios, theirs.ns/ours.ns)
		r.allocs = max(r.allocs, ours.allocs)
	}
	slices.Sort(r.ratios)
	r.a, r.b = median(as), median(bs)
	return r, nil
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return s[len(s)/2]
}

func (r result) reached(p pair) bool {
	m := median(r.ratios)
	if p.free && r.allocs > 0 {
		return false
	}
	return (p.faster == 0 || m >= p.faster) && (p.cost == 0 || 1/m <= p.cost)
}

// row is the pair's line of the table. A claim about speed reads "n times faster", one about cost "n times the cost".
func (r result) row(p pair) string {
	least, mid, most := r.ratios[0], median(r.ratios), r.ratios[len(r.ratios)-1]
	ratio, goal := fmt.Sprintf("%.1f× faster (%.1f – %.1f)", mid, least, most), "–"
	switch {
	case p.faster > 0:
		goal = fmt.Sprintf("≥ %g× faster", p.faster)
	case p.cost > 0:
		ratio, goal = fmt.Sprintf("%.1f× the cost (%.1f – %.1f)", 1/mid, 1/most, 1/least), fmt.Sprintf("≤ %g× the cost", p.cost)
	}
	if p.free {
		goal += ", 0 allocations"
	}
	if !r.reached(p) {
		goal += " **missed**"
	}
	return fmt.Sprintf("| %s | %s: %.0f ns | %s | %.0f ns | %s | %s | %.0f |", p.name, p.ours, r.a, p.theirs, r.b, ratio, goal, r.allocs)
}
