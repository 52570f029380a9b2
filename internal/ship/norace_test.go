//go:build !race

package ship

// raceEnabled says whether the race detector makes everything slow.
const raceEnabled = false
