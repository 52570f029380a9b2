package resolve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// zonal asks for a name in a zone and for the name itself. What the zone has comes first; all other addresses are there with a lower
// priority, so that whoever chooses among them by health falls back on them by itself when the zone has none that works, and returns
// when it has.
//
// It belongs to one handler, for it remembers what the zone had: a name server that fails, or is silent, has not said that the zone
// is empty.
type zonal struct {
	zone, host *dns
	last       []Endpoint // of the zone
}

// Zonal returns a Resolver that prefers the addresses of "<zone>.<host>". Pools call it for [Options].Zone.
func (d *dns) Zonal(zone string) Resolver {
	t := d.target
	t.host = zone + "." + t.host
	name := fmt.Sprintf("%s:%d", t.host, t.port)
	return &zonal{zone: &dns{hostport: name, target: t, asker: asker{resolver: d.resolver}}, host: d}
}

// validZone says whether zone can stand before the resolver's host.
func validZone(zone string, r Resolver) error {
	host := "host" // of the target, which is checked elsewhere
	if r != nil {
		d, ok := r.(*dns)
		switch {
		case !ok:
			return errors.New("it works with Resolver nil or from DNS only")
		case d.target.addr.IsValid():
			return errors.New("the host must be a name, not an IP address")
		case d.err == nil:
			host = d.target.host
		}
	}
	return checkName(zone + "." + host)
}

// String returns both names, for error texts.
func (z *zonal) String() string { return z.zone.String() + " or " + z.host.String() }

// Resolve implements [Resolver]. Both names are asked for at once: the fallback must be at hand when the zone fails.
func (z *zonal) Resolve(ctx context.Context) (Answer, error) {
	var zone, host Answer
	var zoneErr, hostErr error
	var wg sync.WaitGroup
	wg.Go(func() { zone, zoneErr = z.zone.Resolve(ctx) })
	host, hostErr = z.host.Resolve(ctx)
	wg.Wait()

	switch {
	case len(zone.Endpoints) > 0:
		z.last = zone.Endpoints
	case absent(zoneErr):
		z.last, zoneErr = nil, nil
	default:
		zone.Endpoints = z.last
	}
	if len(zone.Endpoints) > 0 && absent(hostErr) {
		hostErr = nil // a name may have zones only
	}
	a := Answer{TTL: shorter(zone.TTL, host.TTL)}
	local := make(map[Endpoint]bool)
	for _, e := range zone.Endpoints {
		local[e] = true
		a.Endpoints = append(a.Endpoints, e)
	}
	for _, e := range host.Endpoints {
		if !local[e] {
			e.Priority = 1
			a.Endpoints = append(a.Endpoints, e)
		}
	}
	switch {
	case zoneErr == nil:
		return a, hostErr
	case hostErr == nil:
		return a, zoneErr
	}
	return a, fmt.Errorf("%w; %w", zoneErr, hostErr)
}

// absent says whether a name server said that there is no such name, or no address of it.
func absent(err error) bool {
	var failed *net.DNSError
	return errors.As(err, &failed) && failed.IsNotFound
}

// shorter is the smaller one of two TTLs of which either may be unknown.
func shorter(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
