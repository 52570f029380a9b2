// Package inbox keeps what a fake receiver has taken, for tests that look at it and wait for it.
package inbox

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
)

// Inbox holds messages of one receiver. Its methods may be called from any goroutine.
type Inbox[M any] struct {
	name    string
	done    <-chan struct{}
	discard bool
	tell    func(M)

	mu       sync.Mutex
	messages []M
	count    uint64
	arrived  chan struct{} // closed and replaced with every message
}

// New makes the inbox of the receiver called name, to which nothing comes any more when done is closed. With discard the messages are
// counted and told only. tell, which may be nil, is called for each message, by the goroutine that puts it.
func New[M any](name string, done <-chan struct{}, discard bool, tell func(M)) *Inbox[M] {
	return &Inbox[M]{name: name, done: done, discard: discard, tell: tell, arrived: make(chan struct{})}
}

// Put takes a message in. Whatever else the receiver counts about it, it counts before: who has waited for the message may ask.
func (b *Inbox[M]) Put(m M) {
	if b.tell != nil {
		b.tell(m)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count++
	if !b.discard {
		b.messages = append(b.messages, m)
	}
	close(b.arrived)
	b.arrived = make(chan struct{})
}

// Messages returns the messages so far, in the order they came.
func (b *Inbox[M]) Messages() []M {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.messages)
}

// Count is how many have come, discarded ones included.
func (b *Inbox[M]) Count() uint64 {
	count, _ := b.now()
	return count
}

// now returns the count, and what the next message closes.
func (b *Inbox[M]) now() (count uint64, arrived <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.count, b.arrived
}

// Wait returns when n messages have come, counted from the start. When ctx ends before, or the receiver, the error says how many there
// are and, by seen, what came instead.
func (b *Inbox[M]) Wait(ctx context.Context, n int, seen func() string) error {
	var err error
	for err == nil {
		count, arrived := b.now()
		if count >= uint64(n) {
			return nil
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			err = ctx.Err()
		case <-b.done:
			err = net.ErrClosed
		}
	}
	count := b.Count() // the last message may have come with the end
	if count >= uint64(n) {
		return nil
	}
	return fmt.Errorf("%s: %d of %d messages: %w (%s)", b.name, count, n, err, seen())
}
