// Loadtest proves how messages spread over receivers, and whether any is missing: it sends numbered messages at a rate, and says what
// became of them at each address. Started with -receive it is the receivers, which count and look for gaps, so that the two tables
// can be laid side by side.
//
//	go run ./examples/loadtest -receive gelf+tcp://127.0.0.1:7001,gelf+tcp://127.0.0.1:7002,gelf+tcp://127.0.0.1:7003
//	go run ./examples/loadtest -target gelf+tcp://localhost:7001 -addr 127.0.0.1:7001,127.0.0.1:7002,127.0.0.1:7003 -count 3134 -rate 5000
//	go run ./examples/loadtest -target gelf+udp://graylog.test:12201 -rate 500 -for 1m -chart balance.svg
//
// A relay in between, such as HAProxy's log-forward, is the -target, and what it forwards to are the receivers. Then the balance is the
// relay's, and their table shows it:
//
//	go run ./examples/loadtest -receive syslog+tcp://127.0.0.1:7001,syslog+tcp://127.0.0.1:7002,syslog+tcp://127.0.0.1:7003
//	go run ./examples/loadtest -target syslog+tcp://relay.test:601 -count 3134 -rate 5000
//
// Each message reads "loadtest TEST n", TEST being the number of the run in hex: search for it in the log server to count there.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/wholelog/wholelog/resolve"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(exitCode(run(ctx, os.Args[1:], os.Stdout, os.Stderr), os.Stderr))
}

// usageError is a command line that cannot be meant.
type usageError struct {
	error
	flags *flag.FlagSet
}

// errLost is the error of a run that did what it should and whose answer is no.
var errLost = errors.New("messages are missing")

// exitCode reports err and returns what the shell is told: 2 for a wrong command line, which is shown the usage too, 1 when messages
// are missing and for what failed.
func exitCode(err error, stderr io.Writer) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(stderr, "loadtest:", err)
	var wrong usageError
	if !errors.As(err, &wrong) {
		return 1
	}
	wrong.flags.SetOutput(stderr)
	wrong.flags.Usage()
	return 2
}

// settings are the flags.
type settings struct {
	target, receive string
	addrs           string
	rate            float64
	count           int
	length          time.Duration
	loggers, size   int
	policy          resolve.Policy
	wait            time.Duration
	quiet           time.Duration
	ca, cert, key   string
	chart           string
}

// run does what args say: the tables go to out, what happens meanwhile to progress, which is written to by several goroutines at once.
func run(ctx context.Context, args []string, out, progress io.Writer) error {
	flags := flag.NewFlagSet("loadtest", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // flag would print an error that is reported here once more
	s, err := parse(flags, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		flags.SetOutput(out)
		flags.Usage()
		return nil
	case err != nil:
		return usageError{err, flags}
	case s.receive != "":
		return receive(ctx, s, out, progress)
	}
	return send(ctx, s, out, progress)
}

func parse(flags *flag.FlagSet, args []string) (s settings, err error) {
	known := strings.Join(schemes(), ", ")
	flags.StringVar(&s.target, "target", "", "send to this `URL`; its scheme is one of "+known)
	flags.StringVar(&s.receive, "receive", "", "receive at these `URLs`, separated by commas; port 0 takes a free one")
	flags.StringVar(&s.addrs, "addr", "", "send to these `addresses` of the target, host:port and separated by commas, in place of a look-up")
	flags.Float64Var(&s.rate, "rate", 1000, "messages per second, by all loggers together")
	flags.IntVar(&s.count, "count", 0, "end after so many messages")
	flags.DurationVar(&s.length, "for", 0, "end after this time; 10s when there is no -count; when receiving, 0 is without end")
	flags.IntVar(&s.loggers, "loggers", 1, "goroutines that log")
	flags.IntVar(&s.size, "size", 0, "characters of a message, at least; 0 is as short as it can be")
	once := flags.Bool("per-process", false, "choose an address once, and not for each message")
	flags.DurationVar(&s.wait, "wait", 10*time.Second, "at the end, wait so long for what is still on its way")
	flags.DurationVar(&s.quiet, "quiet", 0, "receiving ends when nothing came for this time after the first message; 0 is never")
	flags.StringVar(&s.ca, "ca", "", "PEM `file` with the certificate authorities to trust, in place of the system's")
	flags.StringVar(&s.cert, "cert", "", "PEM `file` with the certificate that receivers over TLS show")
	flags.StringVar(&s.key, "key", "", "PEM `file` with its key")
	flags.StringVar(&s.chart, "chart", "", "draw the messages of each address, over time, into this SVG `file`")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if *once {
		s.policy = resolve.PerProcess
	}
	if s.count == 0 && s.length == 0 && s.receive == "" {
		s.length = 10 * time.Second
	}
	return s, s.check(flags.Args())
}

func (s settings) check(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("%q is not a flag", rest[0])
	case (s.target == "") == (s.receive == ""):
		return errors.New("want either -target or -receive")
	case !(s.rate > 0 && s.rate <= 1e7): // also true for NaN
		return fmt.Errorf("-rate %v is outside 0…10000000", s.rate)
	case s.count < 0, s.length < 0, s.size < 0, s.wait < 0, s.quiet < 0:
		return errors.New("-count, -for, -size, -wait and -quiet are not negative")
	case s.size > 8<<20:
		return fmt.Errorf("-size %d is more than 8 MiB", s.size)
	case s.loggers < 1 || s.loggers > 10_000:
		return fmt.Errorf("-loggers %d is outside 1…10000", s.loggers)
	}
	return nil
}
