// Quickstart shows in a few seconds why long log messages vanish behind a load balancer, and that wholelog delivers them: it sends
// the same messages twice to three GELF receivers behind a name whose DNS answer rotates, once with a look-up for every chunk and
// once through wholelog, and prints what the receivers counted.
//
//	go run ./examples/quickstart                                   the demonstration; needs nothing
//	go run ./examples/quickstart -target udp://graylog.test:12201  the same messages to a real server
//	go run ./examples/quickstart -probe graylog.test               how that name's answers are distributed
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"time"
)

// patience bounds a run against a server or name that does not answer; the demonstration needs a few seconds of its ten.
const patience = 10 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(exitCode(run(ctx, os.Args[1:], os.Stdout), os.Stderr))
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
	fmt.Fprintln(stderr, "quickstart:", err)
	var wrong usageError
	if !errors.As(err, &wrong) {
		return 1
	}
	wrong.flags.SetOutput(stderr)
	wrong.flags.Usage()
	return 2
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // flag would print an error that is reported here once more
	target := flags.String("target", "", "send the messages to this server, for example udp://graylog.test:12201")
	name := flags.String("probe", "", "print how the DNS answers of this name are distributed")
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(out)
		flags.Usage()
		return nil
	}
	if err == nil {
		err = check(flags)
	}
	if err != nil {
		return usageError{err, flags}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	switch {
	case *target != "":
		return runTarget(ctx, out, *target)
	case *name != "":
		return runProbe(ctx, out, *name, &net.Resolver{PreferGo: true})
	default:
		return runDemo(ctx, out)
	}
}

// check refuses what flag lets pass. An empty value is a variable of a script that was not set: the demonstration would look like
// an answer.
func check(flags *flag.FlagSet) error {
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if flags.NFlag() > 1 {
		return errors.New("-target and -probe cannot be combined")
	}
	var err error
	flags.Visit(func(f *flag.Flag) {
		switch value := f.Value.String(); {
		case value == "":
			err = fmt.Errorf("-%s is empty", f.Name)
		case f.Name == "probe" && strings.Contains(value, "://"):
			err = errors.New("-probe takes a name, not a URL: -probe graylog.test")
		}
	})
	return err
}
