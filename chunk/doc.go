// Package chunk splits GELF payloads into UDP datagrams and puts them together again.
//
// A payload that fits into one datagram travels as it is. A longer one, compressed or not, is cut into 2 to [MaxChunks]
// chunks. Each starts with a header of [HeaderSize] bytes: the magic 1e 0f, the message id (8 opaque bytes), the chunk's
// sequence number from 0, and the number of chunks.
//
// The format has no acknowledgement and no second chance. The receiver forgets a message [Validity] after its first chunk,
// and it knows a message by the id alone, not by the sender's address. So give every attempt to send a message a fresh id of
// 64 random bits (a retry included: all chunks again, under a new id), and send all chunks of an attempt from one socket to
// one address: behind a load balancer another address, or another source port, is another node.
//
// Package chunk is pure: bytes in, bytes out. It opens no socket and starts no goroutine.
package chunk
