package ship

// Batch is a run of records given to a link. It lives until all of it is settled.
type Batch struct {
	recs   []*Rec
	settle func(from, to int, o Outcome) // of tests; nil: the engine's

	// Guarded by the engine's links.
	slot       *slot
	open       int  // records not settled
	sending    bool // Send has not returned
	dead       bool // its link is over: what is settled from now on is not heard
	prev, next *Batch
	answer     *Outcome      // Sync: what became of the one record
	answered   chan struct{} // Sync: closed with answer
}

// NewBatch makes a batch without an engine, for tests of links. Every call of Settle is passed on to settle.
func NewBatch(data [][]byte, settle func(from, to int, o Outcome)) *Batch {
	b := &Batch{settle: settle}
	for i, d := range data {
		b.recs = append(b.recs, &Rec{data: d, seq: uint64(i + 1)})
	}
	return b
}

// Len is the number of records.
func (b *Batch) Len() int { return len(b.recs) }

// At returns record i.
func (b *Batch) At(i int) *Rec { return b.recs[i] }

// Settle says what became of the records [from, to). It may be called from any goroutine, for any ranges in any order; a record
// that is settled already, or was taken back because its link ended, is passed over.
func (b *Batch) Settle(from, to int, o Outcome) {
	if b.settle != nil {
		b.settle(from, to, o)
		return
	}
	b.slot.route.eng.settle(b, from, to, o)
}
