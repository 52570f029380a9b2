//go:build !windows

package datagram

import "syscall"

// What the kernel says, for the tests' fake sockets.
const (
	errRefused = syscall.ECONNREFUSED
	errTooLong = syscall.EMSGSIZE
	errBusy    = syscall.ENOBUFS
	errNoFiles = syscall.EMFILE
	errNoRoute = syscall.ENETUNREACH
)
