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

// fault is one thing that can go wrong, a row in the table.
type fault struct {
	name  string
	usual string // the error users see, unless [Suite.Sees] has another one: a reason from netfail, or [Works]

	refused bool                                   // the server no longer listens
	conn    func(c net.Conn, over <-chan struct{}) // gets exclusive use of each new connection, before TLS
	flaw    func(*x509.Certificate)                // changes the server's certificate
	unknown bool                                   // the certificate is from an untrusted authority
	oldTLS  bool                                   // the server supports only TLS 1.0
	answer  func(*exchange)                        // responds instead of the server
	once    bool                                   // affects only the first response

	wire      bool // decided by the HTTP client, before our code sees a response
	refusal   bool // the service says that it has no such key for this caller
	large     bool // much more is sent than may be kept
	stays     bool // nothing may be sent to another origin
	late      bool // ended only by the client's time limit
	cancelled bool // the caller cancels the request, and the error must say so
}

// exchange is one request and its response.
type exchange struct {
	front   *Front
	w       http.ResponseWriter
	r       *http.Request
	request Request
}

// The following functions are connection faults.

func resetAtOnce(c net.Conn, _ <-chan struct{}) { reset(c) }

// mute accepts connections and sends nothing.
func mute(c net.Conn, over <-chan struct{}) {
	defer c.Close()
	<-over
}

// notTLS imitates a plain HTTP server on the port.
func notTLS(c net.Conn, _ <-chan struct{}) {
	defer c.Close()
	hello(c)
	_, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n400 Bad Request")
}

// brokenHandshake closes the connection in the middle of the handshake.
func brokenHandshake(c net.Conn, _ <-chan struct{}) {
	hello(c)
	c.Close()
}

func hello(c net.Conn) {
	_ = c.SetReadDeadline(time.Now().Add(patience))
	_, _ = c.Read(make([]byte, 64<<10))
}

// The following functions are response faults.

func answer(h http.HandlerFunc) func(*exchange) { return func(x *exchange) { h(x.w, x.r) } }

// status responds with a status code and headers, given in pairs. The body and one header repeat the request, as some
// servers do.
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

// stall sends no response. In the end, it aborts the connection: if the handler returned, it would send a response,
// which a client that is just giving up could still see.
func stall(x *exchange) {
	x.front.wait(x.r.Context())
	panic(http.ErrAbortHandler)
}

// stallMidBody stops in the middle of the body and leaves the connection open.
func stallMidBody(x *exchange) {
	body := x.announce(true)
	_, _ = x.w.Write(body[:len(body)/2])
	_ = http.NewResponseController(x.w).Flush()
	x.front.wait(x.r.Context())
}

// drip sends the response one byte at a time.
func drip(x *exchange) {
	for _, b := range x.announce(true) {
		if _, err := x.w.Write([]byte{b}); err != nil || http.NewResponseController(x.w).Flush() != nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// closed closes the connection instead of sending a response.
func closed(*exchange) { panic(http.ErrAbortHandler) }

// resetMidBody resets the connection in the middle of the response.
func resetMidBody(x *exchange) {
	conn, body := x.begin()
	_, _ = fmt.Fprintf(conn, "Content-Length: %d\r\n\r\n%s", len(body), body[:len(body)/2])
	time.Sleep(20 * time.Millisecond) // lets the sent data arrive first
	reset(conn)
}

// short sends a response of unannounced length that stops in the middle.
func short(x *exchange) {
	conn, body := x.begin()
	defer conn.Close()
	half := body[:len(body)/2]
	_, _ = fmt.Fprintf(conn, "Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", len(half), half)
}

// wrongLength sends a complete response with a wrong Content-Length.
func wrongLength(announced func(int) int) func(*exchange) {
	return func(x *exchange) {
		conn, body := x.begin()
		defer conn.Close()
		_, _ = fmt.Fprintf(conn, "Content-Length: %d\r\n\r\n%s", announced(len(body)), body)
	}
}

// endless sends the response, followed by an endless stream of zeros.
func endless(x *exchange) {
	if _, err := x.w.Write(x.announce(false)); err == nil {
		x.repeat(x.w, make([]byte, 64<<10))
	}
}

// endlessHeader sends a response header that never ends. The header fields are long, because many short ones take a
// minute on a slow machine.
func endlessHeader(x *exchange) {
	conn := x.raw()
	defer conn.Close()
	_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
	x.repeat(conn, []byte("X-Field: "+strings.Repeat("x", 10_000)+"\r\n"))
}

// repeat writes the same data again and again.
func (x *exchange) repeat(w io.Writer, what []byte) {
	for x.r.Context().Err() == nil && !isClosed(x.front.done) {
		if _, err := w.Write(what); err != nil {
			return
		}
	}
}

// nested sends JSON that is nested deeper than any parser should follow.
func nested(x *exchange) {
	x.announce(false)
	_, _ = x.w.Write(bytes.Repeat([]byte{'['}, 1_000_000))
}

// elsewhere refuses the request, and names another host in every way that clients know.
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
		if code/100 != 3 { // with a 3xx status, it would be a redirect
			h.Set("Location", other+x.r.URL.Path)
		}
		x.w.WriteHeader(code)
		host := strings.TrimPrefix(other, "https://")
		_, _ = fmt.Fprintf(x.w, "<Error><Code>PermanentRedirect</Code><Endpoint>%s</Endpoint></Error>", host)
	}
}

// These are the unpacked size of a gzip bomb, and the unpacked size of each of its many gzip members, in bytes.
const (
	bombSize = 1 << 30
	bombPart = 32 << 20
)

// bomb sends a response that unpacks to bombSize bytes. It uses gzip even if the client did not ask for it.
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

// emptyPacks sends an endless gzip file that unpacks to nothing.
func emptyPacks() func(*exchange) {
	many := bytes.Repeat(nettest.Gzip(nil), 1000)
	return func(x *exchange) {
		x.w.Header().Set("Content-Encoding", "gzip")
		x.announce(false)
		x.repeat(x.w, many)
	}
}

// malformed sends a response that is not valid HTTP. The response repeats the request in a place that parsers quote in
// their errors.
func malformed(name, begin string) fault {
	return fault{name: name, usual: netfail.Invalid, wire: true, answer: func(x *exchange) {
		conn := x.raw()
		defer conn.Close()
		echo := strings.ReplaceAll(strings.Map(oneLine, x.request.Text), " ", "")
		_, _ = io.WriteString(conn, begin+strings.ReplaceAll(echo, ":", "")+"\r\n\r\n")
	}}
}

// garbage sends the response of a different service, with status 200. The response repeats the request.
func garbage(x *exchange) {
	x.w.Header().Set("Content-Type", "text/html")
	_, _ = io.WriteString(x.w, "<html>\x1b[2Jyou sent "+x.request.Text)
}

func redirectLoop(x *exchange) {
	http.Redirect(x.w, x.r, x.r.URL.RequestURI(), http.StatusTemporaryRedirect)
}

// redirectAway redirects to the same path at another origin. Of the query, it keeps only the git service name, so no
// secret.
func redirectAway(x *exchange) {
	to := x.front.Other + x.r.URL.Path
	if service := x.r.URL.Query().Get("service"); service != "" {
		to += "?service=" + service
	}
	http.Redirect(x.w, x.r, to, http.StatusTemporaryRedirect)
}

// downgrade redirects to plain HTTP at another origin, where no server answers it.
func downgrade(x *exchange) {
	to := strings.Replace(x.front.Other, "https:", "http:", 1)
	http.Redirect(x.w, x.r, to+x.r.URL.RequestURI(), http.StatusTemporaryRedirect)
}

// faithful returns the server's response, without the headers about its length.
func (x *exchange) faithful() (int, http.Header, []byte) {
	answer := httptest.NewRecorder()
	x.front.behind.ServeHTTP(answer, x.r)
	for _, name := range []string{"Content-Length", "Transfer-Encoding", "Trailer"} {
		answer.Header().Del(name)
	}
	return answer.Code, answer.Header(), answer.Body.Bytes()
}

// announce sends the header of the true response, with or without its length, and returns the body.
func (x *exchange) announce(length bool) []byte {
	status, header, body := x.faithful()
	maps.Copy(x.w.Header(), header)
	if length {
		x.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	}
	x.w.WriteHeader(status)
	return body
}

// raw returns the connection, for writing data that no server would send.
func (x *exchange) raw() net.Conn {
	conn, _, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // the test reports this as a fault that did not begin
	}
	return conn
}

// begin sends the real response header without its Content-Length. It returns the connection and the body, so that the
// caller can send the body wrongly.
func (x *exchange) begin() (net.Conn, []byte) {
	status, header, body := x.faithful()
	conn := x.raw()
	_, _ = fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\n", status, http.StatusText(status))
	_ = header.Write(conn)
	return conn, body
}

// reset closes a connection in such a way that the client sees a reset.
func reset(c net.Conn) {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	c.Close()
}
