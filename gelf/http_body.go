package gelf

import (
	"fmt"
	"sync/atomic"

	"github.com/wholelog/wholelog/delivery"
)

// bodyLimit is the largest body that a server takes, as far as is known: what Graylog takes by default, until it answers 413.
type bodyLimit struct{ atomic.Int64 }

// learn takes note that a body of n bytes was too large. It returns the new limit, 0 when that was known already, and whether a
// smaller body may yet do.
func (l *bodyLimit) learn(n int) (news int, smaller bool) {
	half := max(int64(n)/2, minBody)
	for known := l.Load(); known > half; known = l.Load() {
		if l.CompareAndSwap(known, half) {
			return int(half), n > minBody
		}
	}
	return 0, n > minBody
}

// body is what leaves in one request.
type body struct {
	data   []byte
	zipped bool
	cut    bool // text was cut that was whole before
}

// join puts records into one body, each with a line end. An input with bulk receiving on keeps what comes after the last line end for
// the next request, which is one too many.
func (x *exchange) join(from, to int) []byte {
	n := 0
	for i := from; i < to; i++ {
		n += len(x.batch.At(i).Bytes()) + 1
	}
	data := make([]byte, 0, n)
	for i := from; i < to; i++ {
		data = append(append(data, x.batch.At(i).Bytes()...), '\n')
	}
	return data
}

// next is where the request that begins with the record from ends: with Bulk as many records as the limit takes, else one.
func (x *exchange) next(from int) int {
	to := from + 1
	if !x.link.config.bulk {
		return to
	}
	room := int(x.link.limit.Load()) - len(x.batch.At(from).Bytes()) - 1
	for ; to < x.batch.Len(); to++ {
		if room -= len(x.batch.At(to).Bytes()) + 1; room < 0 {
			break
		}
	}
	return to
}

// fit climbs the ladder until one record fits a body of limit bytes: as it is, then as gzip, then cut. gzip is not announced by
// Content-Encoding: then the server would inflate it and judge the result by the same limit, while by its first bytes it is known
// only later, where the limit is that of datagrams.
func (t *httpTransport) fit(data []byte, limit int) (body, error) {
	plain := func(p []byte) []byte { return append(append(make([]byte, 0, len(p)+1), p...), '\n') }
	if len(data) < limit {
		return body{data: plain(data)}, nil
	}
	pack := plain
	if t.config.zips {
		c := &compressor{mode: CompressGzip}
		pack = func(p []byte) []byte {
			if len(p)+1 >= maxInflated {
				return p // longer than any limit
			}
			return c.deflate(plain(p))
		}
		if z := pack(data); len(z) <= limit {
			return body{data: z, zipped: true}, nil
		}
	}
	if t.config.oversize == OversizeTruncate {
		if p, ok := shorten(data, limit, t.config.zips, pack); ok {
			return body{data: p, zipped: t.config.zips, cut: !cutBefore(data)}, nil
		}
	}
	return body{}, fmt.Errorf("%d bytes do not fit a request of %d: %w", len(data), limit, delivery.ErrTooLarge)
}
