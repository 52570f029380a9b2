package gelf

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/fake/gelfd"
	"github.com/wholelog/wholelog/resolve"
)

// receiver is a server and a logger that sends to it.
type receiver struct {
	*gelfd.Server
	handler *Handler
}

func newReceiver(t *testing.T, o Options) *receiver {
	t.Helper()
	s, err := gelfd.Listen("127.0.0.1:0", gelfd.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	o.Host = "h"
	h, err := NewHandler("udp://"+s.Addr().String(), &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return &receiver{s, h}
}

// got returns the messages that log leads to, as many as it says.
func (r *receiver) got(t *testing.T, log func(h slog.Handler) int) []gelfd.Message {
	t.Helper()
	before := len(r.Messages())
	n := log(r.handler)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := r.handler.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	if err := r.Wait(ctx, before+n); err != nil {
		t.Fatalf("%v: %+v", err, r.Server.Stats())
	}
	return r.Messages()[before:]
}

type asError struct{ Code int }

func (e asError) Error() string { return fmt.Sprint("code ", e.Code) }

// What the index of a receiver holds of a record: the names and values that the requirement is about.
func TestRequirementsOnTheWire(t *testing.T) {
	at := time.Date(2021, 7, 5, 12, 34, 56, 12_345_678, time.UTC)
	attrs := func(args ...any) func(*slog.Logger) { return func(l *slog.Logger) { l.Info("m", args...) } }
	long := strings.Repeat("0123456789", 1000)
	r := newReceiver(t, Options{})
	for name, c := range map[string]struct {
		log  func(*slog.Logger)
		want map[string]any // nil: the field must not be there
	}{
		"R03 a boolean is a text": {attrs("ok", true), map[string]any{"ok": "true"}},
		"R04 content and no address": {
			attrs("p", &struct{ A []int }{[]int{1}}, "n", (*int)(nil)),
			map[string]any{"p": `{"A":[1]}`, "n": "<nil>"},
		},
		"R05 no NUL on the wire": {attrs("z", "a\x00b"), map[string]any{"z": "a\x00b"}},
		"R06 an error is its text": {
			attrs("e", fmt.Errorf("w: %w", asError{7}), "s", asError{8}),
			map[string]any{"e": "w: code 7", "s": "code 8"},
		},
		"R07 a long message arrives whole": {
			func(l *slog.Logger) { l.Info(long) },
			map[string]any{"message": long, "truncated": nil},
		},
		"R08 numbers are numbers":             {attrs("i", 1234, "f", 1.5), map[string]any{"i": int64(1234), "f": 1.5}},
		"R08 numbers that are none are shown": {attrs("n", math.NaN()), map[string]any{"n": "NaN"}},
		"R10 an attribute named id":           {attrs("id", 5), map[string]any{"id": nil, "id_": int64(5)}},
		"R11 other characters": {
			attrs("a b/c", 1, "größe", 2),
			map[string]any{"a_b_c": int64(1), "gr__e": int64(2)},
		},
		"R12 an attribute is a field":          {attrs("foo", 1), map[string]any{"foo": int64(1)}},
		"R12 a receiver finds nothing to drop": {attrs("", 1, "e", "", "gl2_x", 1), map[string]any{"unnamed": int64(1)}},
		"R13 the record's own fields stay": {
			attrs("message", "x", "level", 1, "source", "y", "time", 2, "msg", "z"),
			map[string]any{
				"message": "m", "level": int64(6), "source": "h",
				"message_": "x", "level_": int64(1), "source_": "y", "time": int64(2), "msg": "z",
			},
		},
		"R60 an empty group leaves no trace": {
			func(l *slog.Logger) { l.With("a", "b").WithGroup("G").With("c", "d").WithGroup("H").Info("m") },
			map[string]any{"a": "b", "G_c": "d", "H": nil, "G_H": nil},
		},
		"R61 groups of With": {
			func(l *slog.Logger) { l.WithGroup("g").With("a", 1).WithGroup("h").With("b", 2).Info("m") },
			map[string]any{"g_a": int64(1), "g_h_b": int64(2)},
		},
		"R62 a method that panics": {
			attrs("a", 1, "v", (*stack)(nil), "e", (*asError)(nil), "b", 2),
			map[string]any{
				"a": int64(1), "b": int64(2), "e": "<nil>",
				"v": "!PANIC: runtime error: invalid memory address or nil pointer dereference",
			},
		},
		"R63 a group without a name": {attrs(slog.Group("", "c", "d")), map[string]any{"c": "d"}},
		"R64 the path of groups": {
			func(l *slog.Logger) { l.WithGroup("g1").WithGroup("g2").Info("m", slog.Group("m", "k", "v")) },
			map[string]any{"g1_g2_m_k": "v"},
		},
		"R65 a nil context": {
			func(l *slog.Logger) { l.InfoContext(noContext, "m", "a", 1) },
			map[string]any{"a": int64(1)},
		},
		"R67 an argument without a key": {attrs("a", 1, "alone"), map[string]any{"BADKEY": "alone"}},
		"R79 durations have one unit": {
			attrs("s", time.Nanosecond, "l", 48*time.Hour),
			map[string]any{"s": int64(1), "l": int64(48 * time.Hour)},
		},
		"R80 a time keeps its instant": {
			attrs("t", at.In(time.FixedZone("X", 19_800))),
			map[string]any{"t": "2021-07-05T18:04:56.012345678+05:30"},
		},
	} {
		m := r.got(t, func(h slog.Handler) int { c.log(slog.New(h)); return 1 })[0]
		for field, want := range c.want {
			value, there := m.Fields[field]
			if field == "message" && m.Fields["full_message"] != nil {
				value = m.Fields["full_message"]
			}
			if there != (want != nil) || !reflect.DeepEqual(value, want) {
				t.Errorf("%s: %s is %.80v, want %.80v; %.400s", name, field, value, want, m.Raw)
			}
		}
		if len(m.Dropped) > 0 || strings.Contains(string(m.Raw), "\x00") || strings.Contains(string(m.Raw), "0xc0") {
			t.Errorf("%s: dropped %v; %.400s", name, m.Dropped, m.Raw)
		}
		for _, key := range regexp.MustCompile(`"(_[^"]*)":`).FindAllStringSubmatch(string(m.Raw), -1) {
			if !regexp.MustCompile(`^_[A-Za-z0-9_.-]+$`).MatchString(key[1]) {
				t.Errorf("%s: key %q (R11)", name, key[1])
			}
		}
	}
}

func TestR01_R02_R31_TimesAndLevelsOnTheWire(t *testing.T) {
	at := time.Date(2021, 7, 5, 12, 34, 56, 12_345_678, time.UTC)
	levels := []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}
	r := newReceiver(t, Options{Level: slog.LevelDebug})
	messages := r.got(t, func(h slog.Handler) int {
		for i, level := range levels {
			if err := h.Handle(t.Context(), slog.NewRecord(at.Add(time.Duration(i)*time.Millisecond), level, "m", 0)); err != nil {
				t.Error(err)
			}
		}
		return len(levels)
	})
	severities := map[string]int64{"1625488496.012": 7, "1625488496.013": 6, "1625488496.014": 4, "1625488496.015": 3}
	for _, m := range messages { // each on a flow of its own, so perhaps in another order
		stamp := regexp.MustCompile(`"timestamp":([0-9.]*)`).FindStringSubmatch(string(m.Raw))[1]
		if m.Fields["level"] != severities[stamp] {
			t.Errorf("%s", m.Raw)
		}
		delete(severities, stamp)
	}
	if len(severities) > 0 {
		t.Errorf("missing: %v", severities)
	}
}

// The sizes of the requirement itself, through the handler: 128 chunks of 1420 bytes hold 180 224 bytes, and one more is cut.
func TestR14_R15_R16_R17_R18_ChunksOnTheWire(t *testing.T) {
	const most = 128 * (1420 - 12)
	r := newReceiver(t, Options{ChunkSize: 1420, Compression: CompressNone, PacketRate: 2000})
	frame := len(r.got(t, func(h slog.Handler) int { _ = h.Handle(t.Context(), info("x")); return 1 })[0].Raw) - 1
	for _, c := range []struct{ n, chunks int }{{1420, 1}, {1421, 2}, {2 * 1408, 2}, {2*1408 + 1, 3}, {most - 1, 128}, {most, 128}, {most + 1, 128}} {
		text := noise(c.n-frame-1) + "x" // receivers trim blanks
		m := r.got(t, func(h slog.Handler) int { _ = h.Handle(t.Context(), info(text)); return 1 })[0]
		_, cut := m.Fields["truncated"]
		if len(m.Sizes) != c.chunks || cut != (c.n > most) || !cut && (len(m.Raw) != c.n || m.Fields["message"] != text) {
			t.Errorf("%d bytes: %d datagrams of %d, cut: %v", c.n, len(m.Sizes), len(m.Raw), cut)
		}
		for _, size := range m.Sizes {
			if size > 1420 {
				t.Errorf("%d bytes: a datagram of %d", c.n, size)
			}
		}
		if len(m.From) != 1 {
			t.Errorf("%d bytes: from %v", c.n, m.From)
		}
	}
}

// Every kind of compression, and none where it does not pay; a limit in bytes cuts between characters.
func TestR19_R20_R21_R23_R24_PayloadsOnTheWire(t *testing.T) {
	for mode, kind := range map[Compression]gelfd.Kind{CompressAuto: gelfd.Gzip, CompressNone: gelfd.Plain, CompressGzip: gelfd.Gzip, CompressZlib: gelfd.Zlib} {
		r := newReceiver(t, Options{ChunkSize: 100, Compression: mode})
		for i, m := range r.got(t, func(h slog.Handler) int {
			slog.New(h).Info("small")
			slog.New(h).Info(strings.Repeat("€", 40))
			slog.New(h).Info(strings.Repeat("€😀é", 60_000))
			return 3
		}) {
			if want := map[bool]gelfd.Kind{true: gelfd.Plain, false: kind}[strings.Contains(string(m.Raw), "small")]; m.Kind != want {
				t.Errorf("%v: message %d is %v", mode, i, m.Kind)
			}
			if text, _ := m.Fields["message"].(string); text != "small" && strings.Trim(text, "€😀é") != "" {
				t.Errorf("%v: a cut inside a character: %.100q", mode, strings.Trim(text, "€😀é"))
			}
			for _, size := range m.Sizes {
				if size > 100 {
					t.Errorf("%v: a datagram of %d bytes", mode, size)
				}
			}
		}
	}
	r := newReceiver(t, Options{Compression: CompressGzip})
	m := r.got(t, func(h slog.Handler) int { slog.New(h).Info(strings.Repeat("a", 200_000)); return 1 })[0]
	if len(m.Sizes) != 1 || m.Sizes[0] > 1472 {
		t.Errorf("R21: %v", m.Sizes)
	}
}

// No secret from a URL, an option or a resolver's options is in an error, in what a hook hears, or in the counters.
func TestR81_NoSecretIsTold(t *testing.T) {
	const secret = "s3cret"
	var told []string
	for target, o := range map[string]Options{
		"udp://user:" + secret + "@h:1":  {},
		"udp://h:1?token=" + secret:      {},
		"http://u:" + secret + "@h:0":    {},
		"udp://h..:1#" + secret:          {},
		"udp://" + secret + "@300.1.2:1": {},
		"udp://h:1":                      {Header: http.Header{"Authorization": {secret}}},
		"udp://i:1":                      {Fallback: "http://u:" + secret + "@h/gelf"},
		"udp://j:1":                      {Resolve: resolve.Options{Resolver: resolve.DNS("u:"+secret+"@h:1", nil)}},
	} {
		h, err := NewHandler(target, &o)
		if h != nil || err == nil {
			t.Errorf("%s: %v, %v", target, h, err)
			continue
		}
		told = append(told, err.Error())
	}
	h, err := NewHandler("udp://127.0.0.1:1", &Options{
		Resolve:  resolve.Options{Resolver: failing{errors.New("no answer")}},
		Delivery: delivery.Options{CloseTimeout: time.Nanosecond, OnError: func(err error) { told = append(told, err.Error()) }},
	})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(h).With("token", secret)
	log.Info("m", "password", secret)
	told = append(told, fmt.Sprint(h.Close()), fmt.Sprintf("%+v", h.Stats()), fmt.Sprintf("%+v", h))
	for _, text := range told {
		if strings.Contains(text, secret) {
			t.Error(text)
		}
	}
}

// failing is a resolver that knows nothing.
type failing struct{ err error }

func (f failing) Resolve(context.Context) (resolve.Answer, error) { return resolve.Answer{}, f.err }
