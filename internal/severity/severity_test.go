package severity_test

import (
	"log/slog"
	"math"
	"testing"

	"github.com/wholelog/wholelog/internal/severity"
)

func TestR31_LevelsToSeverities(t *testing.T) {
	for _, x := range []struct {
		level slog.Level
		want  severity.Severity
	}{
		{math.MinInt, 7},
		{slog.LevelDebug - 4, 7},
		{slog.LevelDebug, 7},
		{slog.LevelInfo - 1, 7},
		{slog.LevelInfo, 6},
		{slog.LevelInfo + 1, 6},
		{slog.LevelInfo + 2, 5},
		{slog.LevelInfo + 3, 5},
		{slog.LevelWarn, 4},
		{slog.LevelError - 1, 4},
		{slog.LevelError, 3},
		{slog.LevelError + 3, 3},
		{slog.LevelError + 4, 2},
		{slog.LevelError + 7, 2},
		{slog.LevelError + 8, 1},
		{slog.LevelError + 11, 1},
		{slog.LevelError + 12, 0},
		{math.MaxInt, 0},
	} {
		if got := severity.Of(x.level); got != x.want {
			t.Errorf("Of(%d) = %d, want %d", int(x.level), got, x.want)
		}
	}
}

// A worse level never gets a milder severity.
func TestOrderIsKept(t *testing.T) {
	for l := slog.Level(-20); l < 40; l++ {
		if a, b := severity.Of(l), severity.Of(l+1); b > a {
			t.Errorf("level %d has severity %d, level %d has %d", int(l), a, int(l+1), b)
		}
	}
}
