package main

import (
	"fmt"
	"io"
	"time"

	"github.com/wholelog/wholelog/delivery"
)

const (
	sampleEvery = 100 * time.Millisecond
	maxSamples  = 600 // then every second one goes, so that a long test has no long list
	tellEvery   = time.Second
)

// sample is what each address had at one moment.
type sample struct {
	at     time.Duration
	counts map[string]uint64
}

// watch looks at counters while a test runs: it tells of them every second and remembers them for the chart.
type watch struct {
	samples *series
	done    chan struct{}
	over    chan struct{}
}

// newWatch starts to look. stats is safe for concurrent use.
func newWatch(stats func() delivery.Stats, progress io.Writer) *watch {
	return watchCounts(func() (map[string]uint64, string) {
		s := stats()
		counts := delivered(s)
		line := fmt.Sprintf("%d sent, %d delivered, %d pending, %d dropped ", s.Accepted, s.Delivered, s.Pending, s.Dropped)
		for _, name := range names(counts) {
			line += fmt.Sprintf("  %s %d", name, counts[name])
		}
		return counts, line
	}, progress)
}

// watchCounts looks at what look returns, and prints its line every second.
func watchCounts(look func() (map[string]uint64, string), progress io.Writer) *watch {
	w := &watch{samples: &series{step: sampleEvery}, done: make(chan struct{}), over: make(chan struct{})}
	began := time.Now()
	counts, _ := look()
	w.samples.add(0, counts)
	go func() {
		defer close(w.over)
		tick := time.NewTicker(sampleEvery)
		defer tick.Stop()
		for told := began; ; {
			select {
			case <-w.done:
				counts, _ := look()
				w.samples.end(time.Since(began), counts)
				return
			case now := <-tick.C:
				counts, line := look()
				w.samples.add(now.Sub(began), counts)
				if now.Sub(told) >= tellEvery {
					told = now
					fmt.Fprintf(progress, "%3.0f s  %s\n", now.Sub(began).Seconds(), line)
				}
			}
		}
	}()
	return w
}

// stop ends the looking and returns the samples.
func (w *watch) stop() []sample {
	close(w.done)
	<-w.over
	return w.samples.list
}

// series is a bounded list of samples, evenly spaced.
type series struct {
	list []sample
	step time.Duration
}

func (s *series) add(at time.Duration, counts map[string]uint64) {
	if n := len(s.list); n > 0 && at < s.list[n-1].at+s.step/2 {
		return
	}
	if len(s.list) == maxSamples {
		for i := range maxSamples / 2 {
			s.list[i] = s.list[2*i]
		}
		s.list = s.list[:maxSamples/2]
		s.step *= 2
	}
	s.list = append(s.list, sample{at, counts})
}

// end adds the last sample whenever it comes: the chart must end at the totals.
func (s *series) end(at time.Duration, counts map[string]uint64) {
	s.list = append(s.list, sample{at, counts})
}

// delivered is what each address has, by name.
func delivered(s delivery.Stats) map[string]uint64 {
	counts := make(map[string]uint64, len(s.Endpoints))
	for _, e := range s.Endpoints {
		counts[addrName(e)] += e.Delivered
	}
	return counts
}

// addrName is how an address is shown.
func addrName(e delivery.EndpointStats) string {
	if !e.Addr.IsValid() {
		return "earlier ones" // left long ago, summed up
	}
	return e.Addr.String()
}
