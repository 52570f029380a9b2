//go:build !linux

// Package outq asks the kernel what of a socket's output is still on its way.
package outq

import "net"

// Queue cannot ask here.
type Queue struct{}

// Of returns nil: there is nobody to ask.
func Of(net.Conn) *Queue { return nil }

// Bytes says false.
func (*Queue) Bytes() (n int, ok bool) { return 0, false }
