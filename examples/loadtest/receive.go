package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// receive counts at every place it was told, until the time or ctx is over or nothing comes any more.
func receive(ctx context.Context, s settings, out, progress io.Writer) error {
	urls := strings.Split(s.receive, ",")
	t := &tally{names: make([]string, len(urls)), other: make([]uint64, len(urls))}
	var receivers []receiver
	defer func() {
		for _, r := range receivers {
			_ = r.close() // nothing was lost by it
		}
	}()
	for i, url := range urls {
		r, err := s.listen(url, func(text string) { t.hear(i, text) })
		if err != nil {
			return fmt.Errorf("-receive: %w", err)
		}
		t.mu.Lock() // the receivers before it are at work
		t.names[i] = r.name
		t.mu.Unlock()
		receivers = append(receivers, r)
	}
	for _, r := range receivers {
		fmt.Fprintf(progress, "receiving at %s\n", r.name)
	}
	if s.length > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.length)
		defer cancel()
	}
	w := watchCounts(func() (map[string]uint64, string) {
		counts, total := t.counts()
		line := fmt.Sprintf("%d messages", total)
		for _, name := range names(counts) {
			line += fmt.Sprintf("  %s %d", name, counts[name])
		}
		return counts, line
	}, progress)
	await(ctx, s.quiet, t)
	samples := w.stop()
	var refused uint64
	for _, r := range receivers {
		refused += r.refuse()
	}
	missing := t.write(out, refused)
	if s.chart != "" {
		if err := os.WriteFile(s.chart, chart("Messages received", samples), 0o644); err != nil {
			return err // it names the file
		}
	}
	if missing > 0 {
		return fmt.Errorf("%w: %d", errLost, missing)
	}
	return nil
}

// listen starts one receiver.
func (s settings) listen(url string, heard func(string)) (receiver, error) {
	p, target, err := find(url)
	if err != nil {
		return receiver{}, err
	}
	var t *tls.Config
	if p.secure {
		if t, err = identity(s.cert, s.key); err != nil {
			return receiver{}, err
		}
	}
	_, addr, _ := strings.Cut(target, "://")
	at, r, err := p.listen(strings.TrimSuffix(addr, "/gelf"), t, heard)
	if err != nil {
		return receiver{}, err
	}
	scheme, _, _ := strings.Cut(url, "://")
	r.name = scheme + "://" + at.String()
	return r, nil
}

// await returns when ctx is over, or when nothing came for the quiet time after something had.
func await(ctx context.Context, quiet time.Duration, t *tally) {
	if quiet == 0 {
		<-ctx.Done()
		return
	}
	tick := time.NewTicker(min(quiet, sampleEvery))
	defer tick.Stop()
	var before uint64
	var since time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			switch _, total := t.counts(); {
			case total != before:
				before, since = total, now
			case total > 0 && now.Sub(since) >= quiet:
				return
			}
		}
	}
}
