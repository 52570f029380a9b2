//go:build !linux

package datagram

import "net"

// pathMTU cannot ask here.
func pathMTU(net.Conn, bool) int { return 0 }
