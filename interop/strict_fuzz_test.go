//go:build linux

package interop

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	gosyslog "github.com/leodido/go-syslog/v4"
	"github.com/leodido/go-syslog/v4/rfc3164"
	"github.com/leodido/go-syslog/v4/rfc5424"

	"github.com/wholelog/wholelog/internal/fake/syslogd"
	"github.com/wholelog/wholelog/syslog"
)

// Whatever a record holds, another project's strict parsers take the message, in every form, from datagrams and from streams in both
// framings, and read the same out of it as our own, which the handler's fuzz test compares with what was logged.
func FuzzStrict(f *testing.F) {
	for o := 0; o < 256; o += 7 {
		f.Add("a\nb\x00\x1b€\xff", "k=]\" ", "v\\]\"\u2028", int64(o), 1.5, uint16(1), uint8(o))
	}
	f.Add("", "", "", int64(math.MinInt64), math.Inf(-1), uint16(0), uint8(0))
	f.Add("12 <13>1 - ", "msg", "@cee:", int64(1), math.NaN(), uint16(300), uint8(64))
	f.Add("\ufeff\ufeff", "größe", "\ufeff", int64(253402300800), 1e300, uint16(2000), uint8(16))
	dir := f.TempDir()
	var handlers [256]*strict
	for o := range handlers {
		handlers[o] = startStrict(f, filepath.Join(dir, fmt.Sprint(o)), o&64 != 0, strictOptions(uint8(o)))
	}
	f.Fuzz(func(t *testing.T, message, key, text string, i int64, x float64, times uint16, o uint8) {
		s := handlers[o]
		message = strings.Repeat(message, min(int(times), 20_000/max(len(message), 1)))
		r := slog.NewRecord(time.Unix(i, i&0xffff), slog.Level(i%20), message, 0)
		r.AddAttrs(slog.String(key, text), slog.Int64(key, i), slog.Group(text, slog.Float64(key, x)), slog.Any("m", map[string]string{key: text}))
		bound := s.h.WithAttrs([]slog.Attr{slog.String("b", key)}).WithGroup(key)
		second := slog.NewRecord(time.Unix(1, 0), slog.LevelError, "the second", 0)
		for _, r := range []slog.Record{r, second} {
			if err := bound.Handle(context.Background(), r); err != nil {
				t.Fatal(err)
			}
		}
		var raw [][]byte
		var got []gosyslog.Message
		if o&64 == 0 {
			raw = [][]byte{s.datagram(t), s.datagram(t)}
			for _, b := range raw {
				got = append(got, s.parsed(t, b))
			}
		} else {
			all := s.bytes(t)
			got = s.framed(t, all)
			raw = split(t, all, s.o.Framing)
		}
		if len(got) != 2 || len(raw) != 2 {
			t.Fatalf("%d and %d messages", len(got), len(raw))
		}
		for n, b := range raw {
			compare(t, got[n], b)
			if size := s.o.MaxSize; len(b) > size {
				t.Fatalf("%d bytes, the limit is %d", len(b), size)
			}
		}
	})
}

// strictOptions are all there are that change a message's form.
func strictOptions(o uint8) syslog.Options {
	s := syslog.Options{
		Attrs: syslog.Attrs(o & 3 % 3), Sequence: o&4 != 0, BOM: o&16 != 0 && o&8 == 0, Framing: syslog.OctetCounting,
		MaxSize: 8192, Origin: o&32 != 0 && o&8 == 0, AppendIP: o&32 != 0,
	}
	if o&8 != 0 {
		s.Format = syslog.RFC3164
	}
	if o&128 != 0 {
		s.Framing = syslog.Newline
	}
	if o&32 != 0 {
		s.MaxSize = 700
	}
	return s
}

// split takes a stream apart by our own word for it.
func split(t *testing.T, b []byte, framing syslog.Framing) (all [][]byte) {
	t.Helper()
	for len(b) > 0 {
		end := strings.IndexByte(string(b), '\n')
		if framing == syslog.OctetCounting {
			n := 0
			for len(b) > 0 && b[0] != ' ' {
				n, b = n*10+int(b[0]-'0'), b[1:]
			}
			b, end = b[min(1, len(b)):], n
		}
		if end < 0 || end > len(b) {
			t.Fatalf("%.100q is no frame", b)
		}
		all, b = append(all, b[:end]), b[end:]
		if framing == syslog.Newline {
			b = b[1:]
		}
	}
	return all
}

// compare holds what another parser read against what our own reads.
func compare(t *testing.T, got gosyslog.Message, raw []byte) {
	t.Helper()
	m, err := syslogd.Parse(string(raw))
	if err != nil {
		t.Fatal(err)
	}
	text := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	mark := ""
	if m.BOM {
		mark = "\ufeff"
	}
	switch g := got.(type) {
	case *rfc5424.SyslogMessage:
		if int(*g.Priority) != m.Facility*8+m.Severity || text(g.Hostname) != m.Hostname || text(g.Appname) != m.AppName || text(g.ProcID) != m.ProcID ||
			text(g.MsgID) != m.MsgID || !g.Timestamp.Equal(m.Time) || text(g.Message) != mark+m.Text {
			t.Fatalf("%+v is read as %+v", raw, g)
		}
		values := map[string]map[string]string{}
		for _, e := range m.Elements {
			values[e.ID] = map[string]string{}
			for _, p := range e.Params {
				values[e.ID][p.Name] = p.Value // of several with one name it keeps the last
			}
		}
		if (g.StructuredData == nil) != (len(m.Elements) == 0) {
			t.Fatalf("%q is read as %v", raw, g.StructuredData)
		}
		for id, params := range values {
			other := (*g.StructuredData)[id]
			if len(other) != len(params) {
				t.Fatalf("%q is read as %q", raw, other)
			}
			for name, value := range params {
				if other[name] != value {
					t.Fatalf("%s of %s is read as %q: %.2000q", name, id, other[name], raw)
				}
			}
		}
	case *rfc3164.SyslogMessage:
		stamp := g.Timestamp.Format(time.Stamp)
		if int(*g.Priority) != m.Facility*8+m.Severity || text(g.Hostname) != m.Hostname || text(g.Appname) != m.AppName || text(g.ProcID) != m.ProcID ||
			stamp != m.Time.Format(time.Stamp) || text(g.Message) != mark+m.Text {
			t.Fatalf("%q is read as %+v", raw, g)
		}
	}
}
