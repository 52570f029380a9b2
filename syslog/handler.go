package syslog

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/attrs"
	"github.com/wholelog/wholelog/internal/front"
	"github.com/wholelog/wholelog/internal/mask"
	"github.com/wholelog/wholelog/internal/pool"
	"github.com/wholelog/wholelog/internal/ship"
	"github.com/wholelog/wholelog/resolve"
)

// Handler is a [slog.Handler] that sends each record as one syslog message. Its methods are safe for concurrent use. It is made by
// [NewHandler] only: the zero Handler is not usable.
//
// Groups become prefixes, the attribute k in the group g being g.k, and objects with [AttrsJSON].
//
// WithAttrs and WithGroup return handlers that share everything else with the one they came from: one queue, one set of
// connections, one Close.
type Handler struct {
	core  *core
	scope *scope
}

var _ slog.Handler = (*Handler)(nil)

// core is what a handler and all those derived from it share.
type core struct {
	*front.Core[*encoder]
	config config
	limit  int // bytes of a message
}

// NewHandler returns a handler that sends to target, one of
//
//	udp://host:port     a datagram for each message (RFC 5426)
//	tcp://host:port     octet-counted messages on a stream (RFC 6587)
//	tls://host:port     the same, encrypted (RFC 5425)
//	unix:///path        a datagram for each message to a local socket, such as /dev/log; lines where the socket is a stream
//
// The port is always required; an IPv6 address stands in brackets. A path is taken as it stands: % escapes nothing. The schemes relp
// and relp+tls are read, and not available in this version.
//
// It fails only when target or an option is wrong, with an error that names it and a nil handler. It neither looks up the host nor
// connects: that begins with the first record or Ready, and until it succeeds records wait.
//
// A nil opts means every default.
func NewHandler(target string, opts *Options) (*Handler, error) {
	h, err := open(target, *cmp.Or(opts, new(Options)))
	if err != nil {
		return nil, fmt.Errorf("syslog: %w", err)
	}
	return h, nil
}

// open is NewHandler with errors that carry no prefix.
func open(url string, o Options) (*Handler, error) {
	t, err := parseTarget(url)
	if err != nil {
		return nil, fmt.Errorf("target: %w", err)
	}
	c, err := newConfig(t, o)
	if err != nil {
		return nil, err
	}
	transport, err := c.transport()
	if err != nil {
		return nil, fmt.Errorf("target: %w", err)
	}
	if t.scheme == "unix" {
		o.Resolve.Resolver = localSocket{}
	} else if o.Resolve.Resolver == nil {
		if o.Resolve.Resolver, err = t.resolver(); err != nil {
			return nil, fmt.Errorf("target: %w", err)
		}
	}
	return newHandler(c, c.route(transport, o.Resolve, o.Delivery), o.Delivery), nil
}

// transport makes what speaks the scheme of the target. It is the one place that knows which schemes there are transports for.
func (c *config) transport() (ship.Transport, error) {
	switch c.target.scheme {
	case "udp":
		return newUDP(c), nil
	case "tcp", "tls":
		return c.newStream(""), nil
	case "unix":
		return newUnix(c), nil
	}
	return nil, fmt.Errorf("scheme %s is not available in this version", c.target.scheme)
}

// route is the way to the target by any transport.
func (c *config) route(t ship.Transport, r resolve.Options, d delivery.Options) ship.Route {
	return ship.Route{Transport: t, Pool: pool.New(pool.Config{Options: r, Backoff: d.Backoff, Local: c.target.scheme == "unix"})}
}

// newHandler makes a handler over any route.
func newHandler(c config, main ship.Route, d delivery.Options) *Handler {
	if c.sequence {
		c.header.run = front.NewRun()
	}
	h := &Handler{core: &core{config: c}, scope: new(scope)}
	h.core.Core = front.New(front.Config[*encoder]{
		Ship:    ship.Config{Name: "syslog", Main: main, Options: d},
		Encoder: func() *encoder { return newEncoder(&h.core.config) },
		Own: func(e *encoder, r *slog.Record) []byte {
			e.record(context.Background(), h.scope, 0, r, h.core.limit)
			return e.out
		},
		Sequence: c.sequence,
	})
	h.core.limit = min(c.maxSize, h.core.MaxRecord())
	return h
}

// Enabled implements [slog.Handler]. It does not use ctx, which may be nil.
func (h *Handler) Enabled(_ context.Context, level slog.Level) bool {
	return attrs.Enabled(h.core.config.level, level)
}

// Handle implements [slog.Handler]. It encodes the record on the caller's goroutine and hands it to the queue; the returned
// error is nil, [delivery.ErrClosed] after Close, or a [delivery.Drop] that says why the record was lost at once. With
// [delivery.Options].Sync it returns when the record was sent. ctx carries values for Options.FromContext and never cancels;
// it may be nil.
func (h *Handler) Handle(ctx context.Context, r slog.Record) (err error) {
	c := h.core
	defer c.Catch(r.Level, &err)
	e := c.Borrow()
	e.record(ctx, h.scope, c.Number(), &r, c.limit)
	err = c.Submit(r.Level, e.out, e.repaired, e.cut > 0)
	c.Return(e)
	return err
}

// Reusable implements [front.Encoder].
func (e *encoder) Reusable() bool { return cap(e.out)+cap(e.buf)+cap(e.prefix) <= maxPooled }

// WithAttrs implements [slog.Handler]. The attributes are encoded now, once.
func (h *Handler) WithAttrs(as []slog.Attr) slog.Handler {
	if len(as) == 0 {
		return h
	}
	e := h.core.Borrow()
	// Half of the room behind the header stays for what the records bring.
	d := &Handler{core: h.core, scope: h.scope.withAttrs(e, as, (h.core.limit-h.core.config.header.longest())/2)}
	h.core.Return(e)
	return d
}

// WithGroup implements [slog.Handler].
func (h *Handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return &Handler{core: h.core, scope: h.scope.withGroup(&h.core.config, name)}
}

// Ready looks the target up now and returns nil when a record could leave, else why not. It is optional: for init code, and
// for readiness probes. It ends with ctx, and after Close with [delivery.ErrClosed].
func (h *Handler) Ready(ctx context.Context) error { return h.core.Ready(ctx) }

// Flush waits until every record that was accepted before the call is delivered or counted as dropped. When ctx ends first,
// its error is returned with the number of all records that are pending then, later ones included. It may be called at any time, also after Close.
func (h *Handler) Flush(ctx context.Context) error { return h.core.Flush(ctx) }

// Close sends what is pending, within Delivery.CloseTimeout, and ends every goroutine of the handler and of those derived from
// it. It returns after the last call of a hook, with an error that wraps [delivery.ErrClosed] when records had to be dropped.
// Afterwards Handle returns [delivery.ErrClosed] and counts nothing. Further calls wait for the first and return its result.
func (h *Handler) Close() error { return h.core.Close() }

// Stats returns a consistent snapshot of the counters of the handler and of those derived from it. It goes on working after
// Close.
func (h *Handler) Stats() delivery.Stats { return h.core.Stats() }

// shown is what may be seen of a handler.
type shown struct{ Target string }

func (h *Handler) shown() shown {
	if h == nil || h.core == nil {
		return shown{}
	}
	return shown{h.core.config.target.String()}
}

// String returns the target, for people.
func (h *Handler) String() string { return mask.String("syslog.Handler", h.shown()) }

// GoString returns what String returns.
func (h *Handler) GoString() string { return h.String() }

// MarshalJSON returns the target as a JSON object. It is for reading; there is no way back.
func (h *Handler) MarshalJSON() ([]byte, error) { return mask.JSON(h.shown()) }

// LogValue returns the target as a group.
func (h *Handler) LogValue() slog.Value { return mask.LogValue(h.shown()) }
