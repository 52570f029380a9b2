package ship

import (
	"errors"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"

	"github.com/wholelog/wholelog/delivery"
)

// The kinds of links that protocols have, each as a fake over a fakeNet. Their faults come from functions, so that a test can choose
// them or throw dice.

// dice are a random source with a fixed seed, for all goroutines of a test.
type dice struct {
	mu  sync.Mutex
	rnd *rand.Rand
}

func newDice(seed uint64) *dice { return &dice{rnd: rand.New(rand.NewPCG(seed, 1))} }

func (d *dice) intn(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rnd.IntN(n)
}

// oneIn is true once in n throws.
func (d *dice) oneIn(n int) bool { return d.intn(n) == 0 }

// ms is a number of milliseconds below n.
func (d *dice) ms(n int) time.Duration { return time.Duration(d.intn(n)) * time.Millisecond }

// datagramLinks are links whose every write succeeds. Where nobody listens a datagram is lost without a word, and the next write fails with
// the ICMP error that it caused.
func datagramLinks(dead func(l *fakeLink) bool) *fakeNet {
	net := newFakeNet(Limits{Blind: true})
	var mu sync.Mutex
	icmp := make(map[string]bool) // addresses from which an error is waiting
	net.send = func(l *fakeLink, b *Batch) error {
		for i := range b.Len() {
			mu.Lock()
			refused := icmp[l.addr]
			down := !refused && dead(l)
			icmp[l.addr] = down
			mu.Unlock()
			switch {
			case refused: // all before it left
				b.Settle(i, b.Len(), Outcome{Do: Requeue, Cause: delivery.CauseRefused, Err: syscall.ECONNREFUSED})
				return nil
			case down:
				l.note(net.lost, b, i, i+1)
			default:
				l.take(b, i, i+1)
			}
			l.confirm(b, i, i+1)
		}
		return nil
	}
	return net
}

// streamLinks are links whose peer stops reading at some byte of the connection (stall < 0: never): the frame that has it is not whole, and
// the write of its rest waits until the connection is given up. What was acknowledged before is known then, or not.
func streamLinks(limits Limits, stall func() int, known func() bool) *fakeNet {
	limits.Faint = true
	net := newFakeNet(limits)
	net.send = func(l *fakeLink, b *Batch) error {
		if l.written == 0 {
			l.room = stall()
		}
		for i := range b.Len() {
			n := len(b.At(i).Bytes())
			if l.room >= 0 && l.written+n > l.room {
				l.written = l.room
				if known() {
					l.confirm(b, 0, i)
				}
				return l.hang()
			}
			l.written += n
			l.take(b, i, i+1)
		}
		l.confirm(b, 0, b.Len())
		return nil
	}
	return net
}

// requestLinks are links that bring a batch, wait for an answer and learn that the first k records were taken and what became of the rest.
// A Drop names one record; those behind it were not looked at. With a negative k the answer never comes, though all was taken.
func requestLinks(limits Limits, wait func() time.Duration, answer func(n int) (k int, rest Outcome)) *fakeNet {
	net := newFakeNet(limits)
	net.send = func(l *fakeLink, b *Batch) error {
		n := b.Len()
		select {
		case <-time.After(wait()):
		case <-l.closed:
			return errLinkClosed
		}
		k, rest := answer(n)
		if k < 0 {
			l.take(b, 0, n)
			return l.hang()
		}
		l.take(b, 0, k)
		l.confirm(b, 0, k)
		if rest.Do == Drop && k < n {
			b.Settle(k, k+1, rest)
			k, rest = k+1, Outcome{Do: Requeue}
		}
		b.Settle(k, n, rest)
		return nil
	}
	return net
}

// ackedLinks are links that take everything at once and say so later, record by record and the last one first. Before an
// acknowledgement the peer may go away, having taken the record.
func ackedLinks(limits Limits, wait func() time.Duration, leaves func() bool) *fakeNet {
	net := newFakeNet(limits)
	net.meet = func(l *fakeLink, call string) {
		if call == "drain" {
			l.acks.Wait()
		}
	}
	net.send = func(l *fakeLink, b *Batch) error {
		n := b.Len()
		l.take(b, 0, n)
		l.acks.Go(func() {
			for i := n - 1; i >= 0; i-- {
				select {
				case <-time.After(wait()):
				case <-l.closed:
					return
				}
				if leaves() {
					l.leave()
					return
				}
				l.confirm(b, i, i+1)
			}
		})
		return nil
	}
	return net
}

// halfOpenLinks are streams of which some have a peer that vanished without a word: writes go into our own kernel's buffer until that is
// full, nothing is acknowledged and nothing arrives. Keep-alive finds out after a time.
func halfOpenLinks(limits Limits, buffer int, keepAlive time.Duration, vanished func() bool) *fakeNet {
	limits.Faint = true
	net := newFakeNet(limits)
	net.send = func(l *fakeLink, b *Batch) error {
		if l.written == 0 {
			if l.room = -1; vanished() {
				l.room = buffer
				l.acks.Go(func() {
					select {
					case <-time.After(keepAlive):
						l.leave()
					case <-l.closed:
					}
				})
			}
		}
		for i := range b.Len() {
			l.written += len(b.At(i).Bytes())
		}
		switch {
		case l.room < 0:
			l.deliver(b)
			return nil
		case l.written <= l.room:
			return nil
		}
		select {
		case <-l.closed:
			return errLinkClosed
		case <-l.gone:
			return &Fault{delivery.CauseTimeout, errors.New("no answer to keep-alive")}
		}
	}
	return net
}
