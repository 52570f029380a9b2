package main

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	out := "goos: linux\nBenchmarkPut/mutex_copy-2         \t27009384\t        43.42 ns/op\t       0 B/op\t       0 allocs/op\n" +
		"BenchmarkPut/put-2  1000  160.4 ns/op  0.28 dropped/op  34 B/op  2 allocs/op\nPASS\n"
	for _, tc := range []struct {
		name string
		want sample
		err  string
	}{
		{"BenchmarkPut/put", sample{160.4, 2}, ""},
		{"BenchmarkPut/mutex_copy", sample{43.42, 0}, ""},
		{"BenchmarkPut", sample{}, "no such benchmark"},
	} {
		got, err := parse(tc.name, out)
		if got != tc.want || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: %+v, %v", tc.name, got, err)
		}
	}
}

func TestReached(t *testing.T) {
	for _, tc := range []struct {
		r    result
		p    pair
		want bool
	}{
		{result{ratios: []float64{6, 8, 9}}, pair{faster: 7}, true},
		{result{ratios: []float64{6, 6.9, 9}}, pair{faster: 7}, false},
		{result{ratios: []float64{6, 8, 9}, allocs: 1}, pair{faster: 7, free: true}, false},
		{result{ratios: []float64{0.2, 0.34, 1}}, pair{cost: 3}, true},
		{result{ratios: []float64{0.2, 0.3, 1}}, pair{cost: 3}, false},
	} {
		if got := tc.r.reached(tc.p); got != tc.want {
			t.Errorf("%+v of %+v: %v", tc.r, tc.p, got)
		}
		if missed := strings.Contains(tc.r.row(tc.p), "missed"); missed == tc.want {
			t.Errorf("the row hides it: %s", tc.r.row(tc.p))
		}
	}
}
