package syslog

import (
	"context"
	"crypto/tls"
	"log/slog"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/mask"
	"github.com/wholelog/wholelog/resolve"
)

// Options configures a [Handler]. The zero value, and a nil *Options, mean every default. NewHandler copies it; later
// changes to it have no effect.
type Options struct {
	// AddSource adds the place of the log call as source.function, source.file and source.line. It costs a few allocations a
	// record.
	AddSource bool

	// Level is the lowest level that is logged; nil means [slog.LevelInfo]. It is asked for every record, so a
	// [slog.LevelVar] takes effect at once, also in handlers derived before.
	Level slog.Leveler

	// ReplaceAttr rewrites or, by returning the zero Attr, removes attributes, as [slog.HandlerOptions] describes. It is also
	// called for the time, level, source and message, with slog's own keys. There a changed value applies and a changed key does
	// not. A removed time becomes the time of the call, because receivers lose the header of a message without one; a removed
	// level still gives the severity; a removed message becomes "-". A panic in it replaces the attribute's value by a text that
	// begins with "!PANIC:".
	ReplaceAttr func(groups []string, a slog.Attr) slog.Attr

	// FromContext returns attributes to add to a record, taken from the context of the log call, for example trace ids.
	// They stand at the top level, outside the groups of WithGroup. It is called on the caller's goroutine for every
	// record, with a context that is never nil, and must be safe for concurrent use.
	FromContext func(ctx context.Context) []slog.Attr

	// Format of the messages; 0 means [RFC5424]. Behind /dev/log are receivers that expect [RFC3164] unless they are told otherwise, and
	// take the header of an RFC 5424 message for a part of the text.
	Format Format

	// Framing tells messages of a stream apart; 0 means [FramingAuto]. What the receiver does not expect is lost or mangled, and
	// no answer tells. With tcp, tls and unix only, and with unix only where the socket is a stream.
	Framing Framing

	// Facility is the facility of every message; 0 means [Local0].
	Facility Facility

	// AppName is APP-NAME, and the TAG of RFC 3164. "" means the program's name. At most 48 bytes of it are used, of a TAG 32;
	// what is not printable ASCII becomes "_", in a TAG also ":", "[" and "]". The same holds for Hostname with 255 bytes, for
	// ProcID with 128 and for MsgID with 32.
	AppName string

	// Hostname is HOSTNAME. "" means os.Hostname(), for RFC 3164 without its domain. RFC 3164 has no word for "unknown", and receivers
	// take a HOSTNAME that does not look like one for the TAG: there all but letters, digits, ".", "-" and "_" becomes "_", of the
	// last three none stays at the end, and what is then empty becomes "localhost". With unix and RFC 3164 "" leaves HOSTNAME out,
	// unless AppendIP is set: that is what receivers of local sockets expect.
	Hostname string

	// ProcID is PROCID. "" means the number of the process.
	ProcID string

	// MsgID is MSGID; "" means "-". RFC 3164 has none.
	MsgID string

	// SDID is the SD-ID of the attributes: name@number, the number being an enterprise's (RFC 5424, section 6.3.2), 32 bytes at
	// most. "" means "attrs@32473". With RFC 5424 only.
	SDID string

	// Attrs says how attributes are written; 0 means [AttrsStructured].
	Attrs Attrs

	// MaxSize is the most bytes of a message, framing not included. 0 means 8192, and 1432 with udp, which no Ethernet fragments.
	// From 480, which every receiver takes, to 65507 with udp and 8388607 with the others, where a quarter of Delivery.QueueBytes
	// is the limit too. A text that is longer ends in "…[truncated n bytes]"; attributes that find no room are left out and counted
	// in n.
	MaxSize int

	// AppendIP writes HOSTNAME as "host,ip", so that the address of this host survives a relay. It is the first of the host's
	// addresses, IPv4 first, that is neither of the loopback nor of the link. With RFC 3164 syslog-ng reads that, but rsyslog takes
	// it for the TAG.
	AppendIP bool

	// Origin adds [origin ip="…"] with the same address. With RFC 5424 only.
	Origin bool

	// Sequence adds [meta sequenceId="…"], counting from 1 to 2147483647 and again, in each handler of NewHandler, and the
	// attribute run, 64 random bits in hex that tell one run of the program from the next, so that gaps become visible. RFC 3164
	// has no meta; there the attribute seq counts.
	Sequence bool

	// BOM begins MSG with the byte order mark that RFC 5424 asks of UTF-8 (section 6.4). Most receivers keep it as a part of the
	// text, and rsyslog then finds no document in what AttrsJSON writes. With RFC 5424 only.
	BOM bool

	// Replay is the bytes that are kept behind each connection and sent again when it breaks. 0 means that only what the peer's
	// kernel had not acknowledged is. Other values are not available in this version.
	Replay int

	// Flows is the number of UDP source ports towards each address, opened as messages need them and used in turn. A load balancer
	// keeps each at one of the nodes behind the address, so more of them reach more nodes; 1 keeps the order that the network keeps.
	// 0 means 16; at most 1024, negative is an error. With udp only.
	Flows int

	// FlowAge is the time after which a source port is replaced, between messages, ±20 %. A balancer does not move a busy one away
	// from a node that is leaving. 0 means 60 s; negative is an error. With udp only.
	FlowAge time.Duration

	// SendBuffer is SO_SNDBUF of each connection in bytes, which bounds what a connection can swallow while it dies. 0 means
	// 256 KiB; from 4096 to 1 GiB. With tcp and tls only.
	SendBuffer int

	// ConnsPerAddr is the number of connections to each address, 256 at most; 0 means 1, negative is an error. More give up order
	// towards an address. With tcp and tls only.
	ConnsPerAddr int

	// ConnAge is the time after which a connection is replaced, between messages, ±20 %. 0 means 10 min; negative means never,
	// which suits a relay that leaks what clients close. With tcp and tls only.
	ConnAge time.Duration

	// TLSConfig is used by tls; it is cloned. Its ServerName, when set, is verified in place of the target's host. nil verifies by
	// the system's roots. With tls only.
	TLSConfig *tls.Config

	// Resolve says how the target's addresses are found, judged and chosen. With unix, Resolver, Zone and Check are errors.
	Resolve resolve.Options

	// Delivery says how records wait, leave and fail.
	Delivery delivery.Options
}

// String returns the fields that are not zero, for people, with secrets hidden. Of functions, interfaces and TLSConfig it says only
// whether they are set, also when they are not.
func (o Options) String() string { return mask.String("syslog.Options", o) }

// GoString returns what String returns.
func (o Options) GoString() string { return o.String() }

// MarshalJSON returns what String shows as a JSON object. It is for reading; there is no way back.
func (o Options) MarshalJSON() ([]byte, error) { return mask.JSON(o) }

// LogValue returns what String shows as a group.
func (o Options) LogValue() slog.Value { return mask.LogValue(o) }
