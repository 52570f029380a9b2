//go:build unix

package datagram

import (
	"net"
	"os"
	"syscall"
)

// pendingError returns, and clears, the error that the kernel keeps for a socket; nil when there is none or it cannot tell.
func pendingError(conn net.Conn) error {
	if sc, ok := conn.(syscall.Conn); ok {
		return soError(sc)
	}
	return nil
}

// soError allocates what its closure shares, so it is no part of pendingError.
func soError(sc syscall.Conn) (pending error) {
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil
	}
	err = raw.Control(func(fd uintptr) {
		if n, err := syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_ERROR); err == nil && n != 0 {
			pending = os.NewSyscallError("getsockopt", syscall.Errno(n))
		}
	})
	if err != nil {
		return nil
	}
	return pending
}
