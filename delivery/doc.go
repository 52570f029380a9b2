// Package delivery is the vocabulary that all protocols share for how records wait, leave and fail: [Options] to choose it,
// [Stats] to count it, [Drop] to report a loss.
//
// A record given to a handler has one of two ends. It is delivered, or it is dropped with one [Reason], counted in
// [Stats].Reasons, and reported to Options.OnDrop. Until then it is pending. Nothing else happens to it, so that
// Accepted = Delivered + Dropped + Pending holds in every snapshot.
//
// # The way of a record
//
//   - The log call encodes it and copies it into a queue of QueueBytes. When that is full, Overflow says who gives way.
//   - It leaves in the order of the log calls, not faster than RecordRate and ByteRate, to an address that is chosen for it.
//   - A send that certainly failed is repeated elsewhere and costs the record nothing. One that was perhaps taken is sent again, counts
//     as Resent, and after Tries of them the record is dropped.
//   - While no address takes anything, records wait: for ever, or for RetryFor. Tries are spaced by Backoff, and never end.
//   - Flush waits until everything before it is delivered or dropped. Close does so for CloseTimeout and then drops the rest.
//
// With Sync there is no queue: the log call sends, tries each usable address once, and drops the record when none took it.
//
// # What goes wrong is told
//
//   - OnError hears of troubles while nothing is lost yet, and OnDrop of every loss. Where there is none of them, standard error gets
//     a line, at most once a second of each kind.
//   - Close's error says how many records it had to drop, and Flush's how many are pending still.
//   - Stats has both in numbers. Dropped should stay 0, and OldestPending small.
//
// Neither hook may call Flush or Close. Both may log through the handler.
package delivery
