// Herd shows what a thousand hosts do to a server when their timers run together, and what each helper of package jitter makes of
// it. Time is computed and not waited for, and nothing is sent: it ends at once.
//
//	go run ./examples/herd                 the peaks, as bars
//	go run ./examples/herd -svg herd.svg   and every 100 ms of it as a picture
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	os.Exit(exitCode(run(os.Args[1:], os.Stdout), os.Stderr))
}

// usageError is a command line that cannot be meant.
type usageError struct {
	error
	flags *flag.FlagSet
}

// exitCode reports err and returns what the shell is told: 2 for a wrong command line, which is shown the usage too, 1 for what
// failed later.
func exitCode(err error, stderr io.Writer) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(stderr, "herd:", err)
	var wrong usageError
	if !errors.As(err, &wrong) {
		return 1
	}
	wrong.flags.SetOutput(stderr)
	wrong.flags.Usage()
	return 2
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("herd", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // flag would print an error that is reported here once more
	file := flags.String("svg", "", "write the picture to this file")
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(out)
		flags.Usage()
		return nil
	}
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("%q is not a flag", flags.Arg(0))
	}
	if err != nil {
		return usageError{err, flags}
	}
	results := play(scenes())
	if *file != "" {
		if err := os.WriteFile(*file, picture(results), 0o644); err != nil {
			return err // it names the file
		}
	}
	_, err = out.Write(bars(results))
	return err
}
