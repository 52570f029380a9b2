package datagram

import (
	"net"
	"syscall"
)

// pathMTU asks the kernel for the MTU it knows on the way of a connected socket, in bytes with the IP header; 0 when it cannot
// tell. An answer "fragmentation needed" lowers it, and that is what a write's EMSGSIZE reports.
func pathMTU(conn net.Conn, v6 bool) int {
	level, option := syscall.IPPROTO_IP, syscall.IP_MTU
	if v6 {
		level, option = syscall.IPPROTO_IPV6, syscall.IPV6_MTU
	}
	sc, ok := conn.(syscall.Conn)
	if !ok {
		return 0
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return 0
	}
	mtu := 0
	err = raw.Control(func(fd uintptr) {
		if n, err := syscall.GetsockoptInt(int(fd), level, option); err == nil {
			mtu = n
		}
	})
	if err != nil {
		return 0
	}
	return mtu
}
