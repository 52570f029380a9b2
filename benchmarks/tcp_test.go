package benchmarks

import (
	"testing"

	gogelf "github.com/Graylog2/go-gelf/gelf"

	"github.com/wholelog/wholelog/gelf"
)

// BenchmarkTCP is what one message of 300 bytes costs its sender over one connection: ours from the call until the peer's kernel has
// acknowledged the last one, theirs until its own kernel has taken it.
func BenchmarkTCP(b *testing.B) {
	all := texts(sizes()["300B"])
	b.Run("ours", func(b *testing.B) { run(b, all, "tcp", gelf.Options{}, logged) })
	b.Run("handle_ours", func(b *testing.B) { run(b, all, "tcp", gelf.Options{}, handled) })
	b.Run("gogelf", func(b *testing.B) {
		w, err := gogelf.NewTCPWriter(startSink(b, "tcp"))
		if err != nil {
			b.Fatal(err)
		}
		defer w.Close()
		write(b, all, w)
	})
}
