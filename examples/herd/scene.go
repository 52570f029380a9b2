package main

import (
	"fmt"
	"time"

	"github.com/wholelog/wholelog/jitter"
)

const (
	hosts  = 1000
	period = 10 * time.Second // of what happens again and again
	boot   = time.Second      // in which the whole fleet restarts
	outage = 20 * time.Second // of the server
	bin    = 100 * time.Millisecond
)

// scene is one way in which hosts come to do the same thing at the same moment.
type scene struct {
	title string
	span  time.Duration // what is looked at, from 0 on
	ways  []way
}

// way is what every host of a scene does.
type way struct {
	name   string
	events func(host int) []time.Duration // when this host turns to the server; what lies outside the span is not counted
}

// name is what a host is called: its key, so that it gets the same slot after every restart.
func name(host int) string { return fmt.Sprintf("web-%d", host+1) }

// midnight is when the scenes begin: a moment at which every timer of the wall clock fires.
var midnight = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

func scenes() []scene {
	return []scene{
		{"A job every 10 s, by the clock", 6 * period, []way{
			{"at :00, :10, :20 …", func(int) []time.Duration { return every(0, period, 6) }},
			{"after Sleep(ctx, 10 s)", func(int) []time.Duration {
				var at []time.Duration
				for _, t := range every(0, period, 6) {
					at = append(at, t+jitter.Splay(period)) // what Sleep sleeps
				}
				return at
			}},
			{"at Next(now, 10 s, Phase(host))", func(h int) []time.Duration {
				phase := jitter.Phase(name(h), period)
				return every(jitter.Next(midnight, period, phase).Sub(midnight), period, 6)
			}},
		}},
		{"An hourly cron job", time.Hour, []way{
			{"0 * * * *", func(int) []time.Duration { return []time.Duration{0} }},
			{"MinuteOfHour(host) * * * *", func(h int) []time.Duration { return []time.Duration{minute(h)} }},
			{"and Sleep(ctx, 30 s) in the job", func(h int) []time.Duration {
				return []time.Duration{minute(h) + jitter.Splay(30*time.Second)}
			}},
		}},
		{"The fleet restarts within 1 s; each host reports every 10 s", 6 * period, []way{
			{"time.NewTicker(10 s)", func(h int) []time.Duration { return every(started(h)+period, period, 5) }},
			{"a timer of Duration(10 s, 0.1)", func(h int) []time.Duration {
				var at []time.Duration
				for t := started(h); len(at) < 6; {
					t += jitter.Duration(period, 0.1)
					at = append(at, t)
				}
				return at
			}},
			{"jitter.NewTicker(10 s, host)", func(h int) []time.Duration {
				// A Ticker ticks at what Next gives, the first time too.
				phase := jitter.Phase(name(h), period)
				return every(jitter.Next(midnight.Add(started(h)), period, phase).Sub(midnight), period, 6)
			}},
		}},
		{"The server is back after 20 s; everybody lost it at once", time.Minute, []way{
			{"Backoff, no noise", func(int) []time.Duration { return reconnect(jitter.None) }},
			{"Backoff, half of it noise", func(int) []time.Duration { return reconnect(jitter.Equal) }},
			{"Backoff, all of it noise", func(int) []time.Duration { return reconnect(jitter.Full) }},
		}},
	}
}

// every returns n moments, a step apart.
func every(first, step time.Duration, n int) []time.Duration {
	at := make([]time.Duration, n)
	for i := range at {
		at[i] = first + time.Duration(i)*step
	}
	return at
}

func minute(host int) time.Duration {
	return time.Duration(jitter.MinuteOfHour(name(host))) * time.Minute
}

// started is when a host of the restarting fleet is up: one after the other, evenly.
func started(host int) time.Duration { return boot * time.Duration(host) / hosts }

// reconnect returns the first attempt that finds the server back.
func reconnect(mode jitter.Mode) []time.Duration {
	backoff := jitter.Backoff{Base: 500 * time.Millisecond, Mode: mode}
	var t time.Duration
	for attempt := 0; t < outage; attempt++ {
		t += backoff.Delay(attempt)
	}
	return []time.Duration{t}
}

// result is what a server sees of one way.
type result struct {
	scene scene
	way   way
	count []int // of every bin
}

func (r result) peak() int {
	most := 0
	for _, n := range r.count {
		most = max(most, n)
	}
	return most
}

func play(all []scene) []result {
	var results []result
	for _, s := range all {
		for _, w := range s.ways {
			r := result{s, w, make([]int, s.span/bin)}
			for h := range hosts {
				for _, t := range w.events(h) {
					if t < s.span {
						r.count[t/bin]++
					}
				}
			}
			results = append(results, r)
		}
	}
	return results
}
