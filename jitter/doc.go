// Package jitter keeps many processes from doing the same thing at the same moment.
//
// Timers that start together stay together: a fleet that restarts within a second, or a cron line that says ":00", meets at
// the same server for ever after. Three tools part them:
//
//   - a phase, for what happens again and again: [Phase], [Next], [MinuteOfHour] and [Ticker] give every key its own slot of
//     the period, the same on every host and after every restart, so that a late run can still be noticed;
//   - a splay, for what happens once: [Splay] and [Sleep];
//   - noise, for ages and retries: [Duration] and [Backoff].
//
// The random numbers are those of math/rand/v2: good for spreading, useless as secrets. All functions may be called from
// several goroutines at once.
package jitter
