package pg

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
)

// fake speaks the protocol as far as it is told to, and as badly.
type fake struct {
	net.Listener
	certificate tls.Certificate
	state       string

	mu    sync.Mutex
	fault fault    // nil for none
	heard []string // what clients sent
	over  chan struct{}

	stalls chan struct{} // gets something when a fault stalls, if there is room
}

// fault has a connection to itself. What it returns is said in place of the
// next step.
type fault func(s *session)

// session is one connection.
type session struct {
	net.Conn
	fake    *fake
	backend *pgproto3.Backend
}

func newFake(t *testing.T, certificate tls.Certificate, state string) *fake {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{Listener: l, certificate: certificate, state: state, over: make(chan struct{}), stalls: make(chan struct{}, 1)}
	t.Cleanup(func() { f.set(nil); l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				s := &session{Conn: c, fake: f}
				if do := f.current(); do != nil {
					do(s)
				} else {
					s.serve()
				}
			}()
		}
	}()
	return f
}

func (f *fake) port() string {
	_, port, _ := net.SplitHostPort(f.Addr().String())
	return port
}

// set begins a fault, or ends one with nil: what stalls gives up.
func (f *fake) set(do fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.over)
	f.over = make(chan struct{})
	f.fault = do
}

func (f *fake) current() fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fault
}

func (f *fake) hear(m pgproto3.FrontendMessage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.heard = append(f.heard, describe(m))
}

// describe is a message as text: the backend uses it again for the next.
func describe(m pgproto3.FrontendMessage) string {
	switch m := m.(type) {
	case *pgproto3.Parse:
		return "Parse " + m.Query
	case *pgproto3.Bind:
		return fmt.Sprintf("Bind %q", m.Parameters)
	case *pgproto3.StartupMessage:
		return fmt.Sprintf("StartupMessage %v", m.Parameters)
	}
	return fmt.Sprintf("%s %q", strings.TrimPrefix(fmt.Sprintf("%T", m), "*pgproto3."), m)
}

// said is what was heard until now.
func (f *fake) said() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.heard)
}

func (s *session) stall() {
	s.fake.mu.Lock()
	over := s.fake.over
	s.fake.mu.Unlock()
	select {
	case s.fake.stalls <- struct{}{}:
	default:
	}
	<-over
}

func (s *session) reset() {
	c := s.Conn
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	_ = c.(*net.TCPConn).SetLinger(0)
	c.Close()
}

// start gets to where the client has said who it is. It reports false for what
// is not the beginning of a session.
func (s *session) start() bool {
	_ = s.SetDeadline(time.Now().Add(2 * time.Minute))
	s.backend = pgproto3.NewBackend(s, s)
	m, err := s.backend.ReceiveStartupMessage()
	if err != nil {
		return false
	}
	if _, ok := m.(*pgproto3.SSLRequest); ok {
		if s.fake.certificate.Certificate == nil {
			_, _ = io.WriteString(s, "N")
			return false
		}
		_, _ = io.WriteString(s, "S")
		s.Conn = tls.Server(s.Conn, &tls.Config{Certificates: []tls.Certificate{s.fake.certificate}})
		s.backend = pgproto3.NewBackend(s, s)
		if m, err = s.backend.ReceiveStartupMessage(); err != nil {
			return false
		}
	}
	s.fake.hear(m)
	_, ok := m.(*pgproto3.StartupMessage)
	return ok
}

func (s *session) say(messages ...pgproto3.BackendMessage) error {
	for _, m := range messages {
		s.backend.Send(m)
	}
	return s.backend.Flush()
}

func (s *session) next() pgproto3.FrontendMessage {
	m, err := s.backend.Receive()
	if err != nil {
		return nil
	}
	s.fake.hear(m)
	return m
}

// login lets anyone in.
func (s *session) login() bool {
	return s.start() && s.say(&pgproto3.AuthenticationOk{}, &pgproto3.BackendKeyData{ProcessID: 1, SecretKey: []byte{0, 0, 0, 1}},
		ready) == nil
}

var ready = &pgproto3.ReadyForQuery{TxStatus: 'I'}

// asked gets to where the client waits for the rows.
func (s *session) asked() bool {
	if !s.login() {
		return false
	}
	for {
		switch s.next().(type) {
		case nil:
			return false
		case *pgproto3.Sync:
			return s.say(plain("BEGIN")...) == nil
		}
	}
}

func plain(tag string) []pgproto3.BackendMessage {
	return []pgproto3.BackendMessage{&pgproto3.ParseComplete{}, &pgproto3.BindComplete{}, &pgproto3.NoData{},
		&pgproto3.CommandComplete{CommandTag: []byte(tag)}}
}

// columns announces rows of two columns, the second of type oid.
func columns(oid uint32) []pgproto3.BackendMessage {
	return []pgproto3.BackendMessage{&pgproto3.ParseComplete{}, &pgproto3.BindComplete{},
		&pgproto3.RowDescription{Fields: []pgproto3.FieldDescription{
			{Name: []byte("octet_length"), DataTypeOID: 23}, {Name: []byte("data"), DataTypeOID: oid},
		}}}
}

func (s *session) row() *pgproto3.DataRow {
	return &pgproto3.DataRow{Values: [][]byte{[]byte(strconv.Itoa(len(s.fake.state))), []byte(s.fake.state)}}
}

var selected = &pgproto3.CommandComplete{CommandTag: []byte("SELECT 1")}

// serve is without a fault.
func (s *session) serve() {
	if !s.asked() {
		return
	}
	_ = s.say(columns(25)...)
	_ = s.say(s.row(), selected)
	_ = s.say(plain("COMMIT")...)
	_ = s.say(ready)
	s.next()
}
