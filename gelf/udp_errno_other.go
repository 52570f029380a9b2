//go:build !windows

package gelf

import (
	"errors"
	"syscall"
)

// isRefused reports a port on which nothing listens.
func isRefused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }

// isTooLong reports a datagram longer than the way allows.
func isTooLong(err error) bool { return errors.Is(err, syscall.EMSGSIZE) }

// isBusy reports that the kernel had no room for a datagram just now.
func isBusy(err error) bool {
	return errors.Is(err, syscall.ENOBUFS) || errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.ENOMEM)
}
