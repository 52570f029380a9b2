package datagram

import "syscall"

// What Winsock says, for the tests' fake sockets.
const (
	errRefused = syscall.WSAECONNRESET
	errTooLong = syscall.Errno(10040) // WSAEMSGSIZE
	errBusy    = syscall.Errno(10055) // WSAENOBUFS
	errNoFiles = syscall.Errno(10024) // WSAEMFILE
	errNoRoute = syscall.Errno(10051) // WSAENETUNREACH
)
