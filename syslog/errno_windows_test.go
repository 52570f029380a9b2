package syslog

import "syscall"

// What Winsock says, for the tests' fake sockets.
const (
	errRefused = syscall.Errno(10061) // WSAECONNREFUSED
	errTooLong = syscall.Errno(10040) // WSAEMSGSIZE
	errBusy    = syscall.Errno(10055) // WSAENOBUFS
)
