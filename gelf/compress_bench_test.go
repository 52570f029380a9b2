package gelf

import (
	"compress/gzip"
	"fmt"
	"testing"

	"github.com/wholelog/wholelog/internal/yardstick"
)

// BenchmarkCompress is the compression of one message: ours, the standard library's with a writer made for each message, as clients
// do, and with one that is reused. The writers are at the fastest level.
func BenchmarkCompress(b *testing.B) {
	for _, size := range []int{1 << 10, 10 << 10, 100 << 10} {
		data := []byte(yardstick.Text(size, 1))
		b.Run(fmt.Sprintf("ours_%dKB", size>>10), func(b *testing.B) {
			c := compressor{mode: CompressGzip}
			b.ReportAllocs()
			for b.Loop() {
				c.deflate(data)
			}
			b.ReportMetric(float64(len(c.buf))/float64(size), "out/in")
		})
		var out counter
		b.Run(fmt.Sprintf("std_fresh_%dKB", size>>10), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				out = 0
				w, _ := gzip.NewWriterLevel(&out, gzip.BestSpeed) // the level is valid
				w.Write(data)
				w.Close()
			}
			b.ReportMetric(float64(out)/float64(size), "out/in")
		})
		b.Run(fmt.Sprintf("std_reused_%dKB", size>>10), func(b *testing.B) {
			w, _ := gzip.NewWriterLevel(&out, gzip.BestSpeed)
			b.ReportAllocs()
			for b.Loop() {
				out = 0
				w.Reset(&out)
				w.Write(data)
				w.Close()
			}
			b.ReportMetric(float64(out)/float64(size), "out/in")
		})
	}
}

// counter counts what is written to it.
type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
