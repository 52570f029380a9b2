// Package outq asks the kernel what of a socket's output is still on its way.
package outq

import (
	"net"
	"syscall"
	"unsafe"
)

// Queue asks for SIOCOUTQ. Of a TCP socket it is the difference, in bytes, between what was written and what the peer's kernel has
// acknowledged (tcp(7)); RST and FIN leave both as they are. Of a unix socket it is the memory of what the receiver has not read
// (unix(7)), and a receiver that is gone frees it unread. It belongs to one goroutine at a time, and keeps what a call needs, so that none
// allocates.
type Queue struct {
	raw  syscall.RawConn
	call func(fd uintptr)
	n    int32
	errn syscall.Errno
}

// Of returns what asks the kernel about conn; nil where it does not know the question.
func Of(conn net.Conn) *Queue {
	sc, ok := conn.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil
	}
	q := &Queue{raw: raw}
	q.call = q.ioctl
	if _, ok := q.Bytes(); !ok {
		return nil // an emulation that does not know it
	}
	return q
}

// Bytes asks. It says false when the socket is closed, and of a nil Queue.
func (q *Queue) Bytes() (n int, ok bool) {
	if q == nil || q.raw.Control(q.call) != nil || q.errn != 0 {
		return 0, false
	}
	return int(q.n), true
}

// ioctl does not block, so the scheduler need not know of it. SIOCOUTQ has the number of TIOCOUTQ on every architecture.
func (q *Queue) ioctl(fd uintptr) {
	_, _, q.errn = syscall.RawSyscall(syscall.SYS_IOCTL, fd, syscall.TIOCOUTQ, uintptr(unsafe.Pointer(&q.n)))
}
