package attrs

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// AppendQuoted appends s as a JSON string if it is Clean, else it returns false and dst as it was. It copies the words that
// it looks at anyway, which for the short texts of a log costs less than a look and then a copy.
func AppendQuoted(dst []byte, s string) (out []byte, ok bool) {
	start, n := len(dst), len(s)
	dst = slices.Grow(dst, n+len(`""`))
	all := dst[start : start+n+len(`""`)]
	text := all[1 : n+1]
	var care uint64
	switch {
	case n >= 8:
		for i := 0; i < n-8; i += 8 {
			w := load64(s, i)
			if careful(w) != 0 {
				return dst, false
			}
			binary.LittleEndian.PutUint64(text[i:], w)
		}
		w := load64(s, n-8)
		care = careful(w)
		binary.LittleEndian.PutUint64(text[n-8:], w)
	case n >= 4:
		first, last := load32(s, 0), load32(s, n-4)
		care = careful(first | last<<32)
		binary.LittleEndian.PutUint32(text, uint32(first))
		binary.LittleEndian.PutUint32(text[n-4:], uint32(last))
	case n > 0:
		care = careful(filler | uint64(s[0])<<16 | uint64(s[n/2])<<8 | uint64(s[n-1]))
		text[0], text[n/2], text[n-1] = s[0], s[n/2], s[n-1]
	}
	if care != 0 {
		return dst, false
	}
	all[0], all[len(all)-1] = '"', '"'
	return dst[:start+len(all)], true
}

// AppendInt appends i in decimal. It is strconv.AppendInt without its loop over digits.
func AppendInt(dst []byte, i int64) []byte {
	if i < 0 {
		return AppendUint(append(dst, '-'), -uint64(i))
	}
	return AppendUint(dst, uint64(i))
}

// AppendUint appends u in decimal.
func AppendUint(dst []byte, u uint64) []byte {
	if u >= 1e8 {
		return binary.LittleEndian.AppendUint64(AppendUint(dst, u/1e8), digits(u%1e8)+'0'*ones)
	}
	d := digits(u)
	zeros := bits.TrailingZeros64(d|1<<56) / 8 // in front; the last digit stays
	dst = binary.LittleEndian.AppendUint64(dst, (d+'0'*ones)>>(8*zeros))
	return dst[:len(dst)-zeros]
}

// digits returns the eight decimal digits of u, which is less than 1e8, the first one lowest. It halves the number, the halves
// and the quarters, all parts of a step at once: 10486/2^20 is 1/100 up to 9999, and 103/2^10 is 1/10 up to 99.
func digits(u uint64) uint64 {
	x := u/10000 | u%10000<<32
	q := x * 10486 >> 20 & (0x7f | 0x7f<<32)
	x = q | (x-100*q)<<16
	q = x * 103 >> 10 & (0xf | 0xf<<16 | 0xf<<32 | 0xf<<48)
	return q | (x-10*q)<<8
}
