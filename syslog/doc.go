// Package syslog sends slog records to syslog receivers, as RFC 5424 or RFC 3164 messages.
//
//	h, err := syslog.NewHandler("tcp://logs.example.com:601", nil)
//	if err != nil {
//		return err // the target or an option is wrong; the network is not touched here
//	}
//	defer h.Close() // delivers what is pending, within 5 s
//	log := slog.New(h)
//
// Receivers answer nothing: what they do not understand they mangle or drop, and what they understand they may cut. So every message
// obeys the grammar to the letter, whatever a record holds, and each change is counted in [delivery.Stats].
//
// # Ways
//
// udp sends a datagram for each message, from several source ports to each address, since a load balancer sends each port to one of
// its nodes. tcp and tls keep a connection to each address for minutes, and messages take turns over all of them. unix sends datagrams
// to a local socket, or lines where the socket is a stream; one that goes and comes back is found again. Its address in Stats, Drops and
// traces is the zero AddrPort.
//
// A message counts as delivered when the kernel took its datagram, and on streams when the peer's kernel acknowledged its bytes. What
// was not acknowledged when a connection breaks is sent again elsewhere. On systems other than Linux a message counts when our own
// kernel took it; the last second's are then added to Unconfirmed. What a receiver had not read when it died is lost in any case, and
// so is over UDP what the network drops, and the share of a node that is dead as long as no [resolve.Options].Check finds it. Of a local
// socket our own kernel's word counts; what a receiver may have left unread is Unconfirmed once a message finds it gone, with datagrams
// on Linux only.
//
// # Receivers
//
// What a receiver takes it does not say, and on streams the wrong framing loses everything without a word.
//
//	rsyslog imtcp, imptcp, imudp    the defaults; MaxSize as its maxMessageSize, which is 8192 unless set
//	syslog-ng syslog()              the defaults
//	syslog-ng network()             Framing Newline with tcp and tls, and Format RFC3164; or RFC 5424 and flags(syslog-protocol)
//	HAProxy log-forward             the defaults, and len 8192 in its log lines; ConnAge -1 where it keeps a session for each connection
//	                                that ended, as 2.6 does, and no TCPCheck of its port
//	/dev/log                        Format RFC3164; or RFC 5424 and flags(syslog-protocol) of syslog-ng, useSpecialParser="off" of
//	                                rsyslog's imuxsock
//
// # What a record becomes
//
//	slog          RFC 5424
//	time          TIMESTAMP, with microseconds, in the record's zone; a record without a time gets that of the call
//	level         severity in PRI: below Info 7, Info 6, Info+2 5, Warn 4, Error 3, Error+4 2, Error+8 1, Error+12 and above 0
//	message       MSG
//	attribute k   k in the element attrs@32473 of STRUCTURED-DATA; in a group g, g.k
//	source        source.function, source.file, source.line
//
// [Attrs] has two more ways to write attributes, both in MSG. Durations are integers in nanoseconds, times RFC 3339 with nanoseconds.
// An error is its text; a struct, map or slice is its JSON text, and a []byte that is valid UTF-8 is that text. nil and nil pointers
// are "<nil>"; functions and channels are the name of their type. A value whose method panics is "!PANIC: " and what it panicked with.
//
// # What is mended
//
// Line ends and control characters never leave as they are: receivers split messages at them, or write something else for them. In
// texts and values \n, \r and \t become these two characters, others \x1b for example, and U+0085, U+2028, U+2029 become \u0085 and so
// on. So does U+FEFF where it begins the MSG of RFC 5424, because receivers take it away there. JSON has its own escapes. These do not
// count, but the following do, as Repaired:
//
//   - invalid UTF-8 becomes U+FFFD (in the quotes of AttrsText, \xff for example, which does not count);
//   - characters that the name of a parameter cannot have become "_", and names are cut at 32 characters, outer groups first;
//   - with AttrsJSON, attributes named msg or level get an underscore at their end, and so do source with AddSource, and seq and run with
//     Sequence in RFC 3164; NaN and the infinities become strings, and a NUL \x00;
//   - a time outside the years 1 to 9998 becomes that of the call;
//   - where what ReplaceAttr makes of the time or the level cannot be read as one, the record's own time and severity stay.
//
// An attribute that is logged twice stands there twice, which RFC 5424 allows; most receivers that take messages apart keep the last.
//
// A message longer than Options.MaxSize is cut, and counts as Truncated. Its text, or the text of an attribute, then ends in
// "…[truncated n bytes]".
package syslog
