//go:build !linux

package datagram

import "net"

type control struct{}

func canTrain(net.Conn) bool { return false }

// train does nothing where the kernel does not cut datagrams apart.
func (f *Flow) train([]byte, int) (int, error) { return 0, nil }
