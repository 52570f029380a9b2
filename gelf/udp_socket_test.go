package gelf

import (
	"bytes"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/wholelog/wholelog/chunk"
	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/ship"
)

// listen opens a receiver on loopback.
func listen(t *testing.T, addr string) *net.UDPConn {
	t.Helper()
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort(addr)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// receive reads datagrams until n messages are whole, and checks that each came from one source port.
func receive(t *testing.T, conn *net.UDPConn, n int) (messages [][]byte, ports []uint16) {
	t.Helper()
	var assembler chunk.Assembler
	from := map[uint64]netip.AddrPort{}
	buf := make([]byte, 65_536)
	if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	for len(messages) < n {
		size, source, err := conn.ReadFromUDPAddrPort(buf)
		if err != nil {
			t.Fatalf("%d messages of %d: %v", len(messages), n, err)
		}
		if h, _, err := chunk.Parse(buf[:size]); err == nil {
			if before, ok := from[h.ID]; ok && before != source {
				t.Errorf("message %x comes from %v and %v", h.ID, before, source)
			}
			from[h.ID] = source
		}
		message, done, err := assembler.Add(buf[:size], time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if done {
			messages = append(messages, message)
			ports = append(ports, source.Port())
		}
	}
	return messages, ports
}

func dialLoopback(t *testing.T, c udpConfig, addr netip.AddrPort) ship.Link {
	t.Helper()
	c.sendTimeout = defaultSend
	link, err := newUDP(c).Dial(t.Context(), addr, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { link.Close() })
	return link
}

func TestR16_OneSourcePortOneDestination(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:0", "[::1]:0"} {
		if probe, err := net.Dial("udp", addr[:len(addr)-1]+"9"); err != nil {
			continue // a machine without that family
		} else {
			probe.Close()
		}
		receivers := []*net.UDPConn{listen(t, addr), listen(t, addr)}
		var links []ship.Link
		for _, r := range receivers {
			links = append(links, dialLoopback(t, udpConfig{
				chunkSize: 300, compression: CompressNone, flows: 4, flowAge: time.Minute, packetRate: 5000,
			}, r.LocalAddr().(*net.UDPAddr).AddrPort()))
		}
		// Every message goes to another receiver than the one before, as if each look-up had given another answer.
		for i := range 16 {
			record := recordOf(4000, func(n int) string { return string(rune('a'+i)) + noise(n-1) })
			var outcome ship.Outcome
			batch := ship.NewBatch([][]byte{record}, func(_, _ int, o ship.Outcome) { outcome = o })
			if err := links[i%2].Send(t.Context(), batch); err != nil || outcome.Do != ship.Delivered {
				t.Fatal(err, outcome)
			}
			got, _ := receive(t, receivers[i%2], 1)
			if !bytes.Equal(got[0], record) {
				t.Fatalf("message %d arrives as something else", i)
			}
		}
		// Several ports, each as often as the others.
		batch := ship.NewBatch(slices.Repeat([][]byte{recordOf(1000, noise)}, 12), func(int, int, ship.Outcome) {})
		if err := links[0].Send(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
		_, ports := receive(t, receivers[0], 12)
		count := map[uint16]int{}
		for _, p := range ports {
			count[p]++
		}
		if len(count) != 4 || count[ports[0]] != 3 {
			t.Errorf("messages by port: %v", count)
		}
	}
}

// The kernel's own refusal: what was sent to a port where nothing listens comes back with a later write, the records go back to
// the queue, and they arrive when somebody listens again.
func TestRefusedOnLoopback(t *testing.T) {
	receiver := listen(t, "127.0.0.1:0")
	addr := receiver.LocalAddr().(*net.UDPAddr).AddrPort()
	receiver.Close()
	link := dialLoopback(t, udpConfig{chunkSize: 300, compression: CompressNone, flows: 1, flowAge: time.Minute, packetRate: -1}, addr)
	records := [][]byte{recordOf(100, noise), recordOf(3000, noise), recordOf(200, noise)}
	var settled []settlement
	send := func(records [][]byte) {
		batch := ship.NewBatch(records, func(from, to int, o ship.Outcome) { settled = append(settled, settlement{from, to, o}) })
		if err := link.Send(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	for deadline := time.Now().Add(time.Minute); ; {
		settled = nil
		send(records)
		last := settled[len(settled)-1]
		if last.Cause == delivery.CauseRefused && last.Do == ship.Requeue && last.to == len(records) {
			records = records[last.from:]
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the kernel never refuses")
		}
	}
	receiver = listen(t, addr.String())
	settled = nil
	send(records)
	got, _ := receive(t, receiver, len(records))
	for i := range records {
		if !bytes.Equal(got[i], records[i]) {
			t.Errorf("record %d arrives as something else", i)
		}
	}
	if len(settled) != 1 || settled[0].Do != ship.Delivered {
		t.Errorf("%v", settled)
	}
}

// Larger than any datagram the kernel takes: the message arrives all the same, in smaller ones.
func TestTooLongOnLoopback(t *testing.T) {
	receiver := listen(t, "127.0.0.1:0")
	link := dialLoopback(t, udpConfig{
		chunkSize: 65_600, compression: CompressNone, flows: 1, flowAge: time.Minute, packetRate: 1000,
	}, receiver.LocalAddr().(*net.UDPAddr).AddrPort())
	record := recordOf(65_550, noise)
	batch := ship.NewBatch([][]byte{record}, func(_, _ int, o ship.Outcome) {
		if o.Do != ship.Delivered {
			t.Error(o)
		}
	})
	if err := link.Send(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	if got, _ := receive(t, receiver, 1); !bytes.Equal(got[0], record) {
		t.Error("something else arrives")
	}
}
