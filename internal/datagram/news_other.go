//go:build !unix

package datagram

import "net"

// pendingError cannot be asked for here: the next use of the socket returns it.
func pendingError(net.Conn) error { return nil }
