//go:build !linux

package stream

import "net"

// tune sets up a connection. There is nothing here that tells what the peer's kernel acknowledged: records count at the write.
func tune(conn net.Conn, c *Config) (queue, error) {
	if b, ok := conn.(interface{ SetWriteBuffer(bytes int) error }); ok {
		return nil, b.SetWriteBuffer(c.SendBuffer)
	}
	return nil, nil
}
