package syslog

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"time"

	"github.com/wholelog/wholelog/internal/hostport"
)

// The defaults of Options, and the limits of the protocol behind them.
const (
	defaultMaxSize    = 8192 // RFC 5425, section 4.3.1: a receiver should take as much; some cut or drop what is longer
	defaultMaxSizeUDP = 1432 // what fits an Ethernet frame behind the headers of IPv6 and an extension or two
	minMaxSize        = 480  // RFC 5424, section 6.1: every receiver takes as much
	maxMaxSizeUDP     = 65507
	maxMaxSize        = 8<<20 - 1
	minText           = 128 // bytes that a header must leave for attributes and text
	maxConns          = 256
	defaultConnAge    = 10 * time.Minute // long: some relays leak a session for each connection that a client closes
	minSendBuffer     = 4096
	maxSendBuffer     = 1 << 30
	defaultSend       = 10 * time.Second
	defaultFlows      = 16
	maxFlows          = 1024 // no balancer has more nodes to reach, and a process may have no more descriptors
	defaultFlowAge    = time.Minute
	defaultSDID       = "attrs@32473" // the enterprise number for examples (RFC 5612), since attributes belong to nobody's
)

// config is Options with every default in its place. It is made once by NewHandler and never changes.
type config struct {
	target      target
	format      Format
	attrs       Attrs
	maxSize     int
	header      header
	sequence    bool
	bom         bool
	addSource   bool
	level       slog.Leveler
	replaceAttr func(groups []string, a slog.Attr) slog.Attr
	fromContext func(ctx context.Context) []slog.Attr

	framing     Framing // of streams; never FramingAuto
	sendTimeout time.Duration
	sendBuffer  int // 0: the default of package stream
	perAddr     int
	flows       int // of udp: source ports per address
	flowAge     time.Duration
	connAge     time.Duration // 0: a connection is never replaced
	tls         *tls.Config   // nil: not encrypted; else with a ServerName
}

// newConfig checks o for the scheme of t and fills in the defaults. Its errors name the option and carry no prefix.
func newConfig(t target, o Options) (config, error) {
	maxSize, most := defaultMaxSize, maxMaxSize
	if t.scheme == "udp" {
		maxSize, most = defaultMaxSizeUDP, maxMaxSizeUDP
	}
	c := config{
		target:      t,
		format:      o.Format,
		attrs:       o.Attrs,
		maxSize:     cmp.Or(o.MaxSize, maxSize),
		sequence:    o.Sequence,
		bom:         o.BOM,
		addSource:   o.AddSource,
		level:       o.Level,
		replaceAttr: o.ReplaceAttr,
		fromContext: o.FromContext,
		framing:     o.Framing,
		sendTimeout: cmp.Or(o.Delivery.SendTimeout, defaultSend),
		sendBuffer:  o.SendBuffer,
		perAddr:     cmp.Or(o.ConnsPerAddr, 1),
		flows:       cmp.Or(o.Flows, defaultFlows),
		flowAge:     cmp.Or(o.FlowAge, defaultFlowAge),
		connAge:     max(cmp.Or(o.ConnAge, defaultConnAge), 0),
	}
	switch {
	case o.Format > RFC3164:
		return config{}, fmt.Errorf("option Format: %d is not known", uint8(o.Format))
	case o.Framing > Newline:
		return config{}, fmt.Errorf("option Framing: %d is not known", uint8(o.Framing))
	case o.Facility < Kern || o.Facility > Local7:
		return config{}, fmt.Errorf("option Facility: %d is not known", int8(o.Facility))
	case o.Attrs > AttrsText:
		return config{}, fmt.Errorf("option Attrs: %d is not known", uint8(o.Attrs))
	case c.maxSize < minMaxSize || c.maxSize > most:
		return config{}, fmt.Errorf("option MaxSize: %d is outside %d…%d", o.MaxSize, minMaxSize, most)
	case o.SDID != "" && !validSDID(o.SDID):
		return config{}, fmt.Errorf("option SDID: is not name@number of at most %d characters", maxName)
	case o.Replay != 0:
		return config{}, fmt.Errorf("option Replay: %d: not available in this version", o.Replay)
	case o.Flows < 0:
		return config{}, fmt.Errorf("option Flows: %d is negative", o.Flows)
	case o.Flows > maxFlows:
		return config{}, fmt.Errorf("option Flows: %d is more than %d", o.Flows, maxFlows)
	case o.FlowAge < 0:
		return config{}, fmt.Errorf("option FlowAge: %v is negative", o.FlowAge)
	case o.SendBuffer != 0 && o.SendBuffer < minSendBuffer:
		return config{}, fmt.Errorf("option SendBuffer: %d is below %d", o.SendBuffer, minSendBuffer)
	case o.SendBuffer > maxSendBuffer:
		return config{}, fmt.Errorf("option SendBuffer: %d is more than %d", o.SendBuffer, maxSendBuffer)
	case o.ConnsPerAddr < 0:
		return config{}, fmt.Errorf("option ConnsPerAddr: %d is negative", o.ConnsPerAddr)
	case o.ConnsPerAddr > maxConns:
		return config{}, fmt.Errorf("option ConnsPerAddr: %d is more than %d", o.ConnsPerAddr, maxConns)
	}
	if err := o.unusable(t); err != nil {
		return config{}, err
	}
	if err := o.Resolve.Validate(); err != nil {
		return config{}, fmt.Errorf("option Resolve.%w", err)
	}
	if err := o.Delivery.Validate(); err != nil {
		return config{}, fmt.Errorf("option Delivery.%w", err)
	}
	if c.format == RFC3164 && c.attrs == AttrsStructured {
		c.attrs = AttrsText
	}
	if c.framing == FramingAuto {
		c.framing = OctetCounting
		if t.scheme == "unix" {
			c.framing = Newline
		}
	}
	if t.scheme == "tls" {
		c.tls = hostport.TLS(o.TLSConfig, t.host)
	}
	c.header = newHeader(o, t.scheme == "unix")
	if least := c.header.longest() + minText; c.maxSize < least {
		return config{}, fmt.Errorf("option MaxSize: %d leaves no room behind this header; want at least %d", c.maxSize, least)
	}
	return c, nil
}

// validSDID says whether id is an SD-ID that is nobody's but an enterprise's (RFC 5424, section 6.3.2).
func validSDID(id string) bool {
	return len(id) <= maxName && regexp.MustCompile(`^[!#-<>?A-\\^-~]+@[0-9]+(\.[0-9]+)*$`).MatchString(id)
}

// unusable returns an error for an option that has a value but no meaning for the scheme of t, or for the format.
func (o Options) unusable(t target) error {
	var (
		datagrams = []string{"udp"}
		framed    = []string{"tcp", "tls", "unix"}
		conns     = []string{"tcp", "tls"}
		encrypted = []string{"tls"}
		resolved  = []string{"udp", "tcp", "tls"}
	)
	for _, x := range []struct {
		name    string
		set     bool
		schemes []string
	}{
		{"Framing", o.Framing != FramingAuto, framed},
		{"Flows", o.Flows != 0, datagrams},
		{"FlowAge", o.FlowAge != 0, datagrams},
		{"SendBuffer", o.SendBuffer != 0, conns},
		{"ConnsPerAddr", o.ConnsPerAddr != 0, conns},
		{"ConnAge", o.ConnAge != 0, conns},
		{"TLSConfig", o.TLSConfig != nil, encrypted},
		{"Resolve.Resolver", o.Resolve.Resolver != nil, resolved},
		{"Resolve.Zone", o.Resolve.Zone != "", resolved},
		{"Resolve.Check", o.Resolve.Check != nil, resolved},
	} {
		if x.set && !slices.Contains(x.schemes, t.scheme) {
			return fmt.Errorf("option %s: does not apply to %s", x.name, t.scheme)
		}
	}
	for _, x := range []struct {
		name string
		set  bool
	}{
		{"MsgID", o.MsgID != ""},
		{"SDID", o.SDID != ""},
		{"Origin", o.Origin},
		{"BOM", o.BOM},
	} {
		if x.set && o.Format == RFC3164 {
			return fmt.Errorf("option %s: does not apply to RFC 3164", x.name)
		}
	}
	return nil
}
