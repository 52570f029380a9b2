//go:build !race

package gelf

import (
	"context"
	"testing"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/yardstick"
)

// Not with the race detector: it makes a sync.Pool forget at random.
func TestHandleDoesNotAllocate(t *testing.T) {
	h, s := sinkHandler(t, Options{Delivery: delivery.Options{Overflow: delivery.DropNewest}})
	s.Discard = true
	r := yardstick.Record()
	ctx := context.Background()
	h.Handle(ctx, r) // starts the engine
	if n := testing.AllocsPerRun(1000, func() { h.Handle(ctx, r) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
