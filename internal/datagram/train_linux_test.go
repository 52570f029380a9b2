package datagram

import (
	"bytes"
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/wholelog/wholelog/internal/errno"
)

// trainFlow is a flow over a real socket to a real receiver.
func trainFlow(t *testing.T) (*Flow, *net.UDPConn) {
	t.Helper()
	receiver, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { receiver.Close() })
	_ = receiver.SetReadBuffer(4 << 20) // as much as the kernel gives
	conn, err := net.Dial("udp", receiver.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return NewFlow(conn), receiver
}

// datagrams reads as many datagrams as make want bytes.
func datagrams(t *testing.T, receiver *net.UDPConn, want int) (all [][]byte) {
	t.Helper()
	_ = receiver.SetReadDeadline(time.Now().Add(time.Minute))
	for buf := make([]byte, 65536); want > 0; {
		n, err := receiver.Read(buf)
		if err != nil {
			t.Fatalf("%v, %d bytes missing", err, want)
		}
		all = append(all, bytes.Clone(buf[:n]))
		want -= n
	}
	return all
}

// noChecksums makes the kernel refuse segmentation on a socket: it needs checksums, which this option turns off.
func noChecksums(t *testing.T, conn net.Conn) {
	t.Helper()
	raw, err := conn.(*net.UDPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if cerr := raw.Control(func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_NO_CHECK, 1)
	}); cerr != nil || err != nil {
		t.Fatal(cerr, err)
	}
}

// What arrives is the same whether the kernel cuts the datagrams apart or they are written one by one, also when it refuses.
func TestTrainIsTheSameAsSingleWrites(t *testing.T) {
	for _, tc := range []struct{ size, bytes int }{
		{100, 100},
		{100, 101},
		{100, 200},
		{100, 199},
		{1232, 1232*2 + 7},
		{1420, 1420 * 32},
		{64, 64*64 + 1},
		{64, 64 * 128},
		{1420, 1420*46 + 100},
		{8192, 8192 * 20},
		{32768, 65507},
		{65507, 70000},
	} {
		for _, way := range []string{"train", "single", "refused"} {
			t.Run(fmt.Sprintf("%s/%d of %d", way, tc.bytes, tc.size), func(t *testing.T) {
				f, receiver := trainFlow(t)
				switch way {
				case "single":
					f.single = true
				case "refused":
					noChecksums(t, f.conn)
				}
				burst := make([]byte, tc.bytes)
				for i := range burst {
					burst[i] = byte(i * 7 / 3)
				}
				n, err := f.Write(burst, tc.size)
				if n != len(burst) || err != nil {
					t.Fatalf("%d of %d, %v", n, len(burst), err)
				}
				rest := burst
				for i, d := range datagrams(t, receiver, len(burst)) {
					want := rest[:min(tc.size, len(rest))]
					if !bytes.Equal(d, want) {
						t.Fatalf("datagram %d has %d bytes, want %d", i, len(d), len(want))
					}
					rest = rest[len(want):]
				}
				if several := tc.bytes > tc.size && tc.size <= trainBytes/2; way == "refused" && several != f.single {
					t.Errorf("refused, and single is %v", f.single)
				} else if way == "train" && f.single {
					t.Error("this kernel knows no segmentation, or refused it")
				}
			})
		}
	}
}

// A refusal by the peer is not taken for one by the kernel: it is the answer to an earlier datagram, and must be heard.
func TestTrainHearsARefusal(t *testing.T) {
	f, receiver := trainFlow(t)
	receiver.Close()
	burst := make([]byte, 300)
	deadline := time.Now().Add(time.Minute)
	for {
		_, err := f.Write(burst, 100)
		if err != nil {
			if !errno.Refused(err) || f.single {
				t.Fatalf("%v, single %v", err, f.single)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing was heard")
		}
	}
}

// What is no UDP socket has no trains, and a train costs no allocation.
func TestTrainNeedsASocket(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if canTrain(a) {
		t.Error("a pipe can")
	}
	f, receiver := trainFlow(t)
	go func() { // keeps the buffer from running full; ends with the receiver
		for buf := make([]byte, 65536); ; {
			if _, err := receiver.Read(buf); err != nil {
				return
			}
		}
	}()
	burst := make([]byte, 3000)
	if n := testing.AllocsPerRun(100, func() { _, _ = f.Write(burst, 1000) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
