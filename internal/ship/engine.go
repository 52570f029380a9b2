package ship

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/pool"
	"github.com/wholelog/wholelog/jitter"
)

// Route is a way to a service: a protocol and the addresses that speak it.
type Route struct {
	Transport Transport
	Pool      *pool.Pool
}

// Config makes an [Engine].
type Config struct {
	Name     string                                 // the protocol, for error texts ("gelf")
	Main     Route                                  // where records go
	Fallback Route                                  // where a record goes that Main cannot carry; the zero Route: nowhere
	Options  delivery.Options                       // valid; see delivery.Options.Validate
	Own      func(dst []byte, r slog.Record) []byte // encodes the engine's own records
}

// maxRecord is the most bytes one record can have, whatever the budget: a receiver that inflates a message stops at 8 MiB.
const maxRecord = 8<<20 - 1

// Engine takes encoded records and brings each to one address. Its methods are safe for concurrent use.
//
// A record's way is one direction: Put appends it to the queue; the dispatcher (one goroutine) deals it to a link; the link's
// goroutine sends it; settle ends it or puts it back in front of the queue.
//
// Two mutexes stand on that way, so that callers who log and links that send seldom meet: mu guards what waits (arena, queues,
// counters), links guards what is dealt (endpoints, slots with their inboxes and batches). Who needs both locks links first.
// Neither is held for I/O or for a call of somebody else's code.
type Engine struct {
	name      string
	opts      delivery.Options // defaults resolved
	clock     clock
	max       int      // most bytes of one record
	handful   int      // bytes that the dispatcher takes from the queue at once
	fill      int      // cost of the queue that wakes the dispatcher between two ticks
	routes    []*route // main, then fallback
	hooks     *hooks
	encodeOwn func(dst []byte, r slog.Record) []byte
	full      [4]error // what Put returns for a full queue, made once

	links   sync.Mutex
	shaper  shaper
	held    int           // cost of records that are dealt and not settled
	pinned  int           // charges of the segments and blocks that links have records of
	enough  bool          // links hold so much that nothing was taken from the queue
	runs    []run         // delivered, not yet in the ledger
	latest  time.Time     // of the last delivery
	due     []*slot       // were dealt something, to be woken
	leaving []*slot       // Sync: links of addresses that left, to be closed by the next caller
	dialled chan struct{} // Ready: closed when a link was opened or could not be; nil when nobody waits

	mu      sync.Mutex
	arena   arena
	queue   list // not yet dealt, in order of Seq
	ledger  ledger
	summary summary
	epochs  epochs
	born    stamp         // given to records until the dispatcher looks again
	turned  Rec           // stands for records that were turned away
	refuse  bool          // Block: a wait ended in a drop; calls fail at once until a quarter of the budget is free
	roomy   chan struct{} // Block: closed when memory was freed; nil when nobody waits
	state   lifeState     // written with links and mu

	// What Put knows of the dispatcher, guarded by mu.
	parked  bool // it waits in select
	ticking bool // a short tick is set, so that Put need not wake it
	urgent  bool // a record at Error or above came since it last looked
	hungry  bool // what it has in hand waits for a link; a new record changes nothing
	wake    chan struct{}

	flushes atomic.Int32    // Flush calls under way: links do not linger and are nudged
	ctx     context.Context // ends when Close gives up waiting: dials, look-ups and sends
	cancel  context.CancelFunc
	wg      sync.WaitGroup  // dispatcher and links
	ending  atomic.Bool     // Close was called
	parting context.Context // for goodbyes, once state is over
	closed  chan struct{}   // Close is over
	result  error           // of Close
}

// lifeState says how far an engine is in its life.
type lifeState uint8

const (
	fresh   lifeState = iota // no goroutine yet
	running                  // the dispatcher runs
	closing                  // Put refuses
	over                     // Close has returned or is about to
)

// New makes an engine. It starts nothing: the first Put, Ready or Flush does.
func New(c Config) *Engine {
	e := &Engine{
		name:   c.Name,
		opts:   withDefaults(c.Options),
		wake:   make(chan struct{}, 1),
		closed: make(chan struct{}),
	}
	e.clock.start = time.Now()
	e.max = min(maxRecord, e.opts.QueueBytes/4)
	e.arena.budget = e.opts.QueueBytes
	e.arena.reserve = int(max(e.opts.Reserve, 0) * float64(e.opts.QueueBytes))
	e.shaper = newShaper(e.opts)
	e.handful = min(e.opts.QueueBytes/8, 8*segmentBytes)
	e.fill = min(max(e.opts.QueueBytes/32, segmentBytes), e.opts.QueueBytes/8)
	e.ctx, e.cancel = context.WithCancel(context.Background())
	e.hooks = newHooks(c.Name, e.opts)
	e.full = fullErrors()
	e.encodeOwn = c.Own
	e.summary.on = c.Options.Summary && c.Own != nil
	for i, r := range []Route{c.Main, c.Fallback} {
		if r.Transport == nil {
			continue
		}
		rt := newRoute(e, r, i > 0)
		e.routes = append(e.routes, rt)
		r.Pool.Bind(pool.Hooks{Changed: e.signal, Trouble: e.hooks.trouble, Connected: rt.connected})
	}
	return e
}

// withDefaults resolves the zero values of o.
func withDefaults(o delivery.Options) delivery.Options {
	set := func(d *time.Duration, def time.Duration) {
		if *d == 0 {
			*d = def
		}
	}
	if o.QueueBytes == 0 {
		o.QueueBytes = 16 << 20
	}
	if o.Reserve == 0 {
		o.Reserve = 0.1
	}
	if o.Tries == 0 {
		o.Tries = 10
	}
	if o.Backoff.Max == 0 {
		o.Backoff.Max = 30 * time.Second
	}
	set(&o.MaxBlock, 100*time.Millisecond)
	set(&o.DialTimeout, 5*time.Second)
	set(&o.SendTimeout, 10*time.Second)
	set(&o.CloseTimeout, 5*time.Second)
	set(&o.SyncTimeout, 2*time.Second)
	return o
}

// MaxRecord is the most bytes of one record that Put takes: a quarter of the budget, and less than 8 MiB.
func (e *Engine) MaxRecord() int { return e.max }

// Repaired counts n names or values that were mended.
func (e *Engine) Repaired(n int) {
	if n > 0 {
		e.ledger.repaired.Add(uint64(n))
	}
}

// Truncated counts n records that were shortened.
func (e *Engine) Truncated(n int) {
	if n > 0 {
		e.ledger.truncated.Add(uint64(n))
	}
}

// start brings the dispatcher to life. The caller holds mu.
func (e *Engine) start() {
	if e.state != fresh || e.opts.Sync {
		return
	}
	e.state = running
	e.born = e.clock.stamp()
	e.wg.Go(e.dispatch)
}

// signal wakes the dispatcher, if it sleeps; a signal that finds one pending is the same signal. It never waits.
func (e *Engine) signal() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// backoff is the delay after the failures-th failure in a row, from 1.
func (e *Engine) backoff(failures int) time.Duration { return e.opts.Backoff.Delay(failures - 1) }

// retryAfterLimit bounds what a server may ask us to wait.
func (e *Engine) retryAfterLimit() time.Duration { return max(e.opts.Backoff.Max, time.Minute) }

// aged returns the jittered form of an age limit, so that links made at the same time do not end at the same time.
func aged(limit time.Duration) time.Duration { return jitter.Duration(limit, 0.2) }
