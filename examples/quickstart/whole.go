package main

import (
	"context"
	"log/slog"

	"github.com/wholelog/wholelog/gelf"
	"github.com/wholelog/wholelog/resolve"
)

// runWhole sends the load by wholelog's public API. The resolver is set because the name exists on this machine's loopback only;
// a service leaves Options out.
func runWhole(ctx context.Context, b *bed) ([]row, error) {
	service := b.Service
	opts := &gelf.Options{Resolve: resolve.Options{Resolver: b.Resolver}}
	// <difference>
	h, err := gelf.NewHandler("udp://"+service, opts)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	log := slog.New(h)
	// </difference>
	// Flush is for the demonstration's sake, which counts after each message. A service logs and goes on.
	send := func(ctx context.Context, m message) error {
		log.InfoContext(ctx, m.text(), "size", m.size, "number", m.number)
		return h.Flush(ctx)
	}
	return b.run(ctx, send, func() uint64 { return h.Stats().Bytes })
}
