package ship

import (
	"log/slog"
	"unsafe"
)

// Rec is one encoded record. Its bytes lie in a segment of the arena. They do not change until the record is settled, which happens
// exactly once, and from the moment a link has it until then they do not move.
type Rec struct {
	data  []byte
	seg   *segment
	block *block // it is one of
	next  *Rec   // in whichever list holds it
	batch *Batch
	avoid *endpoint // where it failed last: another address is tried first
	seq   uint64
	epoch uint64
	level slog.Level
	born  stamp
	tries uint32
	halve uint32 // most records of a batch it may be part of, after a Halve; 0: no limit
	flags recFlags
}

// recFlags are the private marks of a record.
type recFlags uint8

const (
	quiet   recFlags = 1 << iota // its loss is counted but not reported: it was logged from inside a hook
	own                          // the library's: outside every counter but Own
	shaped                       // it was let through by the rates, and has not left since
	suspect                      // it may be what brings links down: see resend
)

// Bytes returns the encoded record. It must not be changed, nor read after the record is settled.
func (r *Rec) Bytes() []byte { return r.data }

// Seq is the record's place in the order of Put, from 1.
func (r *Rec) Seq() uint64 { return r.seq }

// Level is the record's level.
func (r *Rec) Level() slog.Level { return r.level }

// Tries counts the sends of the record so far whose outcome was "perhaps taken".
func (r *Rec) Tries() int { return int(r.tries) }

// recCost is what a record takes of the budget besides its bytes.
const recCost = int(unsafe.Sizeof(Rec{}))

// cost is what r takes of the budget, roughly.
func (r *Rec) cost() int { return len(r.data) + recCost }

// counts is what r adds to a counter of records.
func (r *Rec) counts() uint64 {
	if r.flags&own != 0 {
		return 0
	}
	return 1
}

// list is a queue of records, linked through the records themselves.
type list struct {
	head, tail *Rec
	n, bytes   int
}

func (l *list) push(r *Rec) {
	r.next = nil
	if l.tail == nil {
		l.head = r
	} else {
		l.tail.next = r
	}
	l.tail = r
	l.n++
	l.bytes += len(r.data)
}

func (l *list) pop() *Rec {
	r := l.head
	if r == nil {
		return nil
	}
	l.head, r.next = r.next, nil
	if l.head == nil {
		l.tail = nil
	}
	l.n--
	l.bytes -= len(r.data)
	return r
}

// victim finds the first record that one of this level may push out: any for one at Warn or above, else one below Warn, as far as a
// short search goes. before is the record in front of it, nil for the first; r is nil when there is none.
func (l *list) victim(level slog.Level) (before, r *Rec) {
	const most = 256
	r = l.head
	for n := 0; r != nil && level < slog.LevelWarn && r.level >= slog.LevelWarn; n++ {
		if n == most {
			return nil, nil
		}
		before, r = r, r.next
	}
	return before, r
}

// remove takes out r, which stands behind before.
func (l *list) remove(before, r *Rec) {
	if before == nil {
		l.pop()
		return
	}
	if before.next, r.next = r.next, nil; before.next == nil {
		l.tail = before
	}
	l.n--
	l.bytes -= len(r.data)
}

// cost is what the records of l take of the budget, roughly.
func (l *list) cost() int { return l.bytes + l.n*recCost }

// draw moves records from the front of o to the end of l as long as l costs no more than most: all at once when they are not too many.
// One record alone may cost more.
func (l *list) draw(o *list, most int) {
	if o.n > 0 && l.cost()+o.cost() <= most {
		if l.tail == nil {
			l.head = o.head
		} else {
			l.tail.next = o.head
		}
		l.tail = o.tail
		l.n += o.n
		l.bytes += o.bytes
		*o = list{}
		return
	}
	for o.n > 0 && (l.n == 0 || l.cost()+o.head.cost() <= most) {
		l.push(o.pop())
	}
}

// insert puts r at its place by Seq, looking from after on when that record stands before it. Records that come back do so in
// rising order, so each insertion begins where the last one ended. It returns r, the next after.
func (l *list) insert(after, r *Rec) *Rec {
	if l.tail == nil || l.tail.seq < r.seq {
		l.push(r)
		return r
	}
	l.n++
	l.bytes += len(r.data)
	if l.head.seq > r.seq {
		r.next, l.head = l.head, r
		return r
	}
	if after == nil || after.seq > r.seq {
		after = l.head
	}
	for after.next.seq < r.seq { // ends: the tail stands behind r
		after = after.next
	}
	r.next, after.next = after.next, r
	return r
}
