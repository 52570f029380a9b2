//go:build !race

package gelf

// raceDetector is off.
const raceDetector = false
