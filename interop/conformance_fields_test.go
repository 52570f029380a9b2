//go:build linux

package interop

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/gelf"
)

func levelZero(t *testing.T) {
	s := listen(t)
	h := confHandler(t, s.Addr().String(), gelf.Options{})
	for i, tt := range []struct {
		level slog.Level
		want  int64
	}{{slog.LevelError + 12, 0}, {slog.LevelError + 8, 1}, {slog.LevelError, 3}, {slog.LevelWarn, 4}, {slog.LevelInfo, 6}} {
		logAt(t, h, tt.level, "a level")
		if got := await(t, s, i+1)[i].Fields["level"]; got != tt.want {
			t.Errorf("%v: level %v, want %d", tt.level, got, tt.want)
		}
	}
}

func noNumbers(t *testing.T) {
	s := listen(t)
	h := confHandler(t, s.Addr().String(), gelf.Options{})
	logAt(t, h, slog.LevelInfo, "no numbers",
		slog.Float64("nan", math.NaN()), slog.Float64("inf", math.Inf(1)), slog.Float64("minus", math.Inf(-1)), slog.Float64("half", 0.5))
	got := await(t, s, 1)[0].Fields
	if got["nan"] != "NaN" || got["inf"] != "+Inf" || got["minus"] != "-Inf" || got["half"] != 0.5 || got["message"] != "no numbers" {
		t.Errorf("%v", got)
	}
}

func fields(t *testing.T) {
	s := listen(t)
	h := confHandler(t, s.Addr().String(), gelf.Options{})
	logAt(t, h, slog.LevelInfo, "fields", slog.Bool("yes", true), slog.Bool("no", false), slog.Uint64("large", math.MaxUint64),
		slog.Int64("small", math.MinInt64), slog.String("id", "a-17"), slog.String("source", "not the host"), slog.String("a b/ö", "name"),
		slog.Any("err", errors.New("a failure")), slog.String("empty", ""), slog.Any("nothing", nil))
	m := await(t, s, 1)[0]
	for name, want := range map[string]any{
		"yes": "true", "no": "false", "large": "18446744073709551615", "small": int64(math.MinInt64), "source": "sender", "err": "a failure",
	} {
		if got := m.Fields[name]; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	var values []string
	for _, v := range m.Fields {
		values = append(values, fmt.Sprint(v))
	}
	for _, want := range []string{"a-17", "not the host", "name"} { // under whatever name
		if !slices.Contains(values, want) {
			t.Errorf("%q did not arrive: %v", want, m.Fields)
		}
	}
	if len(m.Dropped) != 0 || len(m.Wrapped) != 0 {
		t.Errorf("dropped %v, wrapped %v", m.Dropped, m.Wrapped)
	}
}

func longFields(t *testing.T) {
	s := listen(t)
	h := confHandler(t, s.Addr().String(), gelf.Options{})
	euros := strings.Repeat("€", 10_922) // 32 766 bytes, the most
	for i, text := range []string{euros[3:], euros, "x" + euros, euros + "€€"} {
		logAt(t, h, slog.LevelInfo, "long", slog.String("value", text))
		flush(t, h)
		got, _ := await(t, s, i+1)[i].Fields["value"].(string)
		want := text
		for len(want) > 32_766 {
			_, size := utf8.DecodeLastRuneInString(want)
			want = want[:len(want)-size]
		}
		if got != want {
			t.Errorf("%d bytes: %d arrived, want %d", len(text), len(got), len(want))
		}
		if st := h.Stats(); st.Truncated != uint64(max(0, i-1)) {
			t.Errorf("%d bytes: %d counted as truncated", len(text), st.Truncated)
		}
	}
	if st := s.Stats(); len(st.Rejected) != 0 {
		t.Errorf("%+v", st)
	}
}

func inflated(t *testing.T) {
	const most = 8<<20 - 1
	s := listen(t)
	h := newHandler(t, "udp://"+s.Addr().String(), gelf.Options{
		Compression: gelf.CompressGzip, Delivery: delivery.Options{QueueBytes: 64 << 20},
	}) // a quarter of the queue is the most for one record
	for i, n := range []int{most - 1000, most + 1000} {
		text := strings.Repeat("a", n)
		logAt(t, h, slog.LevelInfo, text)
		flush(t, h)
		m := await(t, s, i+1)[i]
		kept := textOf(m)
		if len(m.Raw) > most || len(m.Raw) < most-2000 || !strings.HasPrefix(text, kept) {
			t.Errorf("%d characters: %d kept, %d bytes inflated", n, len(kept), len(m.Raw))
		}
		if cut, marked := m.Fields["truncated"].(int64); marked != (n > most) || marked && int(cut) != n-len(kept) {
			t.Errorf("%d characters: %d kept, %d cut", n, len(kept), cut)
		}
	}
	if st := s.Stats(); len(st.Rejected) != 0 {
		t.Errorf("%+v", st)
	}
}

func blankMessages(t *testing.T) {
	s := listen(t)
	h := confHandler(t, s.Addr().String(), gelf.Options{})
	texts := []string{"", " ", "\n\n", "\x00", "\u00a0", "\ufeff", "\xff"}
	for i, text := range texts {
		logAt(t, h, slog.LevelInfo, text, slog.Int("number", i))
		flush(t, h)
		if m := await(t, s, i+1)[i]; m.Fields["number"] != int64(i) || m.Sizes[0] < 2 {
			t.Errorf("%q: %v in %v", text, m.Fields, m.Sizes)
		}
	}
	if st := s.Stats(); st.Datagrams != uint64(len(texts)) || len(st.Rejected) != 0 {
		t.Errorf("%+v", st)
	}
}
