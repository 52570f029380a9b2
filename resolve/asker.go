package resolve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"
)

// lookupLimit ends a look-up. The 5 s for each query that package net allows are far too long for something that records wait for.
const lookupLimit = 2 * time.Second

// asker makes look-ups with a net.Resolver, within lookupLimit, and finds out the TTL of what was found.
//
// Within its 2 s a look-up asks a second time, or the next server, when a query is not answered: see [wire]. A server that needs long
// for every answer would never be heard that way, so after a look-up that ran out of time the next one waits for its first query to
// the end, and the one after a failure of that does not.
type asker struct {
	resolver *net.Resolver
	slow     atomic.Bool
}

// ask calls f with the resolver that it should use. The TTL, 0 where it is not known, counts also beside an error.
func (a *asker) ask(ctx context.Context, f func(context.Context, *net.Resolver) error) (ttl time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookupLimit)
	defer cancel()
	slow := a.slow.Load()
	w := newWire(ctx, slow)
	if err = f(ctx, listening(a.resolver, w)); err == nil {
		return w.smallest(), nil
	}
	var failed *net.DNSError
	if errors.As(err, &failed) && failed.IsTimeout {
		a.slow.Store(!slow)
	}
	return w.smallest(), fmt.Errorf("resolve: %w", err)
}

// plain takes the server out of an error: package net names that of resolv.conf, which a Dial of one's own need not have asked.
func (a *asker) plain(err error) error {
	var failed *net.DNSError
	if !errors.As(err, &failed) || a.resolver == nil || a.resolver.Dial == nil {
		return err
	}
	here := *failed
	here.Server = ""
	return &here
}

// listening returns r with w on its connections, where r has a Dial of its own or can be given one.
func listening(r *net.Resolver, w *wire) *net.Resolver {
	if r == nil {
		r = &net.Resolver{PreferGo: true}
	}
	if !r.PreferGo {
		return r
	}
	dial := r.Dial
	if dial == nil {
		var d net.Dialer
		dial = d.DialContext
	}
	// A resolver for this look-up alone: the shared one must not be changed, and it would share queries between look-ups.
	return &net.Resolver{PreferGo: true, StrictErrors: r.StrictErrors, Dial: w.dial(dial)}
}
