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
	"time"
)

// patience bounds a run against a server or name that does not answer; the demonstration needs a few seconds of its ten.
const patience = 10 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	flags.SetOutput(out)
	target := flags.String("target", "", "send the messages to this server, for example udp://graylog.test:12201")
	name := flags.String("probe", "", "print how the DNS answers of this name are distributed")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if *target != "" && *name != "" {
		return errors.New("-target and -probe cannot be combined")
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
