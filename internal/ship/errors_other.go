//go:build !windows

package ship

import (
	"errors"
	"syscall"
)

// isRefused reports a port on which nothing listens.
func isRefused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }

// isReset reports a connection that its peer has broken, or a write after that.
func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
