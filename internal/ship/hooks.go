package ship

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wholelog/wholelog/delivery"
)

const (
	maxDropKinds = 256     // different (reason, address, level) waiting for the hook; further ones are summed without address
	maxDropData  = 8 << 20 // bytes of records copied for the hook
)

// hooks calls OnDrop and OnError. In the pipeline one goroutine does, which lives while there is something to say, so a hook is
// never called twice at once and never holds a link up. In Sync mode the caller of Handle does it, when its record is settled.
type hooks struct {
	name    string
	onDrop  func(delivery.Drop)
	onError func(error)
	print   func(error) // what nobody hears otherwise
	sync    bool

	mu        sync.Mutex
	drops     map[dropKey]*delivery.Drop
	order     []dropKey
	dataBytes int
	troubles  map[delivery.Cause]*trouble
	errs      []report
	losses    map[delivery.Reason]*loss // where there is no OnDrop
	due       []*loss
	summary   func() // sends the library's own record
	running   bool
	idle      chan struct{} // closed when the goroutine ends
	later     *time.Timer   // tells what was kept back; nil: nothing is
	ending    bool          // Close was called: what is kept back now stays untold
	over      bool          // and no further call is made

	calling atomic.Int64 // id of the goroutine that is inside a hook; 0: none
}

type dropKey struct {
	reason delivery.Reason
	addr   netip.AddrPort
	level  slog.Level
}

func newHooks(name string, o delivery.Options) *hooks {
	h := &hooks{name: name, onDrop: o.OnDrop, onError: o.OnError, sync: o.Sync}
	h.drops = make(map[dropKey]*delivery.Drop)
	h.troubles = make(map[delivery.Cause]*trouble)
	h.losses = make(map[delivery.Reason]*loss)
	h.print = printError
	if h.onError == nil {
		h.onError = h.print
	}
	return h
}

// drop adds a loss to the sum of its kind: of its reason, where there is nobody to tell more. The data is copied as long as the loss stands alone.
func (h *hooks) drop(d *delivery.Drop) {
	if h.onDrop == nil {
		h.lost(d.Reason, d.Records, d.Bytes)
		return
	}
	h.add(*d)
}

func (h *hooks) add(d delivery.Drop) {
	h.mu.Lock()
	defer h.mu.Unlock()
	k := dropKey{d.Reason, d.Addr, d.Level}
	if h.drops[k] == nil && len(h.drops) >= maxDropKinds {
		k = dropKey{reason: d.Reason} // of which there are few
		d.Addr, d.Level = k.addr, k.level
	}
	sum := h.drops[k]
	if sum != nil {
		sum.Records += d.Records
		sum.Bytes += d.Bytes
		h.dataBytes -= len(sum.Data)
		sum.Data = nil
		return
	}
	if h.dataBytes+len(d.Data) <= maxDropData {
		d.Data = bytes.Clone(d.Data)
		h.dataBytes += len(d.Data)
	} else {
		d.Data = nil
	}
	h.drops[k] = &d
	h.order = append(h.order, k)
	h.kick()
}

// send has the hook goroutine call f: it encodes a record, which may run the user's code.
func (h *hooks) send(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.summary = f
	h.kick()
}

// kick starts the goroutine if it does not run. The caller holds mu.
func (h *hooks) kick() {
	if h.running || h.sync || h.over {
		return
	}
	h.running = true
	h.idle = make(chan struct{})
	go h.run(h.idle)
}

// run calls hooks until nothing is left to say. A hook may end the goroutine (runtime.Goexit, as t.FailNow does): then another one
// goes on.
func (h *hooks) run(idle chan struct{}) {
	defer close(idle)
	over := false
	defer func() {
		if over {
			return
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.running = false
		if h.busy() {
			h.kick()
		}
	}()
	for h.next() {
	}
	over = true
}

// busy says whether there is a call to make. The caller holds mu.
func (h *hooks) busy() bool {
	return len(h.errs)+len(h.order)+len(h.due) > 0 || h.summary != nil
}

// next makes one call and says whether there was one to make.
func (h *hooks) next() bool {
	h.mu.Lock()
	if h.over {
		h.running = false
		h.mu.Unlock()
		return false
	}
	if len(h.errs) > 0 {
		r := h.errs[0]
		h.errs = h.errs[1:]
		r.of.waiting = false
		h.remind(time.Now())
		h.mu.Unlock()
		h.call(func() { h.onError(r.err) })
		return true
	}
	if send := h.summary; send != nil {
		h.summary = nil
		h.mu.Unlock()
		send()
		return true
	}
	if len(h.order) > 0 {
		k := h.order[0]
		h.order = h.order[1:]
		d := *h.drops[k]
		delete(h.drops, k)
		h.dataBytes -= len(d.Data)
		h.mu.Unlock()
		h.call(func() { h.onDrop(d) })
		return true
	}
	if len(h.due) > 0 {
		d := h.due[0].take()
		h.due = h.due[1:]
		h.mu.Unlock()
		h.call(func() { h.print(fmt.Errorf("%s: %w", h.name, d)) })
		return true
	}
	h.running = false
	h.mu.Unlock()
	return false
}

// call runs a hook, marked as running on this goroutine. A hook that panics is reported like any trouble, once.
func (h *hooks) call(f func()) {
	h.calling.Store(goroutineID())
	defer func() {
		h.calling.Store(0)
		if p := recover(); p != nil {
			h.trouble("hook", fmt.Errorf("a hook panicked: %v", p))
		}
	}()
	f()
}

// flushSync is the end of Handle in Sync mode: it makes the calls that are due, unless another goroutine is at it.
func (h *hooks) flushSync() {
	h.mu.Lock()
	h.release(time.Now())
	if h.running || h.over || !h.busy() {
		h.mu.Unlock()
		return
	}
	h.running = true
	h.idle = make(chan struct{})
	idle := h.idle
	h.mu.Unlock()
	h.run(idle)
}

// finish says what was kept back and waits for the last call, unless Close was called from inside it.
func (h *hooks) finish(timeout time.Duration) error {
	h.mu.Lock()
	h.ending = true
	if h.later != nil {
		h.later.Stop()
	}
	if h.release(time.Now().Add(quietTime)); h.busy() {
		h.kick()
	}
	h.mu.Unlock()
	if h.sync {
		h.flushSync()
	}
	return h.await(timeout)
}

// await waits for the last call, and has none follow it.
func (h *hooks) await(timeout time.Duration) error {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for {
		h.mu.Lock()
		if h.running && h.inside() {
			h.mu.Unlock()
			return nil
		}
		idle, busy := h.idle, h.running
		h.over = !busy
		h.mu.Unlock()
		if !busy {
			return nil
		}
		select {
		case <-idle:
		case <-timer.C:
			h.mu.Lock()
			h.over = true
			h.mu.Unlock()
			return fmt.Errorf("%s: a hook has not returned", h.name)
		}
	}
}

// inside says whether the caller runs inside a hook. A goroutine is known by its id, which is looked up only while a hook runs.
func (h *hooks) inside() bool {
	id := h.calling.Load()
	return id != 0 && id == goroutineID()
}

// goroutineID reads the number that the runtime prints in every stack trace ("goroutine 17 [running]:").
func goroutineID() int64 {
	var buf [40]byte
	s := buf[:runtime.Stack(buf[:], false)]
	var id int64
	for _, c := range s[len("goroutine "):] {
		if c < '0' || c > '9' {
			break
		}
		id = id*10 + int64(c-'0')
	}
	return id
}
