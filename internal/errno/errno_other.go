//go:build !windows

// Package errno tells apart what the kernel says about datagrams, by the codes of each system.
package errno

import (
	"errors"
	"syscall"
)

// Refused reports a port on which nothing listens.
func Refused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }

// TooLong reports a datagram longer than the way allows.
func TooLong(err error) bool { return errors.Is(err, syscall.EMSGSIZE) }

// Busy reports that the kernel had no room for a datagram just now.
func Busy(err error) bool {
	return errors.Is(err, syscall.ENOBUFS) || errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.ENOMEM)
}
