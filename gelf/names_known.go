package gelf

// knownNames remembers what became of names, so that the next record of the same log call costs neither a check of its names
// nor a look at those that were taken before. It holds copies: a reference could keep a large text of the program alive.
//
// What becomes of a name depends on the name and on those that are taken, for which stands the sum of their hashes. That two
// sets of names have one sum of 64 bits is as good as impossible; the later of two fields would replace the earlier one.
//
// A name can be in two places. With one, two names of a log call that share it would push each other out with each record.
type knownNames [512]knownName

type knownName struct {
	taken       uint64   // the sum of the hashes of the names before it
	hash        uint64   // of the name as it is sent
	prefix, key uint8    // lengths of the name as it was logged
	logged      uint8    // where it stands in text
	size        uint8    // of the name as it is sent, from nameStart to nameEnd, at the front of text; 0: none is known here
	changed     bool     // the two differ
	text        [59]byte // four entries fill five cache lines
}

// at returns the place of a name; the one behind it is the second.
func (n *knownNames) at(taken uint64, key string) int {
	h := uint8(taken>>56) + uint8(len(key))<<3
	if len(key) > 0 {
		h += key[len(key)-1]
	}
	return 2 * int(h)
}

// is returns whether n tells what becomes of prefix and key.
func (n *knownName) is(taken uint64, prefix []byte, key string) bool {
	if n.taken != taken || n.size == 0 || int(n.prefix) != len(prefix) {
		return false
	}
	at := int(n.logged) + len(prefix)
	return string(n.text[at:at+int(n.key)]) == key && (len(prefix) == 0 || string(n.text[n.logged:at]) == string(prefix))
}

// remember keeps at i that prefix and key became sent. What was there moves to the second place.
func (n *knownNames) remember(i int, taken uint64, prefix []byte, key string, sent []byte, hash uint64, changed bool) {
	logged, size := len(nameStart), len(sent)
	if changed {
		logged, size = len(sent), len(sent)+len(prefix)+len(key)
	}
	known := &n[i]
	if size > len(known.text) {
		return // the same check again and again, for the few names that are as long
	}
	n[i+1] = *known
	*known = knownName{
		taken: taken, hash: hash, prefix: uint8(len(prefix)), key: uint8(len(key)),
		logged: uint8(logged), size: uint8(len(sent)), changed: changed,
	}
	copy(known.text[:], sent)
	copy(known.text[logged+copy(known.text[logged:], prefix):], key)
}

// append appends the name as it is sent. To copy the same number of bytes each time costs a few moves and no call.
func (n *knownName) append(dst []byte) []byte {
	i := len(dst)
	if i+len(n.text) > cap(dst) {
		return append(dst, n.text[:n.size]...)
	}
	*(*[len(n.text)]byte)(dst[i : i+len(n.text)]) = n.text
	return dst[:i+int(n.size)]
}
