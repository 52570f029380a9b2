// Package loopback finds addresses for receivers that go away and come back.
package loopback

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

const (
	// The ports between these are no service's in particular, and no system gives them to a socket that asks for any port: Linux does
	// so from 32768, the others from 49152 (RFC 6335, section 6).
	lowest, highest = 10_000, 32_767

	attempts = 100
)

// Addr returns an address of 127.0.0.1, host and port, at which nobody listens by TCP or UDP. Of a port that the system chose, every
// socket that is opened while its owner is away may become the new owner, other programs' and our own clients' too: the receiver cannot
// come back, or what should be refused is answered. Addr's port is taken by nobody who does not name it.
func Addr() (string, error) {
	var last error
	for range attempts {
		addr := fmt.Sprintf("127.0.0.1:%d", lowest+rand.IntN(highest-lowest+1))
		if last = free(addr); last == nil {
			return addr, nil
		}
	}
	return "", fmt.Errorf("loopback: no port is free: %w", last)
}

// free says why an address cannot be bound.
func free(addr string) error {
	stream, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	packet, err := net.ListenPacket("udp", addr)
	if err == nil {
		err = packet.Close()
	}
	return errors.Join(err, stream.Close())
}
