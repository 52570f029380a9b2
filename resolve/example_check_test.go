package resolve_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"syscall"
	"time"

	"github.com/wholelog/wholelog/resolve"
)

// ask prints what a check finds at an address. A handler asks every CheckEvery.
func ask(c resolve.Check, addr netip.AddrPort) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	report, err := c.Check(ctx, addr)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		fmt.Println("failed: connection refused")
	case err != nil:
		fmt.Println("failed:", err)
	default:
		fmt.Printf("%v, weight %d, %q\n", report.State, report.Weight, report.Note)
	}
}

// addrOf is where a listener listens.
func addrOf(l net.Listener) netip.AddrPort { return l.Addr().(*net.TCPAddr).AddrPort() }

// Graylog's status page says with 429 that a node has enough to do, and with 503 that it wants nothing.
func ExampleHTTPCheck() {
	status := http.StatusOK
	graylog := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		fmt.Fprintln(w, r.Host, "is", map[int]string{200: "ALIVE", 429: "THROTTLED", 503: "DEAD"}[status])
	}))
	defer graylog.Close()

	// The connection goes to the address that is checked. The host of the URL is the name in the request.
	check := resolve.HTTPCheck("http://graylog.example.com/api/system/lbstatus")
	for _, status = range []int{200, 429, 503, 404} {
		ask(check, addrOf(graylog.Listener))
	}
	// Output:
	// up, weight 0, ""
	// degraded, weight 0, "429 Too Many Requests: graylog.example.com is THROTTLED"
	// down, weight 0, "503 Service Unavailable: graylog.example.com is DEAD"
	// failed: status 404 Not Found: graylog.example.com is
}

// Datagrams do not tell whether anybody hears them: whether a port of the receiver accepts connections does.
func ExampleTCPCheck() {
	api, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	addr := addrOf(api)
	check := resolve.TCPCheck(int(addr.Port()))
	service := netip.AddrPortFrom(addr.Addr(), 12201) // of the datagrams
	ask(check, service)
	if err := api.Close(); err != nil {
		fmt.Println(err)
	}
	ask(check, service)
	// Output:
	// up, weight 0, ""
	// failed: connection refused
}

// An agent beside the receiver answers each connection with a line. What it leaves unsaid stays as it was.
func ExampleAgentCheck() {
	agent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer agent.Close()
	answers := []string{"up 50%\n", "drain # for the update\n", "ready\n", "80%\n"}
	go func() {
		for _, answer := range answers {
			conn, err := agent.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, answer)
			_ = conn.Close()
		}
	}()

	addr := addrOf(agent)
	check := resolve.AgentCheck(int(addr.Port()))
	for range answers {
		ask(check, netip.AddrPortFrom(addr.Addr(), 12201))
	}
	// Output:
	// up, weight 50, ""
	// draining, weight 50, "for the update"
	// up, weight 50, ""
	// up, weight 80, ""
}

// A Check of one's own: a receiver is degraded when its answer is slow.
func ExampleCheck() {
	options := resolve.Options{Check: slowness{resolve.TCPCheck(9000)}}
	fmt.Println(options.Validate())
	// Output: <nil>
}

type slowness struct{ of resolve.Check }

func (s slowness) Check(ctx context.Context, addr netip.AddrPort) (resolve.Report, error) {
	began := time.Now()
	r, err := s.of.Check(ctx, addr)
	if took := time.Since(began); err == nil && took > 100*time.Millisecond {
		r = resolve.Report{State: resolve.Degraded, Note: "connected after " + took.String()}
	}
	return r, err
}
