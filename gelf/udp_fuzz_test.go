package gelf

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/wholelog/wholelog/internal/datagram"
	"github.com/wholelog/wholelog/internal/ship"
)

// Whatever fails and when: every record is settled once, in order; what counts as delivered arrived whole, and what does not
// never did. Below 508 bytes there is no smaller size to learn, so a datagram that is too long costs its record.
func FuzzUDPFailures(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Add(uint64(3), uint64(4))
	f.Add(uint64(0), uint64(0)) // a record is dropped
	f.Fuzz(func(t *testing.T, seed1, seed2 uint64) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed1, seed2))
			r := newRig(t, udpConfig{chunkSize: 64 + rng.IntN(1500), flows: 1 + rng.IntN(3), packetRate: 100_000, compression: Compression(rng.IntN(4))})
			r.failWrite, r.failDial = map[int]error{}, map[int]error{}
			for range rng.IntN(10) {
				r.failWrite[1+rng.IntN(100)] = socketError([]error{errRefused, errTooLong, errBusy, errNoRoute}[rng.IntN(4)])
				r.failDial[2+rng.IntN(10)] = socketError(errNoFiles)
			}
			var records [][]byte
			for i := range 1 + rng.IntN(20) {
				records = append(records, recordOf(60+rng.IntN(4000), func(n int) string { return fmt.Sprintf("%03d", i) + prose(n-3) }))
			}
			var delivered [][]byte
			for sends := 0; len(records) > 0; sends++ {
				if sends > 100 {
					t.Fatal("no end")
				}
				r.settled = nil
				if err := r.send(t.Context(), records...); err != nil && !errors.Is(err, datagram.ErrNoFlow) {
					t.Fatal(err)
				}
				next := 0
				for _, s := range r.settled {
					if s.from != next {
						t.Fatalf("%d settled after %d", s.from, next)
					}
					next = s.to
				}
				if next != len(records) {
					t.Fatalf("%d of %d settled", next, len(records))
				}
				done := 0
				for _, s := range r.settled {
					switch s.Do {
					case ship.Delivered:
						delivered = append(delivered, records[s.from:s.to]...)
						done = s.to
					case ship.Drop:
						done = s.to
					}
				}
				records = records[done:]
			}
			i := 0
			for _, m := range r.messages(t, 65_507) {
				if m == nil {
					continue
				}
				if i == len(delivered) || !bytes.Equal(inflate(t, m), delivered[i]) {
					t.Fatalf("message %d arrives out of order, twice, or as something else", i)
				}
				i++
			}
			if i != len(delivered) {
				t.Fatalf("%d of %d arrive", i, len(delivered))
			}
		})
	})
}
