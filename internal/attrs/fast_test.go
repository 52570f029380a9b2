package attrs

import (
	"math"
	"strconv"
	"strings"
	"testing"
)

func TestAppendInt(t *testing.T) {
	same := func(i int64) {
		if got, want := string(AppendInt([]byte(">"), i)), ">"+strconv.FormatInt(i, 10); got != want {
			t.Fatalf("AppendInt(%d) = %s, want %s", i, got, want)
		}
		if got, want := string(AppendUint(nil, uint64(i))), strconv.FormatUint(uint64(i), 10); got != want {
			t.Fatalf("AppendUint(%d) = %s, want %s", uint64(i), got, want)
		}
	}
	for i := range int64(100_000) { // every quarter and every half
		same(i)
		same(-i)
		same(i * 1000)
		same(i*10_000 + 9_999)
	}
	for p := int64(1); p < math.MaxInt64/10; p *= 10 {
		for _, i := range []int64{p - 1, p, p + 1, 2*p - 1, 9 * p} {
			same(i)
			same(-i)
		}
	}
	same(math.MaxInt64)
	same(math.MinInt64)
}

// It takes what is clean and nothing else, whatever the length, the place of the byte and the room in dst.
func TestAppendQuoted(t *testing.T) {
	for length := range 80 {
		clean := strings.Repeat("0123456789", 8)[:length]
		for _, room := range []int{0, length, length + 2, 200} {
			dst := append(make([]byte, 0, 1+room), '>')
			if got, ok := AppendQuoted(dst, clean); string(got) != `>"`+clean+`"` || !ok {
				t.Errorf("%q: %q, %v", clean, got, ok)
			}
		}
		for at := range length {
			for c := range 256 {
				in := clean[:at] + string([]byte{byte(c)}) + clean[at+1:]
				got, ok := AppendQuoted([]byte(">"), in)
				stands := c >= ' ' && c < 0x80 && c != '"' && c != '\\'
				want := `>`
				if stands {
					want = `>"` + in + `"`
				}
				if string(got) != want || ok != stands {
					t.Fatalf("%q: %q, %v", in, got, ok)
				}
			}
		}
	}
}
