package stream

import (
	"context"
	"crypto/tls"
	"sync"
	"time"

	"github.com/wholelog/wholelog/delivery"
	"github.com/wholelog/wholelog/internal/ship"
)

// verdictTime is how long a server may take to judge our certificate, beyond two handshakes: then it counts as accepted. When the
// verdict comes later all the same, what was acknowledged meanwhile is Unconfirmed.
const verdictTime = 250 * time.Millisecond

// encrypt shakes hands. asked says that the server judges us when the handshake is over for us: in TLS 1.3 a client that was asked for
// a certificate learns afterwards that it was refused, and what it wrote meanwhile is lost though it was acknowledged.
func encrypt(ctx context.Context, w *wire, c *tls.Config) (conn *tls.Conn, asked bool, err error) {
	defer guard(&err)
	c = c.Clone()
	choose := c.GetClientCertificate
	c.GetClientCertificate = func(request *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		asked = true
		if choose != nil {
			return choose(request)
		}
		for i := range c.Certificates { // as without this function
			if request.SupportsCertificate(&c.Certificates[i]) == nil {
				return &c.Certificates[i], nil
			}
		}
		return new(tls.Certificate), nil
	}
	conn = tls.Client(w, c)
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, false, handshakeFault(err)
	}
	return conn, asked && conn.ConnectionState().Version >= tls.VersionTLS13, nil
}

// answer notices the first bytes after the handshake: session tickets from a server that is content, or an alert. It is told of the
// reads below TLS. When TLS reads again, it had nothing against the bytes it got. A nil answer notices nothing.
type answer struct {
	once sync.Once
	some bool
	good chan struct{} // closed when the bytes were good
}

func (a *answer) reads() {
	if a != nil && a.some {
		a.once.Do(func() { close(a.good) })
	}
}

func (a *answer) got(n int) {
	if a != nil && n > 0 {
		a.some = true
	}
}

// refused says whether err, with which the stream ended, is an alert and the first thing that the server said after the handshake.
func (a *answer) refused(err error) bool {
	if a == nil || ship.CauseOf(err) != delivery.CauseTLS {
		return false
	}
	select {
	case <-a.good:
		return false
	default:
		return true
	}
}

// judged waits for the server's verdict on our certificate: nil when it is content, or says nothing in time.
func (l *link) judged(ctx context.Context, within time.Duration) error {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-l.gone:
		return handshakeFault(l.Err())
	case <-ctx.Done():
		return handshakeFault(ctx.Err())
	case <-l.wire.answer.good:
	case <-timer.C:
	}
	return nil
}
