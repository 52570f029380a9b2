// Ratios measures pairs of benchmarks and prints what one costs against the other as a Markdown table:
//
//	go run ./ratios [-passes 5] [-benchtime 300ms] [-only handle] [-check]
//
// A machine that does other things as well makes every absolute time doubtful. So both sides of a pair run in alternation, pass
// after pass, and only the median of the passes' ratios is judged.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

func main() {
	o := options{}
	flag.IntVar(&o.passes, "passes", 5, "alternating passes")
	flag.StringVar(&o.benchtime, "benchtime", "300ms", "time or count (100x) of each benchmark in each pass")
	flag.StringVar(&o.only, "only", "", "only pairs whose name contains this")
	check := flag.Bool("check", false, "exit with 1 when a goal is missed")
	flag.Parse()
	missed, err := run(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "ratios:", err)
		os.Exit(1)
	}
	if *check && missed > 0 {
		fmt.Fprintf(os.Stderr, "ratios: %d goals missed\n", missed)
		os.Exit(1)
	}
}

type options struct {
	passes          int
	benchtime, only string
}

// run measures every pair that is asked for, prints the table and says how many goals were missed.
func run(o options) (missed int, err error) {
	if o.passes < 1 {
		return 0, fmt.Errorf("passes: %d is not a number of passes", o.passes)
	}
	tmp, err := os.MkdirTemp("", "ratios")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(tmp)
	b := binaries{dir: tmp, built: make(map[string]string)}
	fmt.Printf("%s, %s/%s, %d CPUs; median of %d alternating passes (least – most)\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), o.passes)
	if o.passes < 3 {
		fmt.Print("With so few passes the figures mean nothing; this only shows that everything runs.\n\n")
	}
	fmt.Println("| what | ours | against | theirs | ratio | goal | allocs/op |")
	fmt.Println("|---|---|---|---|---|---|---|")
	any := false
	for _, p := range pairs() {
		if !strings.Contains(p.name, o.only) {
			continue
		}
		any = true
		r, err := p.measure(&b, o)
		if err != nil {
			return missed, fmt.Errorf("%s: %w", p.name, err)
		}
		fmt.Println(r.row(p))
		if !r.reached(p) {
			missed++
		}
	}
	if !any {
		return 0, fmt.Errorf("no pair's name contains %q", o.only)
	}
	return missed, nil
}

// root is the folder of this module, wherever the program is started inside the project.
func root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "ratios", "pairs.go")); err == nil {
			return dir, nil
		}
		if _, err := os.Stat(filepath.Join(dir, "benchmarks", "ratios", "pairs.go")); err == nil {
			return filepath.Join(dir, "benchmarks"), nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", fmt.Errorf("not inside the project")
		}
		dir = up
	}
}
