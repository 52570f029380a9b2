// Package gelf sends slog records to Graylog, in its own format GELF 1.1.
//
//	h, err := gelf.NewHandler("udp://graylog.example.com:12201", nil)
//	if err != nil {
//		return err // the target or an option is wrong; the network is not touched here
//	}
//	defer h.Close() // delivers what is pending, within 5 s
//	log := slog.New(h)
//
// Log calls encode the record and hand it over; they wait for nothing but room in the queue. What becomes of records is in
// [Handler.Stats] and told to the hooks of [delivery.Options]; package delivery says what may happen on the way.
//
// # Over UDP
//
// A message that does not fit one datagram is split into chunks, and Graylog puts them together again only if all of them
// reach one node within five seconds. So the destination is chosen once per message: all its chunks leave from one socket to
// one address, at a pace that a receive buffer takes. Messages, not datagrams, spread over all addresses of the target, and over
// several source ports towards each, because a load balancer sends each source port to one of its nodes.
//
// A message counts as delivered when the kernel took its last datagram. What happens after that nobody tells: packets that the
// network drops, a receive buffer that runs over, a node that is dead. [resolve.Options].Check finds the last of these.
//
// Never more than 128 chunks leave, for Graylog drops a message that has more. A longer one takes Options.Fallback, or is up to
// Options.Oversize.
//
// # Over TCP and TLS
//
// A connection to each address, which lives for minutes; messages take turns over all of them. Each is a frame with NUL behind it, of
// at most 2 MiB, not compressed. On Linux a message counts as delivered when the peer's kernel acknowledged its bytes, and what was
// not acknowledged when a connection breaks is sent again elsewhere. On other systems it counts when our own kernel took it; the last
// second's are then added to Unconfirmed. What a receiver had not read when it died is lost in both cases.
//
// Over TLS the certificate must be for the target's host, or for the ServerName of Options.TLSConfig, and nothing is sent before it
// was verified.
//
// # Over HTTP
//
// http and https send a POST request for each message, or with Options.Bulk for several. Requests take turns over all addresses of the
// target, each by connections of its own that keep the target's name for Host and TLS; an HTTP proxy of the environment is not used.
// Graylog answers 202 before it decodes, so a message counts as delivered when it was received. What an answer means:
//
//	2xx                              delivered
//	413                              sent again in halves; a message alone as gzip, or cut, and later ones like it from the start
//	401, 403, 407                    kept, told by OnError, asked again every few seconds until the credentials are right
//	404, 405, 410, 421, redirects    the same: the URL is wrong. Redirects are not followed
//	429, 503, 408, 425               kept; another address takes it, this one rests for as long as Retry-After says, a minute at most
//	other 5xx, no answer             sent again, to another address first, until Delivery.Tries is used up: duplicates are possible
//	other 4xx                        that message is dropped as rejected; from several in one request it is found by halves
//
// A request has at most 64 KiB. A longer message leaves as gzip, which the input finds out by itself unless it has bulk receiving on;
// what stays too long is up to Options.Oversize.
//
// # What a record becomes
//
//	slog          GELF
//	time          timestamp, seconds with milliseconds; left out when zero, or outside 1970…9999
//	level         level: below Info 7, Info 6, Info+2 5, Warn 4, Error 3, Error+4 2, Error+8 1, Error+12 and above 0
//	message       short_message is the first line that is not blank; full_message is all of it, when there is more
//	attribute k   _k; in a group g, _g.k
//	source        _source_file, _source_line, _source_function
//
// Integers and floats are numbers, durations integers in nanoseconds, times RFC 3339 with nanoseconds. An error is its text;
// a struct, map or slice is its JSON text, and a []byte that is valid UTF-8 is that text. nil and nil pointers are "<nil>";
// functions and channels are the name of their type. A value whose method panics is "!PANIC: " and what it panicked with.
//
// # What is mended
//
// Graylog does not tell, over none of the ways, what it drops because it does not like it. So a record is made such that
// all of it arrives, and each change is counted in [delivery.Stats] as Repaired:
//
//   - booleans become "true" and "false", unsigned integers above 63 bits, NaN and the infinities strings;
//   - blank strings become "-";
//   - invalid UTF-8 becomes U+FFFD;
//   - characters of names other than letters, digits, "_", "." and "-" become "_", underscores in front go, and names are cut at
//     256 bytes;
//   - the names id, message, full_message, short_message, source, host, timestamp, level, streams, truncated and those that begin
//     with gl2_ get an underscore at their end: _id_ for id;
//   - when two names are the same to Graylog, which stores _a.b and _a_b as a_b, the later one gets the ending _2, _3 and so on.
//
// A string of an attribute longer than 32 766 bytes is cut, since Graylog's index would refuse the whole message. A message that
// nothing can carry whole is cut, too, if Options.Oversize does not say otherwise. Then _truncated holds the number of bytes
// cut, and the record counts as Truncated.
package gelf
