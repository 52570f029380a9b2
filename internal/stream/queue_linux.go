package stream

import (
	"math"
	"net"
	"syscall"
	"time"

	"github.com/wholelog/wholelog/internal/outq"
)

// tcpUserTimeout is TCP_USER_TIMEOUT of linux/tcp.h, which package syscall lacks on most architectures (RFC 5482 describes it).
const tcpUserTimeout = 0x12

// tune sets up a connection and returns what asks its kernel for the bytes that the peer's kernel has not acknowledged.
//
// TCP_USER_TIMEOUT ends a connection whose peer acknowledges nothing, keep-alive probes included; without it that takes a quarter of
// an hour.
func tune(conn net.Conn, c *Config) (queue, error) {
	sc, ok := conn.(interface {
		syscall.Conn
		SetWriteBuffer(bytes int) error
	})
	if !ok {
		return nil, nil
	}
	if err := sc.SetWriteBuffer(c.SendBuffer); err != nil {
		return nil, err
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil, err
	}
	var refused error
	limit := int(min(c.SendTimeout/time.Millisecond, math.MaxInt32)) // what the option holds
	err = raw.Control(func(fd uintptr) {
		refused = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, limit)
	})
	if err == nil {
		err = refused
	}
	if err != nil {
		return nil, err
	}
	if q := outq.Of(conn); q != nil {
		return q.Bytes, nil
	}
	return nil, nil
}
