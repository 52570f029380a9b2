package syslog

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/wholelog/wholelog/internal/attrs"
	"github.com/wholelog/wholelog/internal/fake/syslogd"
	"github.com/wholelog/wholelog/internal/severity"
)

// Whatever a record holds, a strict receiver takes the message and finds in it what was logged.
func FuzzEncode(f *testing.F) {
	f.Add("message", "key", "value", int64(1), 1.5, uint64(2), int64(0), uint16(1), uint8(0))
	f.Add("two\nlines", "id", "", int64(math.MinInt64), math.Inf(1), uint64(math.MaxUint64), int64(-62135596800), uint16(1), uint8(1))
	f.Add("\xff\x00\u2003", "a.b", " \t]", int64(0), math.NaN(), uint64(1<<63), int64(1625488496012), uint16(10), uint8(2))
	f.Add("\"\x01\u2028\x7f", "msg", "€\\", int64(9), 1e300, uint64(0), int64(1<<50), uint16(1000), uint8(1))
	f.Add("long \n", "k=\"]", "\x02", int64(1), 0.0, uint64(0), int64(1), uint16(40_000), uint8(5))
	f.Add("12 angry men", "", "\u0085", int64(1), 0.0, uint64(0), int64(1), uint16(1), uint8(9))
	f.Add("\ufeff\ufeff", "k", "\ufeff", int64(1), 0.0, uint64(0), int64(1), uint16(1), uint8(48))
	f.Add("@cee:{\"a\":1}", "seq", "a\x00b", int64(29), math.Copysign(0, -1), uint64(7), int64(253402300800000), uint16(2), uint8(76))
	handlers := make([]*Handler, 256)
	for o := range handlers {
		handlers[o] = testHandler(f, fuzzOptions(uint8(o)))
	}
	f.Fuzz(func(t *testing.T, message, key, text string, i int64, x float64, u uint64, ms int64, times uint16, o uint8) {
		name := text // a long one is a name of many characters, and no more to learn from
		message, text = repeated(message, times), repeated(text, times)
		options, h := fuzzOptions(o), handlers[o]
		bound := h.WithAttrs([]slog.Attr{slog.String(key, text)}).WithGroup(name).WithGroup(key)
		at := time.UnixMilli(ms)
		r := slog.NewRecord(at, slog.Level(i%30), message, 0)
		r.AddAttrs(
			slog.String(key, message), slog.Int64(key, i), slog.Group(key, slog.Uint64(name, u), slog.Bool("b", i > 0), slog.Duration("d", time.Duration(i))),
			slog.Float64("f", x), slog.Any("n", []string{key}), slog.Any("nil", nil),
		)
		var seq uint64
		if options.Sequence {
			seq = max(u, 1)
		}
		limit := h.core.limit - int(u%50)
		got, tally := encodeWithin(bound.(*Handler), &r, seq, limit)
		if len(got) > limit {
			t.Fatalf("%d bytes, limit %d", len(got), limit)
		}
		m, cut := parsed(t, got), tally.cut > 0
		if m.Facility != 16 || m.Severity != int(severity.Of(r.Level)) || m.Hostname != "h" || m.AppName != "app" || m.ProcID != "7" {
			t.Fatalf("%.200q", got)
		}
		if year := at.Year(); options.Format == RFC5424 && year > 0 && year < 9999 && !m.Time.Equal(at) {
			t.Fatalf("%v became %v", at, m.Time)
		}
		want := fuzzFields(message, key, name, text, i, x, u)
		if options.Format == RFC3164 && m.BOM { // there is no such mark in this format
			m.BOM, m.Text = false, "\ufeff"+m.Text
		}
		if m.BOM != options.BOM {
			t.Fatalf("mark is %v: %.200q", m.BOM, got)
		}
		if seq > 0 && options.Format == RFC5424 {
			checkNumber(t, &m, seq, h.core.config.header.run)
		}
		own := []field{{path: []string{"seq"}, value: fmt.Sprint(seq)}, {path: []string{"run"}, value: h.core.config.header.run, text: true}}
		if seq == 0 || options.Format == RFC5424 {
			own = nil
		}
		shown := textOf(message, options.Format)
		switch h.core.config.attrs {
		case AttrsJSON:
			doc, ok := strings.CutPrefix(m.Text, "@cee:")
			if !ok {
				t.Fatalf("%.200q", got)
			}
			if text := checkDoc(t, doc, own, want, cut); !kept(text, docTextOf(message), cut) {
				t.Fatalf("%.200q became %.200q", message, text)
			}
		case AttrsText:
			if cut { // where words end is not to be seen then
				break
			}
			rest, ok := strings.CutPrefix(m.Text, shown)
			if !ok {
				t.Fatalf("%.200q became %.200q", message, m.Text)
			}
			if own != nil { // always in quotes, so that no receiver takes it for a number
				own[1].value, own[1].text = strconv.Quote(own[1].value), false
			}
			checkWords(t, rest, append(own, want...))
		default:
			if !kept(m.Text, shown, cut) {
				t.Fatalf("%.200q became %.200q", message, m.Text)
			}
			var params []syslogd.Param
			if len(m.Elements) > 0 { // or nothing has found room
				params = m.Elements[0].Params
			}
			if len(m.Elements) > 1 || len(params) > 0 && m.Elements[0].ID != defaultSDID {
				t.Fatalf("%.200q", m.Elements)
			}
			checkParams(t, params, want, cut)
		}
		if cut != strings.Contains(got, markStart) && !strings.Contains(message+key+text, markStart) {
			t.Fatalf("%+v, %.200q", tally, got)
		}
		if whole := utf8.ValidString(message) && utf8.ValidString(text); tally.repaired == 0 && !whole && options.Attrs == AttrsStructured && options.Format == RFC5424 {
			t.Fatalf("%+v, %.200q", tally, got)
		}
	})
}

// fuzzOptions are all there are that change a message's form.
func fuzzOptions(o uint8) Options {
	options := Options{Attrs: Attrs(o & 3 % 3), Sequence: o&4 != 0, BOM: o&16 != 0, MaxSize: [...]int{600, 1432, 4096, 20_000}[o>>6]}
	if o&8 != 0 {
		options.Format, options.BOM = RFC3164, false
	}
	return options
}

// fuzzFields is what the record of the fuzz test holds, in order.
func fuzzFields(message, key, name, text string, i int64, x float64, u uint64) []field {
	var groups []string
	for _, g := range []string{name, key} {
		if g != "" {
			groups = append(groups, g)
		}
	}
	in := func(names ...string) []string {
		path := append([]string(nil), groups...)
		for n, s := range names {
			if s != "" || n == len(names)-1 { // a group without a name is none
				path = append(path, s)
			}
		}
		return path
	}
	float := field{path: in("f"), value: attrs.FloatText(x), text: true}
	if number, finite := attrs.AppendFloat(nil, x); finite {
		float.value, float.text = string(number), false
	}
	var doc bytes.Buffer
	e := json.NewEncoder(&doc)
	e.SetEscapeHTML(false)
	_ = e.Encode([]string{key}) // it cannot fail
	return []field{
		{path: []string{key}, value: text, text: true},
		{path: in(key), value: message, text: true},
		{path: in(key), value: fmt.Sprint(i)},
		{path: in(key, name), value: fmt.Sprint(u)},
		{path: in(key, "b"), value: fmt.Sprint(i > 0)},
		{path: in(key, "d"), value: fmt.Sprint(i)},
		float,
		{path: in("n"), value: strings.TrimSpace(doc.String()), list: true},
		{path: in("nil"), value: "<nil>", text: true},
	}
}

// checkNumber looks at what numbers a message, and takes it out.
func checkNumber(t *testing.T, m *syslogd.Message, seq uint64, run string) {
	t.Helper()
	if n, _ := m.Param("meta", "sequenceId"); n != fmt.Sprint((seq-1)%math.MaxInt32+1) {
		t.Fatalf("%d became %s", seq, n)
	}
	m.Elements = m.Elements[1:]
	if p := m.Elements[0].Params[0]; p.Name != "run" || p.Value != run {
		t.Fatalf("%q", p)
	}
	m.Elements[0].Params = m.Elements[0].Params[1:]
}

// encodeWithin is encode with less room than the options give.
func encodeWithin(h *Handler, r *slog.Record, seq uint64, limit int) (string, tally) {
	e := h.core.Borrow()
	defer h.core.Return(e)
	e.record(context.Background(), h.scope, seq, r, limit)
	return string(e.out), e.tally
}

// repeated makes large texts of small inputs, which fuzzing handles better.
func repeated(s string, times uint16) string {
	return strings.Repeat(s, min(int(times), 25_000/max(len(s), 1)))
}
