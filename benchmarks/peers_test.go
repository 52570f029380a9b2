// Package benchmarks measures the library against what else there is. Only ratios mean anything; see the program in ratios.
package benchmarks

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"testing"
	"time"

	gogelf "github.com/Graylog2/go-gelf/gelf"
	"github.com/lmittmann/tint"
	"github.com/rs/zerolog"
	"github.com/sirupsen/logrus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/wholelog/wholelog/internal/yardstick"
)

func TestMain(m *testing.M) {
	if network := os.Getenv(sinkEnv); network != "" {
		sink(network) // this process is the receiver of another one's benchmarks
		return
	}
	os.Exit(m.Run())
}

// message is the yardstick record as a go-gelf program has it in hand, ready to be marshalled.
func message() *gogelf.Message {
	r := yardstick.Record()
	m := &gogelf.Message{Version: "1.1", Host: "h", Short: r.Message, TimeUnix: 1772368245.123, Level: 6, Extra: make(map[string]any)}
	for _, a := range yardstick.Attrs() {
		if a.Value.Kind() != slog.KindGroup {
			m.Extra["_"+a.Key] = a.Value.Any()
			continue
		}
		for _, b := range a.Value.Group() {
			m.Extra["_"+a.Key+"."+b.Key] = b.Value.Any()
		}
	}
	return m
}

func BenchmarkGoGELFMarshal(b *testing.B) {
	m := message()
	var buf bytes.Buffer
	b.ReportAllocs()
	for b.Loop() {
		buf.Reset()
		if err := m.MarshalJSONBuf(&buf); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkHandle is a handler alone: the record exists, the bytes go nowhere.
func BenchmarkHandle(b *testing.B) {
	for name, h := range map[string]slog.Handler{
		"slog_json": slog.NewJSONHandler(io.Discard, nil),
		"slog_text": slog.NewTextHandler(io.Discard, nil),
		"tint":      tint.NewTextHandler(io.Discard, &tint.Options{NoColor: true}),
	} {
		b.Run(name, func(b *testing.B) {
			r := yardstick.Record()
			ctx := context.Background()
			b.ReportAllocs()
			for b.Loop() {
				if err := h.Handle(ctx, r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// nowhere is a handler that does nothing.
type nowhere struct{}

func (nowhere) Enabled(context.Context, slog.Level) bool  { return true }
func (nowhere) Handle(context.Context, slog.Record) error { return nil }
func (h nowhere) WithAttrs([]slog.Attr) slog.Handler      { return h }
func (h nowhere) WithGroup(string) slog.Handler           { return h }

// BenchmarkSlogAlone is what a call through slog.Logger costs before any handler does anything: the time, the caller, the record.
func BenchmarkSlogAlone(b *testing.B) {
	ctx := context.Background()
	log := slog.New(nowhere{})
	b.ReportAllocs()
	for b.Loop() {
		log.LogAttrs(ctx, slog.LevelInfo, ready)
	}
}

// BenchmarkCall is a whole log call with the yardstick record: attributes made, record made, encoded, bytes to nowhere. In the bound
// forms the attributes were given to the logger before, and the call has none.
func BenchmarkCall(b *testing.B) {
	ctx := context.Background()
	bench := func(name string, call func()) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				call()
			}
		})
	}
	for name, h := range map[string]slog.Handler{
		"slog_json": slog.NewJSONHandler(io.Discard, nil), "slog_text": slog.NewTextHandler(io.Discard, nil),
		"tint": tint.NewTextHandler(io.Discard, &tint.Options{NoColor: true}),
	} {
		log := slog.New(h)
		bench(name, func() { log.LogAttrs(ctx, slog.LevelInfo, yardstick.Message, yardstick.Attrs()...) })
		bound := slog.New(h.WithAttrs(yardstick.Attrs()))
		bench(name+"_bound", func() { bound.LogAttrs(ctx, slog.LevelInfo, yardstick.Message) })
	}

	encoder := zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig())
	zlog := zap.New(zapcore.NewCore(encoder, zapcore.AddSync(io.Discard), zap.InfoLevel))
	bench("zap", func() { zlog.Info(yardstick.Message, zapFields()...) })
	zbound := zlog.With(zapFields()...)
	bench("zap_bound", func() { zbound.Info(yardstick.Message) })

	rlog := zerolog.New(io.Discard).With().Timestamp().Logger()
	bench("zerolog", func() {
		rlog.Info().Str("service", "checkout").Str("method", "POST").Str("path", "/api/v1/orders/8731/payments").Int("status", 201).
			Dur("elapsed", 18*time.Millisecond).Int64("bytes_in", 1834).Float64("cpu_ms", 3.25).
			Str("trace_id", "4bf92f3577b34da6a3ce929d0e0e4736").
			Dict("user", zerolog.Dict().Str("id", "u-19283").Str("plan", "business")).Str("remote", "203.0.113.17:51882").
			Msg(yardstick.Message)
	})
	rbound := zerolog.New(io.Discard).With().Timestamp().Str("service", "checkout").Str("method", "POST").
		Str("path", "/api/v1/orders/8731/payments").Int("status", 201).Dur("elapsed", 18*time.Millisecond).Int64("bytes_in", 1834).
		Float64("cpu_ms", 3.25).Str("trace_id", "4bf92f3577b34da6a3ce929d0e0e4736").
		Dict("user", zerolog.Dict().Str("id", "u-19283").Str("plan", "business")).Str("remote", "203.0.113.17:51882").Logger()
	bench("zerolog_bound", func() { rbound.Info().Msg(yardstick.Message) })

	llog := logrus.New()
	llog.SetOutput(io.Discard)
	llog.SetFormatter(&logrus.JSONFormatter{})
	bench("logrus", func() { llog.WithFields(logrusFields()).Info(yardstick.Message) })
	lbound := llog.WithFields(logrusFields())
	bench("logrus_bound", func() { lbound.Info(yardstick.Message) })

	var buf bytes.Buffer
	bench("gogelf", func() {
		buf.Reset()
		if err := message().MarshalJSONBuf(&buf); err != nil {
			b.Fatal(err)
		}
	})
}

func zapFields() []zap.Field {
	return []zap.Field{
		zap.String("service", "checkout"), zap.String("method", "POST"), zap.String("path", "/api/v1/orders/8731/payments"),
		zap.Int("status", 201), zap.Duration("elapsed", 18*time.Millisecond), zap.Int64("bytes_in", 1834),
		zap.Float64("cpu_ms", 3.25), zap.String("trace_id", "4bf92f3577b34da6a3ce929d0e0e4736"),
		zap.Dict("user", zap.String("id", "u-19283"), zap.String("plan", "business")), zap.String("remote", "203.0.113.17:51882"),
	}
}

func logrusFields() logrus.Fields {
	return logrus.Fields{
		"service": "checkout", "method": "POST", "path": "/api/v1/orders/8731/payments", "status": 201,
		"elapsed": 18 * time.Millisecond, "bytes_in": int64(1834), "cpu_ms": 3.25,
		"trace_id": "4bf92f3577b34da6a3ce929d0e0e4736", "user": map[string]string{"id": "u-19283", "plan": "business"},
		"remote": "203.0.113.17:51882",
	}
}

// BenchmarkAtomicPick is the cheapest choice there could be: an atomic load of the set and a counter.
func BenchmarkAtomicPick(b *testing.B) {
	var set atomic.Pointer[[]int]
	set.Store(&[]int{1, 2, 3})
	var n atomic.Uint64
	sum := 0
	b.ReportAllocs()
	for b.Loop() {
		s := *set.Load()
		sum += s[n.Add(1)%uint64(len(s))]
	}
	if sum == 0 {
		b.Fatal("nothing was chosen")
	}
}
