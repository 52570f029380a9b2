// Package front is what the handlers of all protocols have between a log call and the queue: the pool of encoders, the numbers, the
// counting and the net under a panic. A protocol brings its encoder, and its Handle reads
//
//	defer c.Catch(r.Level, &err)
//	e := c.Borrow()
//	encode r with e, as number c.Number()
//	err = c.Submit(r.Level, the message, what was done to it)
//	c.Return(e)
//	return err
//
// It is written there, and not here around a call of the protocol's, because a record that is handed to a function which the compiler
// does not know moves to the heap.
package front

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/attrs"
	"github.com/wholelog/wholelog/internal/ship"
)

// Encoder turns records into messages, one at a time.
type Encoder interface {
	// Reusable says whether the encoder is kept for another record. One that a giant passed through is left to the garbage collector.
	Reusable() bool
}

// Config makes a [Core].
type Config[E Encoder] struct {
	Ship     ship.Config                      // Own is filled in by New
	Encoder  func() E                         // makes one when all others are in use
	Own      func(e E, r *slog.Record) []byte // encodes a record of the engine's own; the bytes are the encoder's
	Sequence bool                             // records are numbered
}

// Core is what a handler and all those derived from it share. Its methods are safe for concurrent use.
type Core[E Encoder] struct {
	*ship.Engine
	name     string
	encoders sync.Pool // of E
	numbered bool
	seq      atomic.Uint64
}

// New makes a core. It starts nothing.
func New[E Encoder](c Config[E]) *Core[E] {
	f := &Core[E]{name: c.Ship.Name, numbered: c.Sequence}
	f.encoders.New = func() any { return c.Encoder() }
	// The engine's own records take no number: that would look like a gap in the program's.
	c.Ship.Own = func(dst []byte, r slog.Record) []byte {
		e := f.Borrow()
		dst = append(dst, c.Own(e, &r)...)
		f.Return(e)
		return dst
	}
	f.Engine = ship.New(c.Ship)
	return f
}

// Borrow takes an encoder that nobody else uses.
func (c *Core[E]) Borrow() E { return c.encoders.Get().(E) }

// Return gives back what Borrow took. What it encoded is not valid any more.
func (c *Core[E]) Return(e E) {
	if e.Reusable() {
		c.encoders.Put(e)
	}
}

// Number returns the number of the next record, from 1; 0 when records are not numbered.
func (c *Core[E]) Number() uint64 {
	if !c.numbered {
		return 0
	}
	return c.seq.Add(1)
}

// Submit hands a message to the queue and counts what was done to it: how many values and names were mended, and whether it was cut. The
// error is the one that Put of [ship.Engine] returns.
func (c *Core[E]) Submit(level slog.Level, message []byte, repaired int, cut bool) error {
	err := c.Put(level, message)
	if err != delivery.ErrClosed { // itself, and not in a Drop: after Close nothing counts
		c.Repaired(repaired)
		if cut {
			c.Truncated(1)
		}
	}
	return err
}

// Catch is deferred by a Handle before it begins to encode: a panic costs the record, and the encoder that was borrowed, but not the
// program. Calls of the user's code are guarded one by one, where the attribute can say what happened; this is the net below.
func (c *Core[E]) Catch(level slog.Level, err *error) {
	if p := recover(); p != nil {
		*err = c.Refuse(level, 0, delivery.ReasonPanicked, fmt.Errorf("%s: encoding panicked: %s", c.name, attrs.PanicText(p)))
	}
}

// NewRun returns 64 random bits in hex, which tell one run of a program, with its sequence numbers, from the next.
func NewRun() string { return fmt.Sprintf("%016x", rand.Uint64()) }
