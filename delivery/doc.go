// Package delivery is the vocabulary that all protocols share for how records wait, leave and fail: [Options] to choose it,
// [Stats] to count it, [Drop] to report a loss.
//
// A record given to a handler has one of two ends. It is delivered, or it is dropped with one [Reason], counted in
// [Stats].Reasons, and reported to Options.OnDrop. Until then it is pending. Nothing else happens to it, so that
// Accepted = Delivered + Dropped + Pending holds in every snapshot.
package delivery
