//go:build !race

package handlertest

// raceDetector is off.
const raceDetector = false
