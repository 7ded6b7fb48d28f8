package web

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
)

// Traffic counts the bytes on the connections that requests with its context open.
type Traffic struct{ received, sent atomic.Int64 }

type traffic struct{}

// WithTraffic returns a context for requests, and the counter of their bytes.
func WithTraffic(ctx context.Context) (context.Context, *Traffic) {
	t := &Traffic{}
	return context.WithValue(ctx, traffic{}, t), t
}

// Bytes returns how many bytes were received and sent so far.
func (t *Traffic) Bytes() (received, sent int64) { return t.received.Load(), t.sent.Load() }

// counted returns a connection that counts its bytes if ctx has a counter.
func counted(ctx context.Context, conn net.Conn) net.Conn {
	if t, ok := ctx.Value(traffic{}).(*Traffic); ok {
		return countedConn{conn, t}
	}
	return conn
}

type countedConn struct {
	net.Conn
	*Traffic
}

func (c countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.received.Add(int64(n))
	return n, err
}

func (c countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.sent.Add(int64(n))
	return n, err
}

// greeting is a connection that returns [netfail.ErrHungUp] if the server closes it instead of answering the
// first TLS message. The error of net/http would be the same as for an HTTP request without an answer.
type greeting struct {
	net.Conn
	waits atomic.Bool // whether the first TLS message has no answer yet
}

func (c *greeting) Write(p []byte) (int, error) {
	c.waits.Store(bytes.HasPrefix(p, []byte{22, 3, 1})) // a handshake record, of the version that first messages have
	return c.Conn.Write(p)
}

func (c *greeting) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.waits.Store(false)
	} else if errors.Is(err, io.EOF) && c.waits.Load() {
		err = netfail.ErrHungUp
	}
	return n, err
}
