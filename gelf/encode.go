package gelf

import (
	"context"
	"log/slog"
	"strconv"
	"time"

	"github.com/wholelog/wholelog/internal/attrs"
	"github.com/wholelog/wholelog/internal/severity"
)

const (
	// maxPooled is the largest buffer that is kept for the next record.
	maxPooled = 256 << 10
	// maxPooledNames is the same for the names of a record.
	maxPooledNames = 1 << 12
	// tailRoom is what the end of a message needs besides its texts: their names, and the number of bytes cut.
	tailRoom = 128
	// maxTime is the last millisecond of the year 9999: Graylog's index has no five-digit years.
	maxTime = 253402300799999
)

// encoder turns one record into one GELF 1.1 message:
//
//	version, host, what WithAttrs bound, timestamp, level, the record's attributes, short_message, full_message, _truncated
//
// The texts come last, so that what room the limit leaves is theirs, and no limit has to be guessed. An encoder is pooled, and
// used by one goroutine at a time.
type encoder struct {
	config *config
	walker *attrs.Walker

	buf    []byte
	limit  int // bytes that buf may have now
	names  nameSet
	known  knownNames
	prefix []byte // the open groups' part of names, each with a dot behind it

	second     int64 // of the last timestamp; -1: none yet
	secondText []byte

	mendedAt int // a group whose name was mended is open from here on in prefix; 0: none
	tally
}

// tally is what had to be done to a message.
type tally struct {
	repaired int  // values and names that the server would have rejected, dropped or changed
	cut      int  // bytes left out
	over     bool // the message met the limit for its size
}

func newEncoder(c *config) *encoder {
	e := &encoder{config: c, second: -1}
	e.walker = attrs.NewWalker(e, c.replaceAttr)
	return e
}

// begin starts a message or a part of one with what s has bound.
func (e *encoder) begin(s *scope, head []byte, limit int) {
	e.buf = append(append(e.buf[:0], head...), s.bound...)
	e.limit = limit
	e.names.begin(&s.names)
	e.tally = s.tally
}

// enter makes what follows stand in the groups of s.
func (e *encoder) enter(s *scope) {
	e.prefix = append(e.prefix[:0], s.prefix...)
	e.mendedAt = s.mendedAt
	e.walker.Begin(s.groups)
}

// leave ends what enter began.
func (e *encoder) leave() {
	if e.walker.Exhausted() {
		e.cut++ // at least
		e.over = true
	}
	e.prefix, e.mendedAt = e.prefix[:0], 0
}

// record encodes r, with at most limit bytes, into e.buf.
func (e *encoder) record(ctx context.Context, s *scope, head []byte, seq uint64, r *slog.Record, limit int) {
	message := r.Message
	e.begin(s, head, attributesLimit(limit, message))
	if e.config.replaceAttr == nil {
		e.timestamp(r.Time)
		e.level(severity.Of(r.Level))
		if e.config.addSource {
			e.source(r.Source())
		}
	} else {
		message = e.replaced(r)
		e.limit = attributesLimit(limit, message)
	}
	if seq > 0 {
		e.buf = strconv.AppendUint(append(e.buf, `,"_seq":`...), seq, 10)
	}
	if from := e.config.fromContext; from != nil {
		e.enter(&scope{})
		e.walker.Attrs(attrs.FromContext(ctx, from))
		e.leave()
	}
	if r.NumAttrs() > 0 {
		e.enter(s)
		e.walker.Record(r)
		e.leave()
	}
	e.limit = limit - tailRoom
	e.message(message)
	if e.cut > 0 {
		e.buf = append(append(append(e.buf, ','), truncatedKey...), ':')
		e.buf = strconv.AppendInt(e.buf, int64(e.cut), 10)
	}
	e.buf = append(e.buf, '}')
}

// attributesLimit is what the attributes may grow a message to: some of the room is the text's, half of it at most.
func attributesLimit(limit int, message string) int {
	return limit - 2*tailRoom - min(2*len(message), limit/2)
}

// timestamp appends t in seconds with exactly three decimals. It is left out where the server would not take it.
func (e *encoder) timestamp(t time.Time) {
	switch s := t.Unix(); {
	case t.IsZero(): // slog's rule: there is no time
	case s < 0 || s > maxTime/1000: // UnixMilli would overflow for some of these
		e.repaired++
	default:
		e.millis(t.UnixMilli())
	}
}

// millis appends ms, which is at most maxTime. The server puts the time of receipt for one that is not positive.
func (e *encoder) millis(ms int64) {
	if ms <= 0 {
		e.repaired++
		return
	}
	if s := ms / 1000; s != e.second {
		e.second = s
		e.secondText = append(strconv.AppendInt(append(e.secondText[:0], `,"timestamp":`...), s, 10), '.')
	}
	ms %= 1000
	e.buf = append(append(e.buf, e.secondText...), byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10))
}

func (e *encoder) level(s severity.Severity) {
	e.buf = append(append(e.buf, `,"level":`...), '0'+byte(s))
}

func (e *encoder) source(src *slog.Source) {
	if src == nil {
		return // slog's rule: a record without a PC has no source
	}
	e.Attr("source_file", slog.KindString, slog.StringValue(src.File))
	e.Attr("source_line", slog.KindInt64, slog.IntValue(src.Line))
	e.Attr("source_function", slog.KindString, slog.StringValue(src.Function))
}
