//go:build !windows

package syslog

import "syscall"

// What the kernel says, for the tests' fake sockets.
const (
	errRefused = syscall.ECONNREFUSED
	errTooLong = syscall.EMSGSIZE
	errBusy    = syscall.ENOBUFS
)
