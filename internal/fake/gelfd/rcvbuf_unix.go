//go:build unix

package gelfd

import (
	"net"
	"syscall"
)

// setRcvBuf asks for a receive buffer and returns what the kernel gave. Linux cuts a wish that is too large without an error,
// the BSDs refuse it, so there it shrinks until it is granted.
func setRcvBuf(conn *net.UDPConn, size int) (got int, err error) {
	for ; conn.SetReadBuffer(size) != nil && size > 1<<16; size /= 2 {
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var sockErr error
	err = raw.Control(func(fd uintptr) {
		got, sockErr = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF)
	})
	if err != nil {
		return 0, err
	}
	return got, sockErr
}
