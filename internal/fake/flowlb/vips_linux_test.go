package flowlb

import "testing"

// Only Linux has all of 127.0.0.0/8 without being asked.
func TestVIPsShareAPort(t *testing.T) {
	lb, err := Listen([]string{"127.0.1.1:0", "127.0.1.2:0", "127.0.1.3:0"}, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lb.Close() }()
	v := lb.VIPs()
	if v[0].Port() == 0 || v[1].Port() != v[0].Port() || v[2].Port() != v[0].Port() {
		t.Errorf("%v", v)
	}
}
