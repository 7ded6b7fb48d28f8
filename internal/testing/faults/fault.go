package faults

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"time"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// fault is one thing that goes wrong, a row of the table.
type fault struct {
	name  string
	usual string // what the user sees of it, unless [Suite.Sees] has something else: the reason of netfail, or [Works]

	refused bool                                   // nobody listens any more
	conn    func(c net.Conn, over <-chan struct{}) // has each new connection to itself, before TLS
	flaw    func(*x509.Certificate)                // of the server's certificate
	unknown bool                                   // nobody trusts who signed the certificate
	oldTLS  bool                                   // the server speaks TLS 1.0 only
	answer  func(*exchange)                        // in place of the server
	once    bool                                   // it befalls the first answer only

	wire      bool // decided by the HTTP client, before anybody looks at an answer
	refusal   bool // the service says that it has no such key for this caller
	large     bool // much more is sent than may be kept
	stays     bool // nothing may be sent to another origin
	late      bool // nothing but the client's patience ends it
	cancelled bool // the caller gives up, and that is what it is told
}

// exchange is one request and what becomes of it.
type exchange struct {
	front   *Front
	w       http.ResponseWriter
	r       *http.Request
	request Request
}

// Faults of connections.

func resetAtOnce(c net.Conn, _ <-chan struct{}) { reset(c) }

// mute takes connections and says nothing.
func mute(c net.Conn, over <-chan struct{}) {
	defer c.Close()
	<-over
}

// notTLS is a server of plain HTTP at the port.
func notTLS(c net.Conn, _ <-chan struct{}) {
	defer c.Close()
	hello(c)
	_, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n400 Bad Request")
}

// brokenHandshake ends the connection in the middle of the handshake.
func brokenHandshake(c net.Conn, _ <-chan struct{}) {
	hello(c)
	c.Close()
}

func hello(c net.Conn) {
	_ = c.SetReadDeadline(time.Now().Add(patience))
	_, _ = c.Read(make([]byte, 64<<10))
}

// Faults of answers.

func answer(h http.HandlerFunc) func(*exchange) { return func(x *exchange) { h(x.w, x.r) } }

// status is a status with these headers, in pairs. The body, and a header,
// repeat what was sent: servers do.
func status(code int, headers ...string) func(*exchange) {
	return func(x *exchange) {
		for i := 0; i+1 < len(headers); i += 2 {
			x.w.Header().Set(headers[i], headers[i+1])
		}
		x.w.Header().Set("Content-Type", "text/plain")
		x.w.Header().Set("X-Echo", strings.Map(oneLine, x.request.Text))
		x.w.WriteHeader(code)
		_, _ = io.WriteString(x.w, "you sent \x1b[2J"+x.request.Text)
	}
}

func oneLine(r rune) rune {
	if r < ' ' || r > '~' {
		return ' '
	}
	return r
}

// stall is no answer. The connection breaks in the end: a handler that returned
// would answer after all, and a client that is just giving up could see it.
func stall(x *exchange) {
	x.front.wait(x.r.Context())
	panic(http.ErrAbortHandler)
}

// stallMidBody stops in the middle, with the connection open.
func stallMidBody(x *exchange) {
	body := x.announce(true)
	_, _ = x.w.Write(body[:len(body)/2])
	_ = http.NewResponseController(x.w).Flush()
	x.front.wait(x.r.Context())
}

// drip is an answer that comes a byte at a time.
func drip(x *exchange) {
	for _, b := range x.announce(true) {
		if _, err := x.w.Write([]byte{b}); err != nil || http.NewResponseController(x.w).Flush() != nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// closed ends the connection in the place of an answer.
func closed(*exchange) { panic(http.ErrAbortHandler) }

// resetMidBody resets the connection in the middle of the answer.
func resetMidBody(x *exchange) {
	conn, body := x.begin()
	_, _ = fmt.Fprintf(conn, "Content-Length: %d\r\n\r\n%s", len(body), body[:len(body)/2])
	time.Sleep(20 * time.Millisecond) // what was sent arrives first
	reset(conn)
}

// short is an answer without an announced length that ends in the middle.
func short(x *exchange) {
	conn, body := x.begin()
	defer conn.Close()
	half := body[:len(body)/2]
	_, _ = fmt.Fprintf(conn, "Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", len(half), half)
}

// wrongLength is a whole answer that announces another length.
func wrongLength(announced func(int) int) func(*exchange) {
	return func(x *exchange) {
		conn, body := x.begin()
		defer conn.Close()
		_, _ = fmt.Fprintf(conn, "Content-Length: %d\r\n\r\n%s", announced(len(body)), body)
	}
}

// endless is the answer, and then zeros for ever.
func endless(x *exchange) {
	if _, err := x.w.Write(x.announce(false)); err == nil {
		x.repeat(x.w, make([]byte, 64<<10))
	}
}

// endlessHeader is an answer whose header does not end. Its fields are long: many
// short ones take a slow machine a minute.
func endlessHeader(x *exchange) {
	conn := x.raw()
	defer conn.Close()
	_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
	x.repeat(conn, []byte("X-Field: "+strings.Repeat("x", 10_000)+"\r\n"))
}

// repeat writes the same for ever.
func (x *exchange) repeat(w io.Writer, what []byte) {
	for x.r.Context().Err() == nil && !isClosed(x.front.done) {
		if _, err := w.Write(what); err != nil {
			return
		}
	}
}

// nested is JSON that is deeper than any parser should follow it.
func nested(x *exchange) {
	x.announce(false)
	_, _ = x.w.Write(bytes.Repeat([]byte{'['}, 1_000_000))
}

// elsewhere refuses, and names another host in each way that clients know.
func elsewhere(code int) func(*exchange) {
	return func(x *exchange) {
		other := x.front.Other
		h := x.w.Header()
		h.Add("WWW-Authenticate", `Bearer realm="`+other+`/token", authorization_uri="`+other+`/token", resource_id="`+other+`"`)
		h.Add("WWW-Authenticate", `Basic realm="`+other+`"`)
		h.Set("X-Amz-Bucket-Region", "elsewhere-1")
		h.Set("Link", "<"+other+`>; rel="next"`)
		h.Set("Refresh", "0; url="+other)
		h.Set("Content-Type", "application/xml")
		if code/100 != 3 { // where it would be a redirect
			h.Set("Location", other+x.r.URL.Path)
		}
		x.w.WriteHeader(code)
		host := strings.TrimPrefix(other, "https://")
		_, _ = fmt.Fprintf(x.w, "<Error><Code>PermanentRedirect</Code><Endpoint>%s</Endpoint></Error>", host)
	}
}

// What a bomb comes to, in bytes, and a member of its gzip file, of which there
// may be many.
const (
	bombSize = 1 << 30
	bombPart = 32 << 20
)

// bomb is an answer that unpacks to bombSize bytes, whether gzip was asked for
// or not.
func bomb() func(*exchange) {
	part := nettest.Gzip(make([]byte, bombPart))
	return func(x *exchange) {
		x.w.Header().Set("Content-Encoding", "gzip")
		x.announce(false)
		for range bombSize / bombPart {
			if _, err := x.w.Write(part); err != nil {
				return
			}
		}
	}
}

// emptyPacks is a gzip file without end that unpacks to nothing.
func emptyPacks() func(*exchange) {
	many := bytes.Repeat(nettest.Gzip(nil), 1000)
	return func(x *exchange) {
		x.w.Header().Set("Content-Encoding", "gzip")
		x.announce(false)
		x.repeat(x.w, many)
	}
}

// malformed is an answer in no protocol, or with what was sent where parsers
// complain of it.
func malformed(name, begin string) fault {
	return fault{name: name, usual: netfail.Invalid, wire: true, answer: func(x *exchange) {
		conn := x.raw()
		defer conn.Close()
		echo := strings.ReplaceAll(strings.Map(oneLine, x.request.Text), " ", "")
		_, _ = io.WriteString(conn, begin+strings.ReplaceAll(echo, ":", "")+"\r\n\r\n")
	}}
}

// garbage is an answer with status 200 that is that of another service, and
// repeats what was sent.
func garbage(x *exchange) {
	x.w.Header().Set("Content-Type", "text/html")
	_, _ = io.WriteString(x.w, "<html>\x1b[2Jyou sent "+x.request.Text)
}

func redirectLoop(x *exchange) {
	http.Redirect(x.w, x.r, x.r.URL.RequestURI(), http.StatusTemporaryRedirect)
}

// redirectAway redirects to the same path of another origin. Of the query it
// keeps what git says, and no secret.
func redirectAway(x *exchange) {
	to := x.front.Other + x.r.URL.Path
	if service := x.r.URL.Query().Get("service"); service != "" {
		to += "?service=" + service
	}
	http.Redirect(x.w, x.r, to, http.StatusTemporaryRedirect)
}

// downgrade redirects to plain HTTP at another origin, where nobody answers it.
func downgrade(x *exchange) {
	to := strings.Replace(x.front.Other, "https:", "http:", 1)
	http.Redirect(x.w, x.r, to+x.r.URL.RequestURI(), http.StatusTemporaryRedirect)
}

// faithful is what the server answers, without the headers about its length.
func (x *exchange) faithful() (int, http.Header, []byte) {
	answer := httptest.NewRecorder()
	x.front.behind.ServeHTTP(answer, x.r)
	for _, name := range []string{"Content-Length", "Transfer-Encoding", "Trailer"} {
		answer.Header().Del(name)
	}
	return answer.Code, answer.Header(), answer.Body.Bytes()
}

// announce sends the head of the true answer, with its length or without, and
// returns its body.
func (x *exchange) announce(length bool) []byte {
	status, header, body := x.faithful()
	maps.Copy(x.w.Header(), header)
	if length {
		x.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	}
	x.w.WriteHeader(status)
	return body
}

// raw is the connection, to write to it what no server would.
func (x *exchange) raw() net.Conn {
	conn, _, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // which the test sees as a fault that is missing
	}
	return conn
}

// begin sends the head of the true answer but for its length, and returns its
// body, to be sent as no server would.
func (x *exchange) begin() (net.Conn, []byte) {
	status, header, body := x.faithful()
	conn := x.raw()
	_, _ = fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\n", status, http.StatusText(status))
	_ = header.Write(conn)
	return conn, body
}

// reset closes a connection so that the client gets a reset.
func reset(c net.Conn) {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	c.Close()
}
