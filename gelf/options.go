package gelf

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/mask"
	"github.com/wholelog/wholelog/resolve"
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
	// to 65507. 0 means 1232, which no path fragments. With udp only.
	ChunkSize int

	// Compression of datagrams; 0 means [CompressAuto]. tcp and tls never compress. http and https compress only a message too
	// long for a plain request, and with CompressNone not even that. Other values are for udp only.
	Compression Compression

	// Flows is the number of UDP source ports towards each address, opened as messages need them. A load balancer sends
	// each of them to one of its targets. Each holds a file descriptor: 16 towards each of 1000 addresses are 16 000, and
	// when there are no more, those that are open serve. 0 means 16; negative or more than 1024 is an error. With udp only.
	Flows int

	// FlowAge is the time after which a source port is replaced, between messages, ±20 %. It frees flows from a target
	// that a load balancer no longer considers healthy. 0 means 60 s; negative is an error. With udp only.
	FlowAge time.Duration

	// PacketRate is the most datagrams a second towards each address, in bursts of at most 32, so that a long message
	// does not overrun the receive buffer. 0 means 10 000, negative means unlimited. From 1 to 63 is an error: the 128
	// chunks of a long message must leave within 2 s. With udp only.
	PacketRate int

	// Oversize says what happens to a message that no way can carry whole; 0 means [OversizeTruncate].
	Oversize Oversize

	// Fallback is a second target, "tcp://host:12201" or "http://host:12202/gelf", for messages that no compression brings into
	// 128 datagrams; they count as Diverted. Its host is looked up by DNS when the first such message comes, as Resolve says but
	// for its Resolver and Check. Header, Bulk, ConnsPerAddr, ConnAge and TLSConfig are then the fallback's. tcp and tls take
	// 2 MiB; http and https take what gzip brings to 64 KiB, which at the default ChunkSize is less than compressed datagrams
	// hold. What the fallback cannot carry whole either is up to Oversize. With udp only; "" means none.
	Fallback string

	// Sequence adds _seq, counting from 1 in each handler of NewHandler, and _run, 64 random bits in hex that tell one
	// run of the program from the next, so that gaps become visible in Graylog.
	Sequence bool

	// Bulk puts several messages into one HTTP request. It needs an input with bulk receiving switched on: without, Graylog keeps
	// the first message of each request and drops the others, and its answer does not tell. With it on, no message may be longer
	// than 65 535 bytes. With http and https only.
	Bulk bool

	// Header is added to every HTTP request; it may hold credentials, which are never shown. Fields that say how a request is
	// transferred, and Host, are errors, as is Authorization beside user-info in the URL. With http and https only.
	Header http.Header

	// ConnsPerAddr is the most connections to each address, 256 at most; negative is an error. With tcp and tls all of them are
	// kept open, and 0 means 1; more give up order towards an address. With http and https they are opened as requests need
	// them, and 0 means 8, with Bulk 1: a request waits for its answer, so over a long way more carry more. Not with udp,
	// unless for its Fallback: must be zero.
	ConnsPerAddr int

	// ConnAge is the time after which a connection is replaced, between messages, ±20 %. 0 means 5 min; negative means never. Not
	// with udp, unless for its Fallback: must be zero.
	ConnAge time.Duration

	// TLSConfig is used by tls and https; it is cloned. Its ServerName, when set, is verified in place of the target's host. nil
	// verifies by the system's roots. With tls and https only.
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
func (c Compression) String() string { return mask.Enum(c, "auto", "none", "gzip", "zlib") }

// Oversize says what happens to a message that stays too large for every way after compression.
type Oversize uint8

// The ways with oversize messages.
const (
	OversizeTruncate Oversize = iota // it is shortened; _truncated holds the bytes cut
	OversizeDrop                     // it is dropped, counted and reported as too_large
)

// String returns "truncate" or "drop".
func (o Oversize) String() string { return mask.Enum(o, "truncate", "drop") }
