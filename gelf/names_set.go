package gelf

import (
	"encoding/binary"
	"maps"
	"math/bits"
	"slices"
	"strconv"
)

// nameSet is the names of one message as Graylog stores them: a hash table of their hashes. Two names with one hash only
// mean that one of them gets a number it did not need.
//
// The table is behind as long as all names are known ones, which need no look into it; settle brings it up to date.
type nameSet struct {
	sum   uint64   // of all hashes that were added since the set was made
	base  *nameSet // what the table has still to be copied from
	fresh []uint64 // hashes that the table has not yet
	slots []uint64 // 0 is free; len is a power of two
	used  int
	next  map[uint64]int // the number that the next repetition of a name gets; made at the first one
}

const minSlots = 64

// newNameSet returns the names that no attribute may take.
func newNameSet(extra ...string) nameSet {
	s := nameSet{slots: make([]uint64, minSlots)}
	for _, n := range reservedNames() {
		s.add(hashName([]byte(n)))
	}
	for _, n := range extra {
		s.add(hashName([]byte(n)))
	}
	return s
}

// begin makes s equal to base, which must not change any more.
func (s *nameSet) begin(base *nameSet) {
	s.sum, s.base, s.fresh = base.sum, base, s.fresh[:0]
}

// know adds a name that is known to be new.
func (s *nameSet) know(h uint64) {
	s.sum += h
	s.fresh = append(s.fresh, h)
}

// settle brings the table up to date.
func (s *nameSet) settle() {
	if base := s.base; base != nil {
		s.base = nil
		s.slots = append(s.slots[:0], base.slots...)
		s.used = base.used
		clear(s.next)
		for h, n := range base.next {
			s.repeats()[h] = n
		}
	}
	for _, h := range s.fresh {
		s.insert(h)
	}
	s.fresh = s.fresh[:0]
}

func (s *nameSet) clone() nameSet {
	s.settle()
	return nameSet{sum: s.sum, slots: slices.Clone(s.slots), used: s.used, next: maps.Clone(s.next)}
}

// add adds a name to a settled set. It returns false when it is in there already.
func (s *nameSet) add(h uint64) bool {
	if !s.insert(h) {
		return false
	}
	s.sum += h
	return true
}

func (s *nameSet) insert(h uint64) bool {
	if 2*s.used >= len(s.slots) {
		s.grow()
	}
	mask := uint64(len(s.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		switch s.slots[i] {
		case 0:
			s.slots[i] = h
			s.used++
			return true
		case h:
			return false
		}
	}
}

func (s *nameSet) grow() {
	old := s.slots
	s.slots, s.used = make([]uint64, 2*len(old)), 0
	for _, h := range old {
		if h != 0 {
			s.insert(h)
		}
	}
}

func (s *nameSet) repeats() map[uint64]int {
	if s.next == nil {
		s.next = make(map[uint64]int)
	}
	return s.next
}

// free changes the name at the end of buf, which begins at start and is taken, into one that is not, and takes that.
func (s *nameSet) free(buf []byte, start int) []byte {
	if reserved(buf[start:]) {
		buf = append(buf, '_')
		if s.add(hashName(buf[start:])) {
			return buf
		}
	}
	return s.number(buf, start)
}

// number appends "_2", "_3" … to the name at the end of buf, which begins at start and is in the set, until it is new. It
// remembers where it was: a thousand attributes of one name cost a thousand tries.
func (s *nameSet) number(buf []byte, start int) []byte {
	end := len(buf)
	h := hashName(buf[start:])
	for {
		n := max(s.repeats()[h], 2)
		s.repeats()[h] = n + 1
		buf = strconv.AppendInt(append(buf[:end], '_'), int64(n), 10)
		if s.add(hashName(buf[start:])) {
			return buf
		}
	}
}

// hashName hashes a name as Graylog stores it: a dot counts as an underscore. It is never 0.
func hashName(name []byte) uint64 {
	const k = 0x9e3779b97f4a7c15 // odd, and its bits are well mixed
	h := uint64(len(name)) + k
	for ; len(name) >= 8; name = name[8:] {
		h = mix(h ^ undot(binary.LittleEndian.Uint64(name)))
	}
	var w uint64
	for i, c := range name {
		w |= uint64(c) << (8 * i)
	}
	return mix(h^undot(w)) | 1
}

func mix(x uint64) uint64 {
	hi, lo := bits.Mul64(x, 0xd6e8feb86659fd93)
	return hi ^ lo
}

// undot replaces every dot among eight ASCII bytes by an underscore.
func undot(w uint64) uint64 {
	const ones = 0x0101010101010101
	x := w ^ '.'*ones
	dots := ^(x + 0x7f*ones) & (0x80 * ones) // a byte of x is 0 exactly where adding 0x7f sets no high bit
	return w ^ dots>>7*('.'^'_')
}
