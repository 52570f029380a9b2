package errno

import (
	"errors"
	"syscall"
)

// What Winsock says; package syscall names only some of its codes, and its E… constants are numbers of its own.
const (
	wsaEWOULDBLOCK  = syscall.Errno(10035)
	wsaEMSGSIZE     = syscall.Errno(10040)
	wsaENOBUFS      = syscall.Errno(10055)
	wsaECONNREFUSED = syscall.Errno(10061)
)

// Refused reports a port on which nothing listens. On a UDP socket Winsock calls that a reset.
func Refused(err error) bool {
	return errors.Is(err, syscall.WSAECONNRESET) || errors.Is(err, wsaECONNREFUSED)
}

// TooLong reports a datagram longer than the way allows.
func TooLong(err error) bool { return errors.Is(err, wsaEMSGSIZE) }

// Busy reports that the system had no room for a datagram just now.
func Busy(err error) bool { return errors.Is(err, wsaENOBUFS) || errors.Is(err, wsaEWOULDBLOCK) }
