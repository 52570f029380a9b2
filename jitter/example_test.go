package jitter_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wholelog/wholelog/jitter"
)

func ExampleBackoff() {
	backoff := jitter.Backoff{Base: 100 * time.Millisecond, Max: time.Second, Mode: jitter.None}
	for attempt := range 6 {
		fmt.Print(backoff.Delay(attempt), " ")
	}
	fmt.Println()
	// Output: 100ms 200ms 400ms 800ms 1s 1s
}

// Connections that were opened together must not be renewed together.
func ExampleDuration() {
	age := jitter.Duration(5*time.Minute, 0.2)
	fmt.Println(age >= 4*time.Minute, age <= 6*time.Minute)
	// Output: true true
}

// A job that a fleet starts by cron waits first, for as long as it can afford.
func ExampleSleep() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := jitter.Sleep(ctx, 30*time.Second)
	fmt.Println(errors.Is(err, context.Canceled))
	// Output: true
}

// The key is the host and the job: every host has its own minute, and each keeps it.
func ExampleMinuteOfHour() {
	for _, host := range []string{"web-1", "web-2", "web-3"} {
		fmt.Printf("%d * * * * backup\n", jitter.MinuteOfHour(host+"/backup"))
	}
	// Output:
	// 13 * * * * backup
	// 46 * * * * backup
	// 8 * * * * backup
}

// Hosts that report every ten seconds do so at slots of their own, the same after every restart.
func ExamplePhase() {
	for _, host := range []string{"web-1", "web-2", "web-3"} {
		fmt.Println(jitter.Phase(host+"/stats", 10*time.Second).Round(time.Millisecond))
	}
	// Output:
	// 5.329s
	// 9.241s
	// 3.57s
}

// What happens once, and to a whole fleet at the same moment, is spread over the time that it may take.
func ExampleSplay() {
	wait := jitter.Splay(30 * time.Second)
	fmt.Println(wait >= 0, wait < 30*time.Second)
	// Output: true true
}

func ExampleNext() {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	fmt.Println(jitter.Next(now, 15*time.Minute, 2*time.Minute))
	// Output: 2026-01-02 03:17:00 +0000 UTC
}

// The first tick comes at the slot, too.
func ExampleNewTicker() {
	ticker := jitter.NewTicker(10*time.Millisecond, "web-1/flush")
	defer ticker.Stop()
	for range 3 {
		<-ticker.C
		fmt.Println("flush")
	}
	// Output:
	// flush
	// flush
	// flush
}
