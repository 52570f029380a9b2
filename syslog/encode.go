package syslog

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/wholelog/wholelog/internal/attrs"
	"github.com/wholelog/wholelog/internal/severity"
)

const (
	// maxPooled is the largest buffer that is kept for the next record.
	maxPooled = 256 << 10
	// placeholder stands for a message that ReplaceAttr removed.
	placeholder = "-"
	// markStart and markEnd stand around the number of bytes that were cut from a text.
	markStart, markEnd = "…[truncated ", " bytes]"
	// markRoom is the most that a mark takes, its ] escaped.
	markRoom = len(markStart) + len("18446744073709551615") + len(markEnd) + len(`\`)
	// maxLevel is the longest name of a level: that of the lowest level there can be.
	maxLevel = len("DEBUG-9223372036854775804")
	// minCut is the room below which a value is left out as a whole: a few letters and a mark help nobody.
	minCut = markRoom + 16
)

// encoder turns one record into one message. The attributes are encoded first, into a buffer of their own, because the text comes
// before them in some forms and gets what room they leave. An encoder is pooled, and used by one goroutine at a time.
type encoder struct {
	config  *config
	visitor attrs.Visitor // of the form in which attributes are written
	walker  *attrs.Walker
	clock   clock

	out    []byte // the message
	buf    []byte // its attributes
	limit  int    // bytes that buf may have now
	prefix []byte // the open groups' part of names; not with JSON
	depth  int    // the objects that are open in buf, each of which needs a byte more; with JSON only
	own    bool   // what is encoded is the record's own

	before, entered int // len(buf) before and after enter opened groups
	tally
}

// tally is what had to be done to a message.
type tally struct {
	repaired int // values and names that were mended
	cut      int // bytes left out
	untold   int // those of them that no mark beside them tells
}

func newEncoder(c *config) *encoder {
	e := &encoder{config: c, clock: clock{rfc3164: c.format == RFC3164, behind: c.header.names}}
	switch c.attrs {
	case AttrsJSON:
		e.visitor = asJSON{e}
	case AttrsText:
		e.visitor = asText{e}
	default:
		e.visitor = structured{e}
	}
	e.walker = attrs.NewWalker(e.visitor, c.replaceAttr)
	return e
}

// record encodes r, with at most limit bytes, into e.out. seq is 0 when records are not numbered.
func (e *encoder) record(ctx context.Context, s *scope, seq uint64, r *slog.Record, limit int) {
	e.buf, e.depth, e.tally = e.buf[:0], 0, s.tally
	var f facts
	f.time, f.severity, f.message = r.Time, severity.Of(r.Level), r.Message
	if e.config.attrs == AttrsJSON {
		f.level = r.Level.String()
	}
	if e.config.replaceAttr != nil {
		e.replace(r, &f)
	} else if e.config.addSource {
		f.source = r.Source()
	}
	e.head(&f, seq)
	if r.NumAttrs()+len(s.bound) > 0 || e.config.addSource || e.config.fromContext != nil {
		room := limit - len(e.out) - e.around(&f, seq)
		e.limit = room - min(len(f.message)+markRoom, room/2)
		e.attributes(ctx, s, r, &f)
	}
	e.message(&f, seq, limit)
}

// facts are the parts of a record that are not attributes.
type facts struct {
	time     time.Time
	severity severity.Severity
	level    string // as JSON shows it; "": not at all
	message  string
	source   *slog.Source
	place    slog.Value // stands in for source
}

// replace fills f with what ReplaceAttr makes of r. It calls ReplaceAttr in slog's order.
func (e *encoder) replace(r *slog.Record, f *facts) {
	var bad [2]bool
	if !r.Time.IsZero() {
		f.time, bad[0] = e.walker.ReplacedTime(r.Time)
	}
	var v slog.Value
	var ok bool
	if f.severity, v, ok, bad[1] = e.walker.ReplacedLevel(r.Level); ok {
		if text := e.walker.Text(v).String(); attrs.Clean(text) && clean(text, maxLevel) == text {
			f.level = text
		} else {
			bad[1] = true
		}
	} else {
		f.level = ""
	}
	if e.config.addSource && r.PC != 0 {
		f.source, f.place, _ = e.walker.ReplacedSource(r.Source())
	}
	if f.message, ok = e.walker.ReplacedMessage(r.Message); !ok {
		f.message = placeholder
	}
	for _, b := range bad {
		if b {
			e.repaired++
		}
	}
}

// head appends everything in front of the attributes of RFC 5424, or of the text of RFC 3164.
func (e *encoder) head(f *facts, seq uint64) {
	h := &e.config.header
	if f.time.IsZero() {
		f.time = time.Now()
	}
	var mended bool
	b := append(e.out[:0], h.pri[f.severity]...)
	if b, mended = e.clock.append(b, f.time); mended {
		e.repaired++
	}
	if !h.rfc3164 && seq > 0 {
		b = append(attrs.AppendUint(append(b, `[meta sequenceId="`...), (seq-1)%maxSequence+1), `"]`...)
	}
	e.out = b
}

// attributes appends all attributes of a record to e.buf.
func (e *encoder) attributes(ctx context.Context, s *scope, r *slog.Record, f *facts) {
	if e.config.addSource || e.config.fromContext != nil {
		whole := e.limit
		e.limit = whole - len(s.bound) - s.depth // what was bound has its room already
		e.enter(&scope{})
		e.source(f)
		if from := e.config.fromContext; from != nil {
			e.walker.Attrs(attrs.FromContext(ctx, from))
		}
		e.leave(&scope{})
		e.limit = whole
	}
	e.buf = append(e.buf, s.bound...)
	e.depth = s.depth
	if r.NumAttrs() > 0 {
		e.enter(s)
		e.walker.Record(r)
		e.leave(s)
	}
	for ; e.depth > 0; e.depth-- {
		e.buf = append(e.buf, '}')
	}
}

// source adds the place of the log call, which ReplaceAttr has seen already.
func (e *encoder) source(f *facts) {
	e.own = true
	defer func() { e.own = false }()
	switch src, v := f.source, e.visitor; {
	case src != nil:
		mark := v.Open(slog.SourceKey)
		v.Attr("function", slog.KindString, slog.StringValue(src.Function))
		v.Attr("file", slog.KindString, slog.StringValue(src.File))
		v.Attr("line", slog.KindInt64, slog.IntValue(src.Line))
		v.Close(mark, false)
	case f.place.Kind() == slog.KindString:
		v.Attr(slog.SourceKey, slog.KindString, f.place)
	}
}

// around is the bytes that stand around attributes and text, apart from what head wrote.
func (e *encoder) around(f *facts, seq uint64) int {
	h := &e.config.header
	n := len(h.origin) + len(h.element) + len(`]`) + len(h.msg) + len(f.level)
	if e.config.attrs == AttrsJSON {
		n += len(jsonStart) + len(jsonLevel) + len(`"}`)
	}
	if seq > 0 {
		n += len(` seq=18446744073709551615 run="0123456789abcdef"`)
	}
	return n
}

const (
	jsonStart = `@cee:{"msg":"`
	jsonLevel = `","level":"`
)

// message puts the parts together, with the text where the form has it.
func (e *encoder) message(f *facts, seq uint64, limit int) {
	h := &e.config.header
	if !h.rfc3164 {
		e.structure()
		if e.config.attrs != AttrsJSON {
			e.spellMark(f)
		}
	}
	switch e.config.attrs {
	case AttrsStructured:
		e.text(f.message, attrs.AppendLine, limit)
	case AttrsText:
		e.text(f.message, attrs.AppendLine, limit-e.tailSize(seq))
		e.number(seq, ` seq=`, ` run=`)
		e.out = append(e.out, e.buf...)
	case AttrsJSON:
		e.out = append(e.out, jsonStart...)
		e.text(f.message, attrs.AppendJSONLine, limit-e.tailSize(seq)-len(`"}`)-len(jsonLevel)-len(f.level))
		if f.level != "" {
			e.out = append(append(e.out, jsonLevel...), f.level...)
		}
		e.out = append(e.out, '"')
		e.number(seq, `,"seq":`, `,"run":`)
		e.out = append(append(e.out, e.buf...), '}')
	}
}

// structure ends STRUCTURED-DATA, and begins MSG.
func (e *encoder) structure() {
	h := &e.config.header
	own := e.config.attrs == AttrsStructured && len(e.buf) > 0
	if !own && h.run == "" {
		e.out = append(e.out, h.bare...)
		return
	}
	b := append(append(e.out, h.origin...), h.element...)
	if h.run != "" {
		b = append(append(append(b, ` run="`...), h.run...), '"')
	}
	if own {
		b = append(b, e.buf...)
	}
	e.out = append(append(b, ']'), h.msg...)
}

// spellMark writes a byte order mark with which the text itself begins as the escape of other characters that receivers must not take
// for anything else. As it is, they would take it for the one of MSG, and away.
func (e *encoder) spellMark(f *facts) {
	if rest, ok := strings.CutPrefix(f.message, "\uFEFF"); ok {
		e.out = append(e.out, `\ufeff`...)
		f.message = rest
	}
}

// tailSize is how many bytes follow the text.
func (e *encoder) tailSize(seq uint64) int {
	n := len(e.buf)
	if seq > 0 && e.config.header.rfc3164 {
		n += len(`,"seq":18446744073709551615,"run":"0123456789abcdef"`)
	}
	return n
}

// number appends the sequence number and the run where no structured data holds them.
func (e *encoder) number(seq uint64, seqName, runName string) {
	if h := &e.config.header; seq > 0 && h.rfc3164 {
		e.out = attrs.AppendUint(append(e.out, seqName...), seq)
		e.out = append(append(append(append(e.out, runName...), '"'), h.run...), '"')
	}
}

// appendFunc appends as much of s as limit leaves room for, escaped for its place.
type appendFunc func(dst []byte, s string, limit int) (out []byte, taken int, repaired bool)

// text appends the message's text. When not all of it fits, or attributes were left out, it says how much is missing.
func (e *encoder) text(s string, escaped appendFunc, limit int) {
	b, taken, bad := escaped(e.out, s, limit)
	if taken < len(s) || e.untold > 0 {
		b, taken, bad = escaped(e.out, s, limit-markRoom)
		e.cut += len(s) - taken
		b = appendMark(b, e.untold+len(s)-taken, markEnd)
	}
	e.out = b
	if bad {
		e.repaired++
	}
}

func appendMark(b []byte, n int, end string) []byte {
	return append(strconv.AppendInt(append(b, markStart...), int64(n), 10), end...)
}
