//go:build !race

package syslog

import (
	"context"
	"log/slog"
	"testing"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/yardstick"
)

// Not with the race detector: it makes a sync.Pool forget at random.
func TestHandleDoesNotAllocate(t *testing.T) {
	for form := range AttrsText + 1 {
		h, s := sinkHandler(t, Options{Attrs: form, Sequence: true, Delivery: delivery.Options{Overflow: delivery.DropNewest}})
		s.Discard = true
		r := yardstick.Record()
		bound := h.WithAttrs([]slog.Attr{slog.String("service", "shop")}).WithGroup("g")
		ctx := context.Background()
		bound.Handle(ctx, r) // starts the engine
		if n := testing.AllocsPerRun(1000, func() { bound.Handle(ctx, r) }); n != 0 {
			t.Errorf("%v: %v allocations", form, n)
		}
	}
}
