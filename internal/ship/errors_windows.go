package ship

import (
	"errors"
	"syscall"
)

// What Winsock says; the E… constants of package syscall are numbers of Go's own there.
const (
	wsaECONNABORTED = syscall.Errno(10053)
	wsaECONNREFUSED = syscall.Errno(10061)
)

// isRefused reports a port on which nothing listens.
func isRefused(err error) bool {
	return errors.Is(err, wsaECONNREFUSED) || errors.Is(err, syscall.ECONNREFUSED)
}

// isReset reports a connection that its peer, or the own system after retransmissions without an answer, has broken.
func isReset(err error) bool {
	return errors.Is(err, syscall.WSAECONNRESET) || errors.Is(err, wsaECONNABORTED) || errors.Is(err, syscall.ECONNRESET)
}
