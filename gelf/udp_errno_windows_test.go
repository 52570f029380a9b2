package gelf

import "syscall"

// What Winsock says, for the tests' fake sockets.
const (
	errRefused  = syscall.WSAECONNRESET
	errTooLong  = wsaEMSGSIZE
	errBusy     = wsaENOBUFS
	errNoFiles  = syscall.Errno(10024) // WSAEMFILE
	errNoRoute  = syscall.Errno(10051) // WSAENETUNREACH
	errFirewall = syscall.WSAEACCES
)
