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
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/wholelog/wholelog/internal/hostport"
	"github.com/wholelog/wholelog/internal/ship"
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
	maxConns          = 256
	defaultConns      = 1
	defaultConnsHTTP  = 8 // without Bulk; opened as they are needed: a request waits for its answer, so one sends one message a round trip
	defaultConnAge    = 5 * time.Minute
	defaultSend       = 10 * time.Second
	defaultSendHTTP   = 30 * time.Second
	defaultDial       = 5 * time.Second
	maxHost           = 255
)

// config is Options with every default in its place. It is made once by NewHandler and never changes.
type config struct {
	target      target
	fallback    target // zero: none
	host        string
	oversize    Oversize
	udp         udpConfig
	conn        connConfig // with the fields in which the schemes differ left zero; see connTo
	bulk        bool
	header      http.Header
	compression Compression
	hold        time.Duration // HTTP: rest of an address that answers that something is set up wrongly
	sequence    bool
	addSource   bool
	level       slog.Leveler
	replaceAttr func(groups []string, a slog.Attr) slog.Attr
	fromContext func(ctx context.Context) []slog.Attr
}

// connConfig is what a transport over connections needs to know, defaults filled in.
type connConfig struct {
	perAddr     int           // connections to an address
	age         time.Duration // of a connection; 0: it is never replaced
	sendTimeout time.Duration // one write or one request
	dialTimeout time.Duration // connect and TLS handshake
	tls         *tls.Config   // nil: not encrypted; else with a ServerName
	oversize    Oversize
}

// newConfig checks o for the scheme of t and fills in the defaults. Its errors name the option and carry no prefix.
func newConfig(t target, o Options) (config, error) {
	c := config{
		target:   t,
		oversize: o.Oversize,
		udp: udpConfig{
			chunkSize:   cmp.Or(o.ChunkSize, defaultChunkSize),
			compression: o.Compression,
			flows:       cmp.Or(o.Flows, defaultFlows),
			flowAge:     cmp.Or(o.FlowAge, defaultFlowAge),
			packetRate:  cmp.Or(o.PacketRate, defaultPacketRate),
			oversize:    o.Oversize,
			fallback:    o.Fallback != "",
			sendTimeout: cmp.Or(o.Delivery.SendTimeout, defaultSend),
		},
		conn: connConfig{
			perAddr:     o.ConnsPerAddr,
			age:         max(cmp.Or(o.ConnAge, defaultConnAge), 0),
			sendTimeout: o.Delivery.SendTimeout,
			dialTimeout: cmp.Or(o.Delivery.DialTimeout, defaultDial),
			tls:         o.TLSConfig,
			oversize:    o.Oversize,
		},
		bulk:        o.Bulk,
		header:      o.Header.Clone(),
		compression: o.Compression,
		hold:        min(maxHold, cmp.Or(o.Delivery.Backoff.Max, maxHold)),
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
	case o.ConnsPerAddr < 0:
		return config{}, fmt.Errorf("option ConnsPerAddr: %d is negative", o.ConnsPerAddr)
	case o.ConnsPerAddr > maxConns:
		return config{}, fmt.Errorf("option ConnsPerAddr: %d is more than %d", o.ConnsPerAddr, maxConns)
	}
	var err error
	if o.Fallback != "" {
		if c.fallback, err = parseFallback(o.Fallback); err != nil {
			return config{}, fmt.Errorf("option Fallback: %w", err)
		}
	}
	if err := o.unusable(t, c.fallback); err != nil {
		return config{}, err
	}
	if err := checkHeader(o.Header, t.user+t.password+c.fallback.user+c.fallback.password != ""); err != nil {
		return config{}, fmt.Errorf("option Header: %w", err)
	}
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

// parseFallback reads the option's URL, which may name any way but the one it stands in for.
func parseFallback(s string) (target, error) {
	t, err := parseTarget(s)
	if err == nil && t.scheme == "udp" {
		err = errors.New("udp is the way it stands in for; want tcp, tls, http or https")
	}
	return t, err
}

// unusable returns an error for an option that has a value but no meaning for the scheme of t, nor for that of the fallback.
func (o Options) unusable(t, fallback target) error {
	var (
		datagrams = []string{"udp"}
		requests  = []string{"http", "https"}
		conns     = []string{"tcp", "tls", "http", "https"}
		encrypted = []string{"tls", "https"}
	)
	for _, x := range []struct {
		name    string
		set     bool
		schemes []string
	}{
		{"ChunkSize", o.ChunkSize != 0, datagrams},
		{"Flows", o.Flows != 0, datagrams},
		{"FlowAge", o.FlowAge != 0, datagrams},
		{"PacketRate", o.PacketRate != 0, datagrams},
		{"Compression", o.Compression > CompressNone, datagrams},
		{"Fallback", o.Fallback != "", datagrams},
		{"Bulk", o.Bulk, requests},
		{"Header", len(o.Header) > 0, requests},
		{"ConnsPerAddr", o.ConnsPerAddr != 0, conns},
		{"ConnAge", o.ConnAge != 0, conns},
		{"TLSConfig", o.TLSConfig != nil, encrypted},
	} {
		if !x.set || slices.Contains(x.schemes, t.scheme) || slices.Contains(x.schemes, fallback.scheme) {
			continue
		}
		what := t.scheme
		if fallback.scheme != "" && x.name != "Fallback" {
			what += " with a fallback by " + fallback.scheme
		}
		if x.name == "Compression" {
			return fmt.Errorf("option Compression: %v does not apply to %s", o.Compression, what)
		}
		return fmt.Errorf("option %s: does not apply to %s", x.name, what)
	}
	return nil
}

// transport makes what speaks the scheme of t, one of those that parseTarget lets pass.
func (c *config) transport(t target) ship.Transport {
	switch t.scheme {
	case "udp":
		return newUDP(c.udp)
	case "tcp", "tls":
		return newTCP(c.connTo(t))
	}
	return newHTTP(c.httpTo(t))
}

// connTo returns what a transport over connections to t needs to know.
func (c *config) connTo(t target) connConfig {
	n, send := defaultConns, defaultSend
	if t.overHTTP() {
		send = defaultSendHTTP
		if !c.bulk {
			n = defaultConnsHTTP
		}
	}
	conn := c.conn
	conn.perAddr = cmp.Or(conn.perAddr, n)
	conn.sendTimeout = cmp.Or(conn.sendTimeout, send)
	if !t.encrypted() {
		conn.tls = nil
		return conn
	}
	conn.tls = hostport.TLS(conn.tls, t.host)
	return conn
}

// sendTimeout is the longest that any way of c may take for one write or request.
func (c *config) sendTimeout() time.Duration {
	send := c.udp.sendTimeout
	if c.target.overHTTP() || c.fallback.overHTTP() {
		send = max(send, cmp.Or(c.conn.sendTimeout, defaultSendHTTP))
	}
	return send
}

// resolveFallback says how the fallback's addresses are found: as the target's, by another name. A Check knows the target's service and
// not this one, which shows its health by itself: every way that may stand here is answered.
func (c *config) resolveFallback(o resolve.Options) (resolve.Options, error) {
	var err error
	if o.Resolver, err = c.fallback.resolver(); err != nil {
		return o, err
	}
	o.Check, o.CheckEvery = nil, 0
	if o.Validate() != nil {
		o.Zone = "" // an address has none
	}
	return o, nil
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
