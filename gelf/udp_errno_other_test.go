//go:build !windows

package gelf

import "syscall"

// What the kernel says, for the tests' fake sockets.
const (
	errRefused  = syscall.ECONNREFUSED
	errTooLong  = syscall.EMSGSIZE
	errBusy     = syscall.ENOBUFS
	errNoFiles  = syscall.EMFILE
	errNoRoute  = syscall.ENETUNREACH
	errFirewall = syscall.EPERM
)
