package gelf

import (
	"encoding/binary"
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Graylog stores the attribute _N as the field N, with every dot made an underscore. It silently drops a field whose name
// has other characters than these, or is taken, and keeps only one of two fields that come out with the same name. So the
// names are judged here as they come out there.

const (
	maxName   = 256 // bytes of a name; longer ones are cut
	emptyName = "unnamed"
	nameStart = `,"_` // stands before a name
	nameEnd   = `":`  // and behind it
)

// The marks of nameClass.
const (
	nameDot   = 1 << iota // valid here, an underscore in Graylog
	nameOther             // not valid
)

// nameClass holds the marks of every byte.
var nameClass = func() (class [256]uint8) {
	for i := range class {
		switch c := byte(i); {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-':
		case c == '.':
			class[i] = nameDot
		default:
			class[i] = nameOther
		}
	}
	return class
}()

// reservedNames are the fields that Graylog sets itself from the other parts of the message, or that mean something else
// there: an attribute of that name would be dropped, or replace what the server knows. An attribute N among them becomes
// _N_, which it stores as N_. (_id is the one name that the GELF specification forbids.)
var reservedNames = [...]string{
	"id", "message", "full_message", "short_message", "source", "host", "timestamp", "level", "streams",
	"truncated", // what a link adds when it cuts a message
}

// reservedPrefix is the server's own: gl2_remote_ip and the like.
const reservedPrefix = "gl2_"

func reserved(name []byte) bool {
	return isReservedPrefix(name) || slices.Contains(reservedNames[:], strings.ReplaceAll(string(name), ".", "_"))
}

func isReservedPrefix(name []byte) bool {
	return len(name) >= len(reservedPrefix) && string(name[:3]) == reservedPrefix[:3] && (name[3] == '_' || name[3] == '.')
}

// appendCleanName appends name with every character that Graylog does not accept replaced by "_". The whole name, which
// begins at start in dst, gets no longer than maxName bytes, has no underscore in front (the one that GELF asks for is
// there already; with two, Graylog drops names like __id) and is not empty. changed says that name did not stay as it was.
func appendCleanName(dst []byte, start int, name string) (out []byte, changed bool) {
	before := len(dst)
	for _, r := range name {
		if len(dst)-start >= maxName {
			break
		}
		c := byte('_')
		if r < utf8.RuneSelf && nameClass[r]&nameOther == 0 {
			c = byte(r)
		}
		if c != '_' || len(dst) > start {
			dst = append(dst, c)
		}
	}
	if len(dst) == start {
		dst = append(dst, emptyName...)
	}
	return dst, string(dst[before:]) != name
}

// plainName returns whether appendCleanName would change nothing.
func plainName(name string) bool {
	if len(name) == 0 || len(name) > maxName || name[0] == '_' {
		return false
	}
	var class uint8
	for i := range len(name) {
		class |= nameClass[name[i]]
	}
	return class&nameOther == 0
}

// nameSet is the names of one message as Graylog stores them: a hash table of their hashes. Two names with one hash only
// mean that one of them gets a number it did not need.
type nameSet struct {
	slots []uint64 // 0 is free; len is a power of two
	used  int
	next  map[uint64]int // the number that the next repetition of a name gets; made at the first one
}

const minSlots = 64

// newNameSet returns the names that no attribute may take.
func newNameSet(extra ...string) nameSet {
	s := nameSet{slots: make([]uint64, minSlots)}
	for _, n := range reservedNames {
		s.add(hashName([]byte(n)))
	}
	for _, n := range extra {
		s.add(hashName([]byte(n)))
	}
	return s
}

// copyFrom makes s equal to o, reusing its memory.
func (s *nameSet) copyFrom(o *nameSet) {
	s.slots = append(s.slots[:0], o.slots...)
	s.used = o.used
	clear(s.next)
	for h, n := range o.next {
		s.repeats()[h] = n
	}
}

func (s *nameSet) clone() nameSet {
	return nameSet{slots: slices.Clone(s.slots), used: s.used, next: maps.Clone(s.next)}
}

// add returns false when the name is in the set already.
func (s *nameSet) add(h uint64) bool {
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
			s.add(h)
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

// knownNames remembers names that needed no mending, so that the same log call does not cost the same check again. It holds
// copies: a reference could keep a large text of the program alive.
type knownNames [64]knownName

type knownName struct {
	hash        uint64
	prefix, key uint8    // lengths
	text        [54]byte // both, between nameStart and nameEnd; the whole is a cache line
}

// at returns the only place where a name can be.
func (n *knownNames) at(prefix []byte, key string) *knownName {
	h := uint(len(key) + 5*len(prefix))
	if len(key) > 0 {
		h += 3*uint(key[0]) + 7*uint(key[len(key)-1])
	}
	return &n[h%uint(len(n))]
}

// is returns whether the name is prefix and key.
func (n *knownName) is(prefix []byte, key string) bool {
	if n.hash == 0 || int(n.key) != len(key) || int(n.prefix) != len(prefix) {
		return false
	}
	text := n.text[len(nameStart):]
	return string(text[len(prefix):len(prefix)+len(key)]) == key &&
		(len(prefix) == 0 || string(text[:len(prefix)]) == string(prefix))
}

// set makes the name that of prefix and key, if it is short enough.
func (n *knownName) set(prefix []byte, key string, hash uint64) {
	if len(nameStart)+len(prefix)+len(key)+len(nameEnd) > len(n.text) {
		return
	}
	n.hash, n.prefix, n.key = hash, uint8(len(prefix)), uint8(len(key))
	text := append(n.text[:0], nameStart...)
	text = append(append(text, prefix...), key...)
	_ = append(text, nameEnd...)
}

// append appends the name, with what stands around it. To copy the same number of bytes each time costs a few moves and no call.
func (n *knownName) append(dst []byte) []byte {
	i, size := len(dst), len(nameStart)+int(n.prefix)+int(n.key)+len(nameEnd)
	if i+len(n.text) > cap(dst) {
		return append(dst, n.text[:size]...)
	}
	*(*[len(n.text)]byte)(dst[i : i+len(n.text)]) = n.text
	return dst[:i+size]
}
