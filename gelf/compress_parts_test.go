package gelf

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"runtime"
	"testing"

	"github.com/wholelog/wholelog/internal/yardstick"
)

// A message that is deflated in parts is one stream like any other, whatever the number of processors, and hardly longer.
func TestDeflateInParts(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, size := range []int{2*partBytes - 1, 2 * partBytes, 2*partBytes + 1, 3*partBytes + 7, 1 << 20, 4<<20 + 3} {
		data := []byte(yardstick.Text(size, 1))
		whole := 0
		for _, processors := range []int{1, 2, 3, 8} {
			for _, mode := range []Compression{CompressGzip, CompressZlib} {
				t.Run(fmt.Sprintf("%d bytes, %d processors, %v", size, processors, mode), func(t *testing.T) {
					runtime.GOMAXPROCS(processors)
					c := compressor{mode: mode}
					z := c.deflate(data)
					var r io.Reader
					var err error
					if mode == CompressGzip {
						r, err = gzip.NewReader(bytes.NewReader(z))
					} else {
						r, err = zlib.NewReader(bytes.NewReader(z))
					}
					if err != nil {
						t.Fatal(err)
					}
					back, err := io.ReadAll(r)
					if err != nil || !bytes.Equal(back, data) {
						t.Fatalf("%d of %d bytes came back, %v", len(back), len(data), err)
					}
					if processors == 1 {
						whole = len(z)
					} else if len(z) > whole+whole/50 {
						t.Errorf("%d bytes, and %d in one part", len(z), whole)
					}
				})
			}
		}
	}
}
