package gelf

// knownNames remembers what became of names, so that the next record of the same log call costs neither a check of its names
// nor a look at those that were taken before. It holds copies: a reference could keep a large text of the program alive.
//
// What becomes of a name depends on the name and on those that are taken, for which stands the sum of their hashes. That two
// sets of names have one sum of 64 bits is as good as impossible; the later of two fields would replace the earlier one.
type knownNames [256]knownName

type knownName struct {
	taken       uint64   // the sum of the hashes of the names before it
	hash        uint64   // of the name as it is sent
	prefix, key uint8    // lengths of the name as it was logged
	logged      uint8    // where it stands in text
	size        uint8    // of the name as it is sent, from nameStart to nameEnd, at the front of text; 0: none is known here
	changed     bool     // the two differ
	text        [59]byte // makes five entries fill five cache lines
}

// at returns the only place where a name can be.
func (n *knownNames) at(taken uint64, prefix []byte, key string) *knownName {
	h := uint8(taken>>56) + uint8(len(key))<<3
	if len(key) > 0 {
		h += key[len(key)-1]
	}
	return &n[h]
}

// is returns whether n tells what becomes of prefix and key.
func (n *knownName) is(taken uint64, prefix []byte, key string) bool {
	if n.taken != taken || n.size == 0 || int(n.prefix) != len(prefix) {
		return false
	}
	at := int(n.logged) + len(prefix)
	return string(n.text[at:at+int(n.key)]) == key && (len(prefix) == 0 || string(n.text[n.logged:at]) == string(prefix))
}

// set makes n tell that prefix and key became sent, if there is room for that.
func (n *knownName) set(taken uint64, prefix []byte, key string, sent []byte, hash uint64, changed bool) {
	logged, size := len(nameStart), len(sent)
	if changed {
		logged, size = len(sent), len(sent)+len(prefix)+len(key)
	}
	if size > len(n.text) {
		return
	}
	*n = knownName{
		taken: taken, hash: hash, prefix: uint8(len(prefix)), key: uint8(len(key)),
		logged: uint8(logged), size: uint8(len(sent)), changed: changed,
	}
	copy(n.text[:], sent)
	copy(n.text[logged+copy(n.text[logged:], prefix):], key)
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
