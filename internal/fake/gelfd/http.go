package gelfd

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	maxBody  = 65536            // of one request, by default, after inflating by Content-Encoding
	idleTime = 60 * time.Second // after which a connection without reads is closed
)

// HTTPOptions of an [HTTPServer]. The zero value is a new GELF HTTP input of Graylog's.
type HTTPOptions struct {
	Options
	TLS     *tls.Config   // serve HTTPS
	Bulk    bool          // bulk receiving is on
	Auth    string        // value of Authorization to ask for; "" → none
	MaxBody int           // 0 → 65 536
	Idle    time.Duration // 0 → 60 s
	// Answer replaces the judgement of a request that was read, by number from 1; nil → as Graylog does. It may be called for
	// several at once.
	Answer func(n int, r Request) *Answer
}

// Answer is what a server says that has troubles of its own. The request's messages are not kept.
type Answer struct {
	Status int
	Header http.Header
	Body   string
	Stall  bool // say nothing until the server is closed or the client gives up
	Break  bool // close the connection in the place of an answer
}

// Request is a request that was read.
type Request struct {
	Conn     int // by number from 1, in the order in which connections were accepted
	From     netip.AddrPort
	Method   string
	URI      string
	Host     string
	Proto    string
	Header   http.Header
	Body     []byte
	Arrived  time.Time // all of it
	Status   int       // what was answered; 0: nothing yet
	Messages int       // taken from it at once; what a bulk decoder holds back is not among them
}

// HTTPServer receives GELF over HTTP, like one Graylog input. Its methods may be called from any goroutine.
type HTTPServer struct {
	*Server
	opts HTTPOptions
	http *http.Server
	stop chan struct{} // closed by Close: stalled requests end
	once sync.Once

	mu       sync.Mutex
	requests []Request
	conns    int
	sessions map[net.Conn]*session // of open connections
}

// ListenHTTP starts an HTTPServer on a TCP address; "" means 127.0.0.1 and any port.
func ListenHTTP(addr string, opts HTTPOptions) (*HTTPServer, error) {
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("gelfd: %w", err)
	}
	return ServeHTTP(l, opts), nil
}

// ServeHTTP starts an HTTPServer on connections that l accepts, which need not be sockets.
func ServeHTTP(l net.Listener, opts HTTPOptions) *HTTPServer {
	if opts.MaxBody == 0 {
		opts.MaxBody = maxBody
	}
	if opts.Idle == 0 {
		opts.Idle = idleTime
	}
	s := &HTTPServer{Server: newServer(opts.Options), opts: opts, stop: make(chan struct{}), sessions: make(map[net.Conn]*session)}
	if a, ok := l.Addr().(*net.TCPAddr); ok {
		s.addr = unmap(a.AddrPort())
	}
	if opts.TLS != nil {
		conf := opts.TLS.Clone()
		conf.NextProtos = []string{"http/1.1"}
		l = tls.NewListener(l, conf)
	}
	s.http = &http.Server{
		Handler:     http.HandlerFunc(s.serve),
		IdleTimeout: opts.Idle,
		ErrorLog:    log.New(io.Discard, "", 0), // a client that refuses the certificate is a test's business
		ConnContext: s.accepted,
		ConnState:   s.changed,
	}
	go func() {
		defer close(s.done)
		_ = s.http.Serve(l) // ends by Close
	}()
	return s
}

// Close ends the server and all its connections at once, as a killed process does. It may be called again.
func (s *HTTPServer) Close() error {
	s.once.Do(func() { close(s.stop) })
	err := s.http.Close()
	<-s.done
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// Requests returns the requests so far, in the order they were read.
func (s *HTTPServer) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Conns is how many connections were accepted.
func (s *HTTPServer) Conns() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns
}

// Open is how many connections are open, or not yet judged to their end.
func (s *HTTPServer) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions)
}

// session is what the server keeps of a connection.
type session struct {
	number int
	from   netip.AddrPort
	bulk   bulkDecoder
}

type sessionKey struct{}

func (s *HTTPServer) accepted(ctx context.Context, c net.Conn) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns++
	from, _ := netip.ParseAddrPort(c.RemoteAddr().String())
	session := &session{number: s.conns, from: unmap(from)}
	s.sessions[c] = session
	return context.WithValue(ctx, sessionKey{}, session)
}

// changed is told of every connection's state. What the decoder still holds of one that ends is a message, too.
func (s *HTTPServer) changed(c net.Conn, state http.ConnState) {
	if state != http.StateClosed {
		return
	}
	s.mu.Lock()
	session := s.sessions[c]
	s.mu.Unlock()
	if session != nil {
		s.all(session, session.bulk.end())
	}
	s.mu.Lock()
	delete(s.sessions, c)
	s.mu.Unlock()
}

func (s *HTTPServer) serve(w http.ResponseWriter, r *http.Request) {
	session := r.Context().Value(sessionKey{}).(*session)
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client gave up
	}
	s.mu.Lock()
	request := Request{
		Conn: session.number, From: session.from, Method: r.Method, URI: r.RequestURI, Host: r.Host, Proto: r.Proto,
		Header: r.Header.Clone(), Body: raw, Arrived: time.Now(),
	}
	s.requests = append(s.requests, request)
	n := len(s.requests)
	s.mu.Unlock()
	if s.opts.Answer != nil {
		if a := s.opts.Answer(n, request); a != nil {
			s.note(n, a.Status, 0)
			s.instead(w, r, a)
			return
		}
	}
	status := s.judge(r)
	var text []byte
	if status == http.StatusAccepted {
		if text, err = decodeContent(raw, r.Header.Get("Content-Encoding"), s.opts.MaxBody); err != nil {
			status = http.StatusRequestEntityTooLarge
			w.Header().Set("Connection", "close")
		}
	}
	messages := 0
	if status == http.StatusAccepted {
		messages = s.take(session, text)
	}
	s.note(n, status, messages)
	w.WriteHeader(status)
}

// judge is the answer to everything but the body.
func (s *HTTPServer) judge(r *http.Request) int {
	switch {
	case r.Method == http.MethodOptions:
		return http.StatusOK
	case r.Method != http.MethodPost:
		return http.StatusMethodNotAllowed
	case r.RequestURI != "/gelf": // compared byte by byte
		return http.StatusNotFound
	case s.opts.Auth != "" && r.Header.Get("Authorization") != s.opts.Auth:
		return http.StatusUnauthorized
	}
	return http.StatusAccepted
}

// instead gives an answer that a test asked for.
func (s *HTTPServer) instead(w http.ResponseWriter, r *http.Request, a *Answer) {
	switch {
	case a.Stall:
		select {
		case <-s.stop:
		case <-r.Context().Done():
		}
		panic(http.ErrAbortHandler)
	case a.Break:
		panic(http.ErrAbortHandler)
	}
	for name, values := range a.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(a.Status)
	_, _ = io.WriteString(w, a.Body) // a client that has gone does not want it
}

func (s *HTTPServer) note(n, status, messages int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests[n-1].Status, s.requests[n-1].Messages = status, messages
}

// take judges the messages of a body, after the answer was decided, and returns how many payloads there were.
func (s *HTTPServer) take(c *session, text []byte) int {
	var payloads [][]byte
	switch {
	case s.opts.Bulk:
		payloads = c.bulk.add(text)
	case len(text) > 0:
		payloads = [][]byte{text}
	}
	s.all(c, payloads)
	return len(payloads)
}

// all judges payloads as if they had come by datagrams: the codec is the same, but for compressed ones that a bulk decoder has cut.
func (s *HTTPServer) all(c *session, payloads [][]byte) {
	for _, payload := range payloads {
		if kind, _ := KindOf(payload); s.opts.Bulk && kind != Plain {
			s.Server.mu.Lock()
			s.stats.Rejected[BadType]++
			s.Server.mu.Unlock()
			continue
		}
		p := &parts{}
		p.add(c.from, len(payload))
		s.payload(payload, p, time.Now())
	}
}

// decodeContent undoes Content-Encoding; more than most bytes are an error. zstd is no encoding that the server knows, and what is not
// known stays as it is.
func decodeContent(body []byte, encoding string, most int) ([]byte, error) {
	codings := strings.Split(encoding, ",")
	slices.Reverse(codings)
	for _, c := range codings {
		var r io.Reader
		var err error
		switch strings.ToLower(strings.TrimSpace(c)) {
		case "gzip", "x-gzip":
			r, err = gzip.NewReader(bytes.NewReader(body))
		case "deflate", "x-deflate":
			r, err = zlib.NewReader(bytes.NewReader(body))
		default:
			continue
		}
		if err == nil {
			body, err = io.ReadAll(io.LimitReader(r, int64(most)+1))
		}
		if err != nil {
			return nil, err
		}
	}
	if len(body) > most {
		return nil, fmt.Errorf("gelfd: more than %d bytes", most)
	}
	return body, nil
}
