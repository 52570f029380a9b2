// Package resolve finds the addresses behind a name, and says which of them are fit for use: resolvers, health checks, and the
// [Options] that tell a handler how to use what they found.
//
// A resolver says which addresses there are. Which of them gets a record is decided elsewhere, once for each record, from a
// snapshot: no record ever waits for a look-up of its own, and the order of a DNS answer means nothing.
//
// # Where addresses come from
//
//	nil, DNS    A and AAAA records of a name; the whole set, refreshed in the background
//	SRV         hosts, ports, priorities and weights
//	Static      a list of addresses and names
//	One         one address at random, for clients that are not of this module
//	Resolver    anything of your own
//
// The last good answer serves until there is a better one: a look-up that fails, or finds nothing, takes no address away.
// Options.Zone prefers the addresses of "<zone>.<host>", while one of them is usable, to those of the host.
//
// # Who is well
//
// What becomes of records tells: an address whose sends or dials fail three times in a row rests. Datagrams tell nothing of a
// receiver that is dead, so with them a [Check] belongs to every service that has something to ask:
//
//	TCPCheck     a port that accepts connections
//	HTTPCheck    a status page: Graylog's /api/system/lbstatus
//	AgentCheck   an agent that an operator runs: HAProxy's protocol, with weights, drain and maintenance
//	Check        anything of your own
//
// Health never empties the set: when no address is fit, all are used but those that their operator took out. Each handler
// judges for itself, and what it judges is one service at one address: a check of one service never takes another one down.
package resolve
