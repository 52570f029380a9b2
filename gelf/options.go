package gelf

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/mask"
	"github.com/wholelog/wholelog/resolve"
)

// The defaults of Options, and the limits of the protocol behind them.
const (
	defaultChunkSize  = 1232 // smallest IPv6 MTU less IPv6 and UDP headers: no path fragments it
	minChunkSize      = 64
	maxChunkSize      = 65507 // largest UDP payload over IPv4
	defaultFlows      = 16
	maxFlows          = 1024 // no balancer has more targets to reach, and as many descriptors are what a process may often have
	defaultFlowAge    = 60 * time.Second
	defaultPacketRate = 10_000
	minPacketRate     = 64 // 128 chunks have 2 s to leave
	defaultSend       = 10 * time.Second
	maxHost           = 255
)

// Options configures a [Handler]. The zero value, and a nil *Options, mean every default. NewHandler copies it; later
// changes to it have no effect.
type Options struct {
	// AddSource adds the place of the log call as _source_file, _source_line and _source_function. It costs a few
	// allocations a record.
	AddSource bool

	// Level is the lowest level that is logged; nil means [slog.LevelInfo]. It is asked for every record, so a
	// [slog.LevelVar] takes effect at once, also in handlers derived before.
	Level slog.Leveler

	// ReplaceAttr rewrites or, by returning the zero Attr, removes attributes, as [slog.HandlerOptions] describes. It is
	// also called for the time, level, source and message, with slog's own keys. There a changed value applies and a
	// changed key does not, because Graylog knows these fields by name only: a removed time or level is left out, a
	// removed message becomes "-". A panic in it replaces the attribute's value by a text that begins with "!PANIC:".
	ReplaceAttr func(groups []string, a slog.Attr) slog.Attr

	// FromContext returns attributes to add to a record, taken from the context of the log call, for example trace ids.
	// They stand at the top level, outside the groups of WithGroup. It is called on the caller's goroutine for every
	// record, with a context that is never nil, and must be safe for concurrent use.
	FromContext func(ctx context.Context) []slog.Attr

	// Host is the GELF host, which Graylog stores as the source; at most 255 bytes, not blank, without control
	// characters. "" means os.Hostname().
	Host string

	// ChunkSize is the largest datagram in bytes, the 12-byte chunk header included, the IP and UDP headers not; from 64
	// to 65507. 0 means 1232, which no path fragments.
	ChunkSize int

	// Compression of datagrams; 0 means [CompressAuto].
	Compression Compression

	// Flows is the number of UDP source ports towards each address, opened as messages need them. A load balancer sends
	// each of them to one of its targets. Each holds a file descriptor: 16 towards each of 1000 addresses are 16 000, and
	// when there are no more, those that are open serve. 0 means 16; negative or more than 1024 is an error.
	Flows int

	// FlowAge is the time after which a source port is replaced, between messages, ±20 %. It frees flows from a target
	// that a load balancer no longer considers healthy. 0 means 60 s; negative is an error.
	FlowAge time.Duration

	// PacketRate is the most datagrams a second towards each address, in bursts of at most 32, so that a long message
	// does not overrun the receive buffer. 0 means 10 000, negative means unlimited. From 1 to 63 is an error: the 128
	// chunks of a long message must leave within 2 s.
	PacketRate int

	// Oversize says what happens to a message that no way can carry whole; 0 means [OversizeTruncate].
	Oversize Oversize

	// Fallback is a second target, "tcp://host:12201" or "http://host:12202/gelf", for messages too large for UDP. Not
	// available yet: it must be empty.
	Fallback string

	// Sequence adds _seq, counting from 1 in each handler of NewHandler, and _run, 64 random bits in hex that tell one
	// run of the program from the next, so that gaps become visible in Graylog.
	Sequence bool

	// Bulk puts several messages into one HTTP request. It needs an input with bulk receiving switched on. Not with udp: must
	// be zero.
	Bulk bool

	// Header is added to every HTTP request. Not with udp: must be zero.
	Header http.Header

	// ConnsPerAddr is the number of TCP or TLS connections to each address. 0 means 1; more give up order towards an
	// address. Not with udp: must be zero.
	ConnsPerAddr int

	// ConnAge is the time after which a connection is replaced, ±20 %. 0 means 5 min; negative means never. Not with udp: must
	// be zero.
	ConnAge time.Duration

	// TLSConfig is used by tls and https. Not with udp: must be zero.
	TLSConfig *tls.Config

	// Resolve says how the target's addresses are found, judged and chosen.
	Resolve resolve.Options

	// Delivery says how records wait, leave and fail.
	Delivery delivery.Options
}

// String returns the fields that are not zero, for people, with secrets hidden. Of functions, interfaces and TLSConfig it says only
// whether they are set, also when they are not.
func (o Options) String() string { return mask.String("gelf.Options", o) }

// GoString returns what String returns.
func (o Options) GoString() string { return o.String() }

// MarshalJSON returns what String shows as a JSON object. It is for reading; there is no way back.
func (o Options) MarshalJSON() ([]byte, error) { return mask.JSON(o) }

// LogValue returns what String shows as a group.
func (o Options) LogValue() slog.Value { return mask.LogValue(o) }

// Compression says which datagrams are compressed. A record that fits one datagram never is.
type Compression uint8

// The compressions.
const (
	CompressAuto Compression = iota // gzip, when that lowers the number of chunks
	CompressNone                    // never
	CompressGzip                    // gzip, when that makes the message smaller
	CompressZlib                    // zlib, when that makes the message smaller
)

// String returns "auto", "none", "gzip" or "zlib".
func (c Compression) String() string {
	switch c {
	case CompressAuto:
		return "auto"
	case CompressNone:
		return "none"
	case CompressGzip:
		return "gzip"
	case CompressZlib:
		return "zlib"
	}
	return fmt.Sprintf("Compression(%d)", uint8(c))
}

// Oversize says what happens to a message that stays too large for every way after compression.
type Oversize uint8

// The ways with oversize messages.
const (
	OversizeTruncate Oversize = iota // it is shortened; _truncated holds the bytes cut
	OversizeDrop                     // it is dropped, counted and reported as too_large
)

// String returns "truncate" or "drop".
func (o Oversize) String() string {
	switch o {
	case OversizeTruncate:
		return "truncate"
	case OversizeDrop:
		return "drop"
	}
	return fmt.Sprintf("Oversize(%d)", uint8(o))
}

// config is Options with every default in its place. It is made once by NewHandler and never changes.
type config struct {
	target      target
	host        string
	udp         udpConfig
	sequence    bool
	addSource   bool
	level       slog.Leveler
	replaceAttr func(groups []string, a slog.Attr) slog.Attr
	fromContext func(ctx context.Context) []slog.Attr
}

// newConfig checks o for the scheme of t and fills in the defaults. Its errors name the option and carry no prefix.
func newConfig(t target, o Options) (config, error) {
	c := config{
		target: t,
		udp: udpConfig{
			chunkSize:   cmp.Or(o.ChunkSize, defaultChunkSize),
			compression: o.Compression,
			flows:       cmp.Or(o.Flows, defaultFlows),
			flowAge:     cmp.Or(o.FlowAge, defaultFlowAge),
			packetRate:  cmp.Or(o.PacketRate, defaultPacketRate),
			oversize:    o.Oversize,
			sendTimeout: cmp.Or(o.Delivery.SendTimeout, defaultSend),
		},
		sequence:    o.Sequence,
		addSource:   o.AddSource,
		level:       o.Level,
		replaceAttr: o.ReplaceAttr,
		fromContext: o.FromContext,
	}
	switch {
	case c.udp.chunkSize < minChunkSize || c.udp.chunkSize > maxChunkSize:
		return config{}, fmt.Errorf("option ChunkSize: %d is outside %d…%d", o.ChunkSize, minChunkSize, maxChunkSize)
	case o.Compression > CompressZlib:
		return config{}, fmt.Errorf("option Compression: %d is not known", uint8(o.Compression))
	case o.Flows < 0:
		return config{}, fmt.Errorf("option Flows: %d is negative", o.Flows)
	case o.Flows > maxFlows:
		return config{}, fmt.Errorf("option Flows: %d is more than %d", o.Flows, maxFlows)
	case o.FlowAge < 0:
		return config{}, fmt.Errorf("option FlowAge: %v is negative", o.FlowAge)
	case c.udp.packetRate >= 0 && c.udp.packetRate < minPacketRate:
		return config{}, fmt.Errorf("option PacketRate: %d is below %d, the least a long message needs", o.PacketRate, minPacketRate)
	case o.Oversize > OversizeDrop:
		return config{}, fmt.Errorf("option Oversize: %d is not known", uint8(o.Oversize))
	}
	if err := o.unusable(t.scheme); err != nil {
		return config{}, err
	}
	var err error
	if c.host, err = hostName(o.Host); err != nil {
		return config{}, err
	}
	if err := o.Resolve.Validate(); err != nil {
		return config{}, fmt.Errorf("option Resolve.%w", err)
	}
	if err := o.Delivery.Validate(); err != nil {
		return config{}, fmt.Errorf("option Delivery.%w", err)
	}
	return c, nil
}

// unusable returns an error for an option that has a value but no meaning for the scheme.
func (o Options) unusable(scheme string) error {
	if o.Fallback != "" {
		return errors.New("option Fallback: not available in this version; leave it empty")
	}
	for _, x := range []struct {
		name string
		set  bool
	}{
		{"Bulk", o.Bulk},
		{"Header", len(o.Header) > 0},
		{"ConnsPerAddr", o.ConnsPerAddr != 0},
		{"ConnAge", o.ConnAge != 0},
		{"TLSConfig", o.TLSConfig != nil},
	} {
		if x.set {
			return fmt.Errorf("option %s: does not apply to %s", x.name, scheme)
		}
	}
	return nil
}

// hostName returns a host that Graylog accepts: it rejects the whole message when host is blank.
func hostName(h string) (string, error) {
	if h == "" {
		// A machine that does not know its name still logs.
		name, err := os.Hostname()
		if err != nil || checkHost(name) != nil {
			return "unknown", nil
		}
		return name, nil
	}
	if err := checkHost(h); err != nil {
		return "", err
	}
	return h, nil
}

func checkHost(h string) error {
	switch {
	case blank(h):
		return errors.New("option Host: is blank")
	case len(h) > maxHost:
		return fmt.Errorf("option Host: is longer than %d bytes", maxHost)
	case !utf8.ValidString(h):
		return errors.New("option Host: is not valid UTF-8")
	case strings.ContainsFunc(h, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return errors.New("option Host: holds a control character")
	}
	return nil
}
