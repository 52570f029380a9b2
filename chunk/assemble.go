package chunk

import (
	"bytes"
	"fmt"
	"time"
)

// Assembler puts messages together from datagrams in any order, by Graylog's rules, which are looser and harsher than the
// format's text:
//
//   - The id is the only key. Two senders that use one id are spliced into one message.
//   - The first chunk received fixes how many places the message has; whether it is complete is judged by the count of the
//     chunk just received.
//   - A chunk without a place is invalid, and still opens an entry for its id, which later expires.
//   - A duplicate is counted and ignored. After completion it opens a new entry, which later expires.
//   - The chunk after the 128th discards the whole message. Those that follow open a new entry.
//   - An entry lives for [Validity] from its first chunk. A last chunk that comes later still completes the message, if
//     [Assembler.Expire] has not been called in between.
//
// The zero value is ready. An Assembler is not safe for concurrent use. It keeps copies, never the caller's datagrams: at
// most [MaxChunks] of them for each id, until Expire is called late enough. The number of ids is not limited.
type Assembler struct {
	held  *map[uint64]*entry // behind a pointer, so that an Assembler can be compared like any plain struct
	stats AssemblerStats
}

// entries returns the messages in the making, by id.
func (a *Assembler) entries() map[uint64]*entry {
	if a.held == nil {
		a.held = &map[uint64]*entry{}
	}
	return *a.held
}

// entry is a message in the making.
type entry struct {
	first  time.Time
	places uint8 // the count of the first chunk received
	// data is keyed by sequence number and grows with what arrives, so that a header that promises 255 chunks costs no more
	// than one that promises two.
	data map[uint8][]byte
}

// AssemblerStats counts what an [Assembler] has seen since it was made. WaitingMessages is a gauge, the others only grow.
type AssemblerStats struct {
	TotalChunks      uint64 // datagrams that start like a chunk, invalid ones included
	CompleteMessages uint64 // messages joined from chunks and returned; whole datagrams are not counted
	ExpiredMessages  uint64 // entries forgotten because they were older than Validity
	ExpiredChunks    uint64 // chunks those entries held
	DuplicateChunks  uint64 // chunks ignored because their place was taken
	WaitingMessages  uint64 // entries held now
	Invalid          uint64 // calls of Add that returned an error
}

// Add takes one datagram that arrived at now. When it completes a message, Add returns that message and true; a datagram that
// is no chunk is a whole message at once. The message is the caller's. A chunk that only adds to a message returns nil, false
// and no error.
//
// The error is [ErrInvalid], with done false: for a datagram shorter than two bytes, for a chunk that cannot be placed, for
// the chunk after the 128th, and for a joined message that starts like a chunk again. now must not go backwards.
func (a *Assembler) Add(datagram []byte, now time.Time) (message []byte, done bool, err error) {
	switch {
	case isChunk(datagram):
		a.stats.TotalChunks++
		message, done, err = a.addChunk(datagram, now)
	case len(datagram) < 2:
		err = fmt.Errorf("%w: a datagram of %d bytes", ErrInvalid, len(datagram))
	default:
		message, done = bytes.Clone(datagram), true
	}
	if err != nil {
		a.stats.Invalid++
	}
	return message, done, err
}

func (a *Assembler) addChunk(datagram []byte, now time.Time) (message []byte, done bool, err error) {
	// Parse's verdict on seq and count is not the receiver's: that compares seq with the places of the entry.
	h, data, err := Parse(datagram)
	if len(datagram) < HeaderSize {
		return nil, false, err
	}
	e := a.entries()[h.ID]
	if e == nil {
		e = a.open(h, now)
	}
	if h.Seq >= e.places {
		return nil, false, fmt.Errorf("%w: sequence number %d of %d chunks", ErrInvalid, h.Seq, e.places)
	}
	if _, taken := e.data[h.Seq]; taken {
		a.stats.DuplicateChunks++
		return nil, false, nil
	}
	if len(e.data) == MaxChunks {
		a.forget(h.ID)
		return nil, false, fmt.Errorf("%w: more than %d chunks", ErrInvalid, MaxChunks)
	}
	e.data[h.Seq] = bytes.Clone(data)
	if len(e.data) == int(h.Count) {
		a.forget(h.ID)
		if message, err = e.join(); err != nil {
			return nil, false, err
		}
		a.stats.CompleteMessages++
		return message, true, nil
	}
	if now.Sub(e.first) > Validity {
		a.expire(h.ID, e)
	}
	return nil, false, nil
}

// open makes the entry of h.ID.
func (a *Assembler) open(h Header, now time.Time) *entry {
	e := &entry{first: now, places: h.Count, data: make(map[uint8][]byte)}
	a.entries()[h.ID] = e
	a.stats.WaitingMessages++
	return e
}

// join puts the data in order.
func (e *entry) join() ([]byte, error) {
	n := 0
	for _, d := range e.data {
		n += len(d)
	}
	message := make([]byte, 0, n)
	for i := range len(e.data) {
		d, ok := e.data[uint8(i)]
		if !ok {
			// Counts that differ between the chunks of one id: as many arrived as the last one says, but not the first ones.
			return nil, fmt.Errorf("%w: chunk %d of %d is missing", ErrInvalid, i, len(e.data))
		}
		message = append(message, d...)
	}
	if isChunk(message) {
		return nil, fmt.Errorf("%w: a chunk inside chunks", ErrInvalid)
	}
	return message, nil
}

// Expire forgets the messages whose first chunk came more than [Validity] before now, and returns how many. A receiver calls
// it once a second.
func (a *Assembler) Expire(now time.Time) int {
	expired := 0
	for id, e := range a.entries() {
		if now.Sub(e.first) > Validity {
			a.expire(id, e)
			expired++
		}
	}
	return expired
}

func (a *Assembler) expire(id uint64, e *entry) {
	a.forget(id)
	a.stats.ExpiredMessages++
	a.stats.ExpiredChunks += uint64(len(e.data))
}

func (a *Assembler) forget(id uint64) {
	delete(a.entries(), id)
	a.stats.WaitingMessages--
}

// Stats returns the counters.
func (a *Assembler) Stats() AssemblerStats { return a.stats }
