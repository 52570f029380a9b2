package gelf

import (
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/wholelog/wholelog/internal/fake/gelfd"
	"github.com/wholelog/wholelog/internal/leak"
)

// nodeEnv makes a process of this test program a GELF TCP receiver at the address it names, which a test can kill.
const nodeEnv = "WHOLELOG_TEST_NODE"

func TestMain(m *testing.M) {
	if addr := os.Getenv(nodeEnv); addr != "" {
		node(addr)
		return
	}
	leak.Main(m)
}

// node receives until its standard input ends. It says where it listens, then the field n of every message as soon as it has it.
func node(addr string) {
	s, err := gelfd.ListenTCP(addr, gelfd.TCPOptions{Options: gelfd.Options{
		Discard: true, RcvBuf: 32 << 10,
		OnMessage: func(m gelfd.Message) { fmt.Println(m.Fields["n"]) },
	}})
	if err != nil {
		fmt.Println("error:", err)
		return
	}
	fmt.Println(s.Addr())
	_, _ = io.Copy(io.Discard, os.Stdin)
	_ = s.Close()
}
