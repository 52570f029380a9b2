package outq

import (
	"net"
	"path/filepath"
	"testing"
	"time"
)

// socket listens on a new unix datagram socket, and returns a connection to it.
func socket(t *testing.T) (receiver *net.UnixConn, conn net.Conn) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	receiver, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { receiver.Close() })
	conn, err = net.Dial("unixgram", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return receiver, conn
}

func TestUnixDatagram(t *testing.T) {
	receiver, conn := socket(t)
	q := Of(conn)
	if n, ok := q.Bytes(); n != 0 || !ok {
		t.Errorf("of a new socket %d, %v", n, ok)
	}
	for range 2 {
		if _, err := conn.Write(make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
		if n, ok := q.Bytes(); n < 100 || !ok {
			t.Errorf("of a message that nobody has read %d, %v", n, ok)
		}
		if _, err := receiver.Read(make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
		if n, ok := q.Bytes(); n != 0 || !ok {
			t.Errorf("of a message that was read %d, %v", n, ok)
		}
	}
	if _, err := conn.Write(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	receiver.Close()
	if n, ok := q.Bytes(); n != 0 || !ok {
		t.Errorf("of a receiver that is gone %d, %v", n, ok)
	}
	conn.Close()
	if n, ok := q.Bytes(); n != 0 || ok {
		t.Errorf("of a closed socket %d, %v", n, ok)
	}
}

// A peer that reads nothing has its kernel acknowledge as long as there is room.
func TestTCP(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	q := Of(conn)
	if n, ok := q.Bytes(); n != 0 || !ok {
		t.Errorf("of a new connection %d, %v", n, ok)
	}
	if err := conn.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	written, err := conn.Write(make([]byte, 64<<20))
	if err == nil {
		t.Fatal("the kernel took 64 MiB that nobody reads")
	}
	if n, ok := q.Bytes(); n <= 0 || n > written || !ok {
		t.Errorf("of %d bytes %d, %v", written, n, ok)
	}
}

func TestCannotTell(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	q := Of(a)
	if n, ok := q.Bytes(); q != nil || n != 0 || ok {
		t.Errorf("of a pipe %v, %d, %v", q, n, ok)
	}
}

func TestAllocs(t *testing.T) {
	_, conn := socket(t)
	q := Of(conn)
	if n := testing.AllocsPerRun(100, func() { q.Bytes() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
