package stream

import (
	"math"
	"net"
	"syscall"
	"time"
	"unsafe"
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
	o := &outq{raw: raw}
	o.call = o.ioctl
	if _, ok := o.bytes(); !ok {
		return nil, nil // an emulation that does not know the question
	}
	return o.bytes, nil
}

// outq asks for SIOCOUTQ (tcp(7)): the difference between what was written and what was acknowledged. RST and FIN leave both as they
// are. The link's mu guards it; it keeps what a call needs, so that none allocates.
type outq struct {
	raw  syscall.RawConn
	call func(fd uintptr)
	n    int32
	errn syscall.Errno
}

func (o *outq) bytes() (int, bool) {
	if err := o.raw.Control(o.call); err != nil || o.errn != 0 {
		return 0, false
	}
	return int(o.n), true
}

// ioctl does not block, so the scheduler need not know of it. SIOCOUTQ has the number of TIOCOUTQ on every architecture.
func (o *outq) ioctl(fd uintptr) {
	_, _, o.errn = syscall.RawSyscall(syscall.SYS_IOCTL, fd, syscall.TIOCOUTQ, uintptr(unsafe.Pointer(&o.n)))
}
