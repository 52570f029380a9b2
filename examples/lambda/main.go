// Lambda is an AWS Lambda function that logs to Graylog over UDP. What a function of yours needs is in main, newHandler, flush and
// shutdown; accept stands for its work.
//
// Between two invocations the process stands still: goroutines do not run, timers sleep, and the monotonic clock stops while the
// wall clock goes on. Whatever a logger meant to send in the background is sent minutes later or, when the environment is thrown
// away meanwhile, never. So the function has everything sent before it answers.
package main

import (
	"context"
	"errors"
	"log"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/gelf"
	"github.com/wholelog/wholelog/resolve"
)

const (
	readyBudget = time.Second            // of the 10 s that Lambda gives the init phase
	flushBudget = 500 * time.Millisecond // used up only while nothing can be sent; the function's timeout must leave room for it
	closeBudget = 250 * time.Millisecond // Lambda may kill 300 ms after SIGTERM, and exiting takes a moment as well
)

// main is the init phase up to StartWithOptions: what it makes serves all invocations of this environment.
func main() {
	h, err := newHandler(os.Getenv("GRAYLOG_URL"), os.Getenv("GRAYLOG_NODES"))
	if err != nil {
		log.Fatal(err) // the URL or an option is wrong, which no retry mends: let the deployment fail
	}
	// Looking the name up belongs here and not in somebody's first request. That it failed is no reason for the function to fail:
	// records wait, and the look-up is tried again while invocations run.
	ctx, cancel := context.WithTimeout(context.Background(), readyBudget)
	if err := h.Ready(ctx); err != nil {
		log.Print("not ready, logs will wait: ", err)
	}
	cancel()

	slog.SetDefault(slog.New(h))
	// SetDefault sends package log through h as well, but the last words of aws-lambda-go are a log.Fatal, which waits for no queue.
	// They, and the troubles of logging itself, belong on stderr: CloudWatch keeps that.
	log.SetOutput(os.Stderr)

	// Lambda sends SIGTERM only where an extension is registered. WithEnableSIGTERM registers one inside this process; without it
	// the end of an environment is a SIGKILL, and only what Flush has sent is safe.
	lambda.StartWithOptions(func(ctx context.Context, o order) (string, error) {
		defer flush(ctx, h) // deferred, so that an error or a panic is logged too: after a panic the process ends
		return accept(ctx, o)
	}, lambda.WithEnableSIGTERM(func() { shutdown(h) }))
}

// newHandler makes the one handler of this environment. nodes, host:port with commas between, may stand in for the DNS.
func newHandler(url, nodes string) (*gelf.Handler, error) {
	o := &gelf.Options{
		FromContext: func(ctx context.Context) []slog.Attr {
			if call, ok := lambdacontext.FromContext(ctx); ok {
				return []slog.Attr{slog.String("request_id", call.AwsRequestID)}
			}
			return nil
		},
		// An environment serves one invocation at a time and thousands run side by side: each keeps the address it chose at
		// random, and together they are balanced. Each needs one source port only: the network's word that nothing listens at
		// the address any more comes back to the port that sent, and is read when this port sends again.
		Flows:    1,
		Resolve:  resolve.Options{Policy: resolve.PerProcess},
		Delivery: delivery.Options{CloseTimeout: closeBudget, OnDrop: func(d delivery.Drop) { log.Print(d) }},
	}
	if nodes != "" {
		o.Resolve.Resolver = resolve.Static(strings.Split(nodes, ",")...)
	}
	return gelf.NewHandler(url, o)
}

// flush ends every invocation: as soon as the answer is out, the process may be frozen. What does not get through within the budget
// is not lost, it waits for the next invocation; and the caller gets the answer.
func flush(ctx context.Context, h *gelf.Handler) {
	ctx, cancel := context.WithTimeout(ctx, flushBudget)
	defer cancel()
	if err := h.Flush(ctx); err != nil {
		log.Print(err)
	}
}

// shutdown is the last chance for what no Flush got through. It exits because Lambda waits, billed, for the process to end.
func shutdown(h *gelf.Handler) {
	slog.Info("environment ends")
	if err := h.Close(); err != nil {
		log.Print(err)
	}
	os.Exit(0)
}

type order struct {
	ID        string   `json:"id"`
	Documents []string `json:"documents"`
}

// accept is the work. It logs with the invocation's ctx, from which every record gets its request id.
func accept(ctx context.Context, o order) (string, error) {
	slog.InfoContext(ctx, "order received", "order", o.ID)
	for _, text := range o.Documents {
		slog.InfoContext(ctx, "order document\n"+text, "order", o.ID) // however long
	}
	if o.ID == "" {
		slog.ErrorContext(ctx, "order refused")
		return "", errors.New("an order needs an id")
	}
	slog.InfoContext(ctx, "order accepted", "order", o.ID)
	return "accepted " + o.ID, nil
}
