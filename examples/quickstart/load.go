package main

import "github.com/wholelog/wholelog/internal/yardstick"

// chunkSize is wholelog's default, and the control's: the smallest IPv6 packet less its headers.
const chunkSize = 1232

// longestUDP is the longest text of the load that 128 datagrams of chunkSize hold after gzip.
const longestUDP = 300_000

// batch says how many messages of one size go out; multiples of three, the number of nodes, show an equal spread at a glance.
// The sizes go up by tens, from what fits a datagram many times over to what needs about 75 of them.
type batch struct{ size, count int }

// load is what is sent both ways and to a real server. The last one fits no 128 datagrams: wholelog cuts it and says so.
func load() []batch {
	return []batch{{5, 6}, {50, 6}, {500, 6}, {5_000, 6}, {50_000, 6}, {longestUDP, 3}, {2_000_000, 1}}
}

// message is one of those that go out both ways. Its text can be made again from size and number alone, so that what a node
// received is compared with what was logged, character by character.
type message struct {
	size   int // characters of text, all ASCII
	number int // from 0, among those of the same size
}

func (m message) text() string { return yardstick.Text(m.size, uint64(m.number)) }
