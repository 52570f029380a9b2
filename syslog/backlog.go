package syslog

import (
	"bytes"
	"math"
	"os"
	"strconv"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/outq"
	"github.com/wholelog/wholelog/internal/ship"
)

// backlog knows how many messages to a unix datagram socket its receiver may not have read. They lie in the receiver's queue, and end
// with it: the write behind them is refused, and nothing else tells. It belongs to the link's goroutine.
type backlog struct {
	bytes func() (n int, ok bool) // memory of what is not read; also 0 when the receiver is gone
	most  int                     // messages that the receiver's queue holds
	empty bool                    // the queue was, when it was asked; or there is no receiver, which the next write will tell
	n     int                     // sent since the receiver is known to have read everything
}

// newBacklog returns what knows about a socket: on Linux everything, elsewhere nothing, and there it counts nothing.
func newBacklog(q *outq.Queue) backlog {
	k := backlog{bytes: q.Bytes}
	if q != nil {
		k.most = queueLength(os.ReadFile("/proc/sys/net/unix/max_dgram_qlen"))
	}
	return k
}

// queueLength is how many datagrams a unix socket of this host holds, by the kernel's setting (unix(7)): one more than that.
func queueLength(setting []byte, err error) int {
	n, bad := strconv.Atoi(string(bytes.TrimSpace(setting)))
	if err != nil || bad != nil || n < 0 || n == math.MaxInt {
		return math.MaxInt
	}
	return n + 1
}

// ask is called before a batch: once for many messages, since a question costs as much as a message.
func (k *backlog) ask() {
	n, ok := k.bytes()
	k.empty = ok && n == 0
}

// sent counts a message that the kernel took. There is a receiver, then, and the answer to the question means what it says.
func (k *backlog) sent() {
	if k.empty {
		k.empty, k.n = false, 0
	}
	k.n++
}

// lost is how many messages may be lost with the receiver when err, with which a batch ended, says that it is gone.
func (k *backlog) lost(err error) int {
	if err == nil {
		return 0
	}
	switch ship.CauseOf(err) {
	case delivery.CauseRefused, delivery.CausePeerClosed:
		return min(k.n, k.most)
	}
	return 0
}
