package errno

import (
	"errors"
	"fmt"
	"net"
	"testing"
)

// What the system itself says, whatever numbers it has for it.
func TestOfTheSystem(t *testing.T) {
	closed, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	addr := closed.LocalAddr().String()
	conn, err := net.Dial("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err = conn.Write(make([]byte, 70_000)); !TooLong(err) || Refused(err) || Busy(err) {
		t.Errorf("a datagram of 70000 bytes: %v", err)
	}
	closed.Close()
	for range 1000 { // the refusal of one datagram comes with a later one
		if _, err = conn.Write([]byte("x")); err != nil {
			break
		}
	}
	if err != nil && (!Refused(err) || TooLong(err) || Busy(err)) {
		t.Errorf("nothing listens: %v", err)
	}
	for _, other := range []error{nil, errors.New("x"), fmt.Errorf("y: %w", net.ErrClosed)} {
		if Refused(other) || TooLong(other) || Busy(other) {
			t.Errorf("%v", other)
		}
	}
}
