package handlertest

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"testing"
	"testing/slogtest"
	"time"
)

// conformance is the standard library's own suite.
func conformance(t *testing.T, p Protocol) {
	var h Handler
	var s *Sink
	var timed bool
	slogtest.Run(t, func(t *testing.T) slog.Handler {
		h, s = p.open(t, Options{})
		return watched{h, &timed}
	}, func(t *testing.T) map[string]any {
		m := p.sent(t, h, s)[0]
		if p.AlwaysTimed && !timed {
			delete(m, slog.TimeKey)
		}
		return m
	})
}

// watched remembers whether the last record had a time, which a message may be unable to tell.
type watched struct {
	slog.Handler
	timed *bool
}

func (w watched) Handle(ctx context.Context, r slog.Record) error {
	*w.timed = !r.Time.IsZero()
	return w.Handler.Handle(ctx, r)
}

func (w watched) WithAttrs(as []slog.Attr) slog.Handler {
	return watched{w.Handler.WithAttrs(as), w.timed}
}

func (w watched) WithGroup(name string) slog.Handler {
	return watched{w.Handler.WithGroup(name), w.timed}
}

// none is a nil context, behind which no linter looks.
var none context.Context

func noContext(t *testing.T, p Protocol) {
	var got []context.Context
	h, s := p.open(t, Options{FromContext: func(ctx context.Context) []slog.Attr { got = append(got, ctx); return nil }})
	if !h.Enabled(none, slog.LevelInfo) {
		t.Error("Info is not enabled")
	}
	if err := h.Handle(none, record("m")); err != nil {
		t.Error(err)
	}
	if n := len(p.sent(t, h, s)); n != 1 || len(got) != 1 || got[0] == nil {
		t.Errorf("%d records; FromContext got %v", n, got)
	}
}

// record is one of now.
func record(message string, as ...slog.Attr) slog.Record {
	r := slog.NewRecord(time.Now(), slog.LevelInfo, message, 0)
	r.AddAttrs(as...)
	return r
}

type levelPanics struct{}

func (levelPanics) Level() slog.Level { panic(errors.New("no level")) }

// levels: they are numbers, and a LevelVar takes effect at once, also in handlers derived before. Where nothing says what the level is, it
// is Info.
func levels(t *testing.T, p Protocol) {
	var v slog.LevelVar
	h, _ := p.open(t, Options{Level: &v})
	derived := h.WithGroup("g").WithAttrs([]slog.Attr{slog.Int("a", 1)})
	for _, x := range []struct{ min, level slog.Level }{
		{slog.LevelInfo, slog.LevelInfo + 1},
		{slog.LevelInfo, slog.LevelInfo},
		{slog.LevelInfo, slog.LevelInfo - 1},
		{slog.LevelError, slog.LevelWarn},
		{-100, slog.LevelDebug},
		{math.MinInt, math.MinInt},
	} {
		v.Set(x.min)
		for _, h := range []slog.Handler{h, derived} {
			if got := h.Enabled(t.Context(), x.level); got != (x.level >= x.min) {
				t.Errorf("minimum %v: %v is enabled: %v", x.min, x.level, got)
			}
		}
	}
	for _, l := range []slog.Leveler{nil, levelPanics{}, (*slog.LevelVar)(nil)} {
		h, _ := p.open(t, Options{Level: l})
		if !h.Enabled(t.Context(), slog.LevelInfo) || h.Enabled(t.Context(), slog.LevelDebug) {
			t.Errorf("%T is not Info", l)
		}
	}
}

// nothingGiven: no attributes, and a group without a name, change nothing.
func nothingGiven(t *testing.T, p Protocol) {
	h, _ := p.open(t, Options{})
	if h.WithAttrs(nil) != slog.Handler(h) || h.WithAttrs([]slog.Attr{}) != slog.Handler(h) || h.WithGroup("") != slog.Handler(h) {
		t.Error("a new handler")
	}
}
