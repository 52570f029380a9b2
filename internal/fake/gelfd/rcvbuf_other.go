//go:build !unix

package gelfd

import "net"

// setRcvBuf asks for a receive buffer. What the kernel gave is not read back here, so the wish is returned.
func setRcvBuf(conn *net.UDPConn, size int) (int, error) {
	return size, conn.SetReadBuffer(size)
}
