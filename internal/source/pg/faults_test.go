package pg

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/source/sourcetest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/sidebyside"
)

// What the user sees of what goes wrong on the way, with TLS and
// sslmode=verify-full unless said otherwise.
//
// Promise: Verified connections
func TestFaults(t *testing.T) {
	const (
		lost      = netfail.BrokeOff
		ended     = netfail.Ended
		untrusted = netfail.NotTrusted + ": x509: "
	)
	late, notOurs, tooMuch := errPatience.Error(), errNotPostgres.Error(), errTooMuch.Error()
	trusted := nettest.NewAuthority()
	answer := func(messages ...pgproto3.BackendMessage) fault {
		return func(s *session) {
			if s.asked() {
				_ = s.say(messages...)
				s.next()
			}
		}
	}
	rows := func(more ...pgproto3.BackendMessage) fault {
		return func(s *session) {
			if s.asked() {
				_ = s.say(columns(25)...)
				_ = s.say(more...)
				s.next()
			}
		}
	}
	halfValue := func(then func(s *session)) fault {
		return func(s *session) {
			if !s.asked() {
				return
			}
			_ = s.say(columns(25)...)
			all, _ := s.row().Encode(nil)
			_, _ = s.Write(all[:len(all)/2])
			then(s)
		}
	}
	endless := func(m pgproto3.BackendMessage, after func(*session) bool) fault {
		return func(s *session) {
			if after(s) {
				_ = s.say(columns(25)...)
				for s.say(m) == nil {
				}
			}
		}
	}
	login := func(messages ...pgproto3.BackendMessage) fault {
		return func(s *session) {
			if s.start() {
				_ = s.say(messages...)
				s.next()
				s.next()
			}
		}
	}
	withCertificate := func(a *nettest.Authority, flaw func(*x509.Certificate), max uint16) fault {
		return func(s *session) {
			_, _ = io.ReadFull(s, make([]byte, 8))
			_, _ = io.WriteString(s, "S")
			_ = tls.Server(s.Conn, &tls.Config{Certificates: []tls.Certificate{a.Issue(flaw).Pair()}, MinVersion: tls.VersionTLS10,
				MaxVersion: max}).Handshake()
		}
	}
	write := func(text string) fault {
		return func(s *session) {
			_, _ = s.Read(make([]byte, 100))
			_, _ = io.WriteString(s, text)
			_, _ = s.Read(make([]byte, 1000))
		}
	}
	length := func(kind byte, n uint32, after func(*session) bool) fault {
		return func(s *session) {
			if after(s) {
				_, _ = s.Write(binary.BigEndian.AppendUint32([]byte{kind}, n))
				s.stall()
			}
		}
	}
	start, asked := (*session).start, (*session).asked
	echo := "you sent \x1b[2J" + readerPassword
	secret := &pgproto3.ErrorResponse{Severity: "ERROR", Code: "42601", Message: echo, Detail: echo, Hint: echo, TableName: echo}
	junk := []byte(strings.Repeat("x", 60_000))

	says := sourcetest.OpenMistakes(t, "pg, faults", readerPassword)
	tests := map[string]func(*testing.T){}
	for name, c := range map[string]faultCase{
		"reset at once":                     {fault: (*session).reset, sees: ended + " | " + lost},
		"closed at once":                    {fault: func(*session) {}, sees: lost + " | " + ended},
		"closed without an answer":          {fault: func(s *session) { s.start() }, sees: lost},
		"closed after the login":            {fault: func(s *session) { s.login() }, sees: lost + " | " + ended},
		"closed in the value":               {fault: halfValue(func(*session) {}), sees: lost},
		"reset in the value":                {fault: halfValue((*session).reset), sees: ended + " | " + lost},
		"stall":                             {fault: (*session).stall, sees: late, late: true},
		"stall after the login":             {fault: func(s *session) { s.login(); s.stall() }, sees: late, late: true},
		"stall in the value":                {fault: halfValue((*session).stall), sees: late, late: true},
		"stall, cancelled":                  {fault: (*session).stall, cancelled: true},
		"stall in the handshake, cancelled": {fault: func(s *session) { write("S")(s); s.stall() }, cancelled: true},
		"stall in the login, cancelled":     {fault: func(s *session) { s.start(); s.stall() }, cancelled: true},
		"stall after the login, cancelled":  {fault: func(s *session) { s.login(); s.stall() }, cancelled: true},
		"stall in the value, cancelled":     {fault: halfValue((*session).stall), cancelled: true},
		"connect_timeout":                   {fault: (*session).stall, query: "sslmode=disable&connect_timeout=1", sees: late, late: true},
		"another service":                   {fault: write("HTTP/1.1 400 Bad Request\r\n\r\n" + echo)},
		"another service, without TLS":      {fault: write("HTTP/1.1 400 Bad Request\r\n\r\n" + echo), query: "sslmode=disable", sees: tooMuch},
		"garbage":                           {fault: write("\x00\x00\x00\x00\x00\x00\x00\x00\x00"), query: "sslmode=disable", sees: notOurs},
		"huge message in the login":         {fault: length('R', 0x7fffffff, start), sees: tooMuch},
		"huge message":                      {fault: length('D', 0x7fffffff, asked), sees: tooMuch},
		"negative length":                   {fault: length('D', 0xffffffff, asked), sees: notOurs},
		"endless notices":                   {fault: endless(&pgproto3.NoticeResponse{Message: string(junk)}, asked), sees: tooMuch},
		"endless notices in the login": {fault: endless(&pgproto3.NoticeResponse{Message: string(junk)}, start), sees: tooMuch + " | " +
			notOurs},
		"endless parameters":    {fault: endless(&pgproto3.ParameterStatus{Name: "a", Value: string(junk)}, asked), sees: tooMuch},
		"endless notifications": {fault: endless(&pgproto3.NotificationResponse{Channel: string(junk)}, asked), sees: tooMuch},
		"endless rows":          {fault: endless(&pgproto3.DataRow{Values: [][]byte{[]byte("1"), []byte("x")}}, asked)},
		"endless copy": {fault: func(s *session) {
			s.asked()
			_ = s.say(&pgproto3.CopyOutResponse{})
			endless(&pgproto3.CopyData{Data: junk}, func(*session) bool { return true })(s)
		}, sees: notOurs + " | " + tooMuch},
		"copy out of the blue": {fault: answer(&pgproto3.CopyOutResponse{}, &pgproto3.CopyDone{}, selected, ready), sees: notOurs},
		"copy to the server":   {fault: answer(&pgproto3.CopyInResponse{}, selected, ready), sees: notOurs},
		"nothing but ready":    {fault: answer(ready), sees: notOurs},
		"no columns":           {fault: answer(append(plain("SELECT 0"), ready)...), sees: notOurs},
		"bytes":                {fault: answer(append(columns(17), selected, ready)...)},
		"numbers":              {fault: answer(append(columns(23), selected, ready)...)},
		"three columns": {fault: answer(&pgproto3.RowDescription{Fields: make([]pgproto3.FieldDescription, 3)}, selected,
			ready), sees: notOurs},
		"a row without columns": {fault: rows(&pgproto3.DataRow{}, selected, ready), sees: notOurs},
		"a row without announcement": {fault: answer(&pgproto3.DataRow{Values: [][]byte{[]byte("2"), []byte("{}")}}, selected, ready),
			sees: notOurs},
		"two rows": {fault: rows(&pgproto3.DataRow{Values: make([][]byte, 2)},
			&pgproto3.DataRow{Values: make([][]byte, 2)}, selected, ready)},
		"more than it says": {fault: rows(&pgproto3.DataRow{Values: [][]byte{[]byte("2"), make([]byte, 1<<20+1)}}, selected,
			ready)},
		"error with secrets":   {fault: answer(secret, ready)},
		"error in the login":   {fault: login(secret)},
		"error without a code": {fault: answer(&pgproto3.ErrorResponse{Severity: "ERROR", Code: echo, Message: echo}, ready)},
		"error after the row": {fault: rows(&pgproto3.DataRow{Values: [][]byte{[]byte("2"), []byte("{}")}}, selected, secret,
			ready)},
		"starting up":                       {fault: login(&pgproto3.ErrorResponse{Severity: "FATAL", Code: "57P03", Message: echo})},
		"a parameter that a pooler refuses": {fault: login(&pgproto3.ErrorResponse{Severity: "FATAL", Code: "08P01", Message: echo})},
		"cancelled by the server":           {fault: answer(&pgproto3.ErrorResponse{Severity: "ERROR", Code: "57014", Message: echo}, ready)},
		"TLS refused":                       {fault: write("N")},
		"TLS refused, by default":           {fault: write("N"), query: "application_name=x"},
		"TLS refused with an error":         {fault: write("E" + echo)},
		"not TLS":                           {fault: write("SHTTP/1.1 400 Bad Request\r\n\r\n"), sees: netfail.NotTLS},
		"handshake breaks off":              {fault: write("S"), sees: lost + " | " + ended},
		"TLS 1.0": {fault: withCertificate(trusted, nil, tls.VersionTLS10),
			sees: netfail.NoHandshake + ": remote error: tls: protocol version not supported | tls: protocol version not supported"},
		"certificate expired": {fault: withCertificate(trusted, nettest.Expired, 0), sees: untrusted + "certificate has expired"},
		"certificate of another host": {fault: withCertificate(trusted, nettest.OfAnotherHost, 0), sees: untrusted +
			"certificate is valid for 127.0.0.9, not 127.0.0.1"},
		"certificate of unknown authority": {fault: withCertificate(nettest.NewAuthority(), nil, 0)},
		"verify-ca, certificate expired": {fault: withCertificate(trusted, nettest.Expired, 0), query: "sslmode=verify-ca", sees: untrusted +
			"certificate has expired"},
		"verify-ca, unknown authority": {fault: withCertificate(nettest.NewAuthority(), nil, 0), query: "sslmode=verify-ca"},
		"require with roots, unknown":  {fault: withCertificate(nettest.NewAuthority(), nil, 0), query: "sslmode=require"},
		"asks for the password in plaintext": {fault: login(&pgproto3.AuthenticationCleartextPassword{}), query: "sslmode=disable",
			host: "db.example.test"},
		"asks for the password in plaintext, with any certificate": {fault: login(&pgproto3.AuthenticationCleartextPassword{}),
			query: "sslmode=require&sslrootcert=", host: "db.example.test"},
		"asks for Kerberos":                 {fault: login(&pgproto3.AuthenticationGSS{}), sees: notOurs},
		"asks for an unknown login":         {fault: login(&pgproto3.AuthenticationSASL{AuthMechanisms: []string{echo}}), sees: notOurs},
		"SCRAM with two billion iterations": {fault: scram("i=2000000000"), sees: notOurs},
		"SCRAM without a proof":             {fault: scram("i=4096"), sees: notOurs},
		"ready before the login":            {fault: login(ready), sees: notOurs},
	} {
		tests[name] = func(t *testing.T) { c.run(t, trusted, says, name) }
	}
	sidebyside.Run(t, tests)
}

type faultCase struct {
	fault     fault
	query     string // in place of sslmode=verify-full
	host      string // in place of 127.0.0.1
	sees      string // possible parts of the error; if it is empty, the golden has the whole error
	late      bool   // nothing but the client's patience ends it
	cancelled bool   // the caller gives up, and that is what it is told
}

func (c faultCase) run(t *testing.T, trusted *nettest.Authority, says *testkit.Golden, name string) {
	f := newFake(t, trusted.Issue(nil).Pair(), `{"version": 4}`+strings.Repeat(" ", 300_000))
	if !c.late || c.query != "" {
		err := c.check(t, f, c.open(t, f, trusted, time.Minute))
		if err != nil && c.sees == "" && !c.cancelled {
			says.Error(t, name, errors.New(strings.ReplaceAll(err.Error(), f.port(), "PORT")))
		}
		return
	}
	for patience := 200 * time.Millisecond; len(f.stalls) == 0; patience *= 2 { // until it is enough for the fault to begin
		c.check(t, f, c.open(t, f, trusted, patience))
	}
}

func (c faultCase) open(t *testing.T, f *fake, trusted *nettest.Authority, patience time.Duration) source.Source {
	t.Helper()
	host, query := cmp.Or(c.host, "127.0.0.1"), cmp.Or(c.query, "sslmode=verify-full")
	ca := file(t, filepath.Join(t.TempDir(), "ca.pem"), trusted.PEM)
	r := newRun(settingsOf(attrs{"conn_str": text(fmt.Sprintf("postgres://reader:%s@%s:%s/postgres?%s&sslrootcert=%s", readerPassword, host,
		f.port(), query, ca))}).For(Kind()))
	r.patience = patience
	r.lookup = func(context.Context, string) ([]string, error) { return []string{"127.0.0.1"}, nil }
	src, err := r.open(request(t, nil, nil))
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// check reads while there is the fault, and once it is over. It returns the error of the first read.
func (c faultCase) check(t *testing.T, f *fake, src source.Source) error {
	t.Helper()
	f.set(c.fault)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if c.cancelled {
		go func() {
			<-f.stalls
			time.AfterFunc(100*time.Millisecond, cancel)
		}()
	}
	begin := time.Now()
	snap, failed := src.Fetch(ctx)
	if failed == nil {
		t.Fatalf("got %d bytes, want an error", len(snap.Data))
	}
	if took := time.Since(begin); took > 45*time.Second {
		t.Errorf("it took %s", took)
	}
	checkError(t, failed)
	switch {
	case c.cancelled:
		if !errors.Is(failed, context.Canceled) {
			t.Errorf("got %v", failed)
		}
	case c.sees != "" && !anyOf(failed.Error(), c.sees):
		t.Errorf("got %v, want it to contain %q", failed, c.sees)
	}
	if said := strings.Join(f.said(), "\n"); strings.Contains(said, readerPassword) {
		t.Errorf("the password was sent: %s", said)
	}
	f.set(nil)
	snap, err := src.Fetch(t.Context())
	for begin := time.Now(); c.late && err != nil && time.Since(begin) < time.Minute; { // the patience may have been over
		snap, err = src.Fetch(t.Context())
	}
	if err != nil || string(snap.Data) != f.state {
		t.Errorf("the fault is over, and the same source does not yield the state: %v", err)
	}
	return failed
}

// scram begins the login with these parameters, and ends it with nonsense.
func scram(parameters string) fault {
	return func(s *session) {
		if !s.start() {
			return
		}
		_ = s.say(&pgproto3.AuthenticationSASL{AuthMechanisms: []string{"SCRAM-SHA-256"}})
		_ = s.backend.SetAuthType(pgproto3.AuthTypeSASL)
		first, ok := s.next().(*pgproto3.SASLInitialResponse)
		if !ok {
			return
		}
		_, nonce, _ := strings.Cut(string(first.Data), "r=")
		_ = s.say(&pgproto3.AuthenticationSASLContinue{Data: []byte("r=" + nonce + "more,s=c2FsdA==," + parameters)})
		_ = s.backend.SetAuthType(pgproto3.AuthTypeSASLContinue)
		s.next()
		_ = s.say(&pgproto3.AuthenticationSASLFinal{Data: []byte("v=AAAA")}, &pgproto3.AuthenticationOk{}, ready)
		s.next()
	}
}

func anyOf(text, parts string) bool {
	for part := range strings.SplitSeq(parts, " | ") {
		if part != "" && strings.Contains(text, part) {
			return true
		}
	}
	return false
}

// checkError looks for what must never be in an error.
func checkError(t *testing.T, err error) {
	t.Helper()
	for _, e := range []string{err.Error(), fmt.Sprintf("%#v", err)} {
		if strings.Contains(e, "ssssss") {
			t.Errorf("the error holds a secret: %s", e)
		}
	}
	if strings.ContainsFunc(err.Error(), unicode.IsControl) {
		t.Errorf("the error holds control characters: %q", err)
	}
	if _, ok := source.IsMissing(err); ok {
		t.Errorf("got %v: a read that failed does not show that there is no state", err)
	}
}

// A state of 64 MiB is held twice at most: as it came, and as it is handed out.
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("a database takes seconds for a state of 64 MiB")
	}
	const size = 64 << 20
	x := newTable(t)
	x.Exec(t, "postgres", fmt.Sprintf("INSERT INTO %q.states (name, data) VALUES ('default', repeat('0123456789abcdef', %d))", x.schema,
		size/16))
	r := request(t, attrs{"schema_name": text(x.schema)}, nil)
	r.MaxSize = size
	src, err := Kind().Start(settingsOf(attrs{"conn_str": text(x.reader(t))}))(r)
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	snap, err := src.Fetch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if len(snap.Data) != size {
		t.Errorf("got %d bytes", len(snap.Data))
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > size*22/10 {
		t.Errorf("allocated %d MiB for a state of %d MiB", used>>20, size>>20)
	} else {
		t.Logf("allocated %d MiB", used>>20)
	}
}

// TestNobodyThere: the address that was tried is in the error, and so is the host of the
// connection string, unless it may be the password, because there is no other.
func TestNobodyThere(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(address)
	for connStr, named := range map[string]string{
		"postgres://u:" + readerPassword + "@db.test:PORT/db":            "db.test:PORT: ",
		"postgres://u:" + readerPassword + "@db.test:PORT,db.test/db":    "db.test:PORT, db.test:5432: ",
		"postgres://u:" + readerPassword + "@db.test:PORT,other:PORT/db": "db.test:PORT, other:PORT: ",
		"host=db.test port=PORT user=u password=" + readerPassword:       "db.test:PORT: ",
		"postgres://u@" + readerPassword + ":PORT/db":                    "",
		"host=" + readerPassword + " port=PORT user=u":                   "",
	} {
		connStr, named = strings.ReplaceAll(connStr, "PORT", port), strings.ReplaceAll(named, "PORT", port)
		r := newRun(settingsOf(attrs{"conn_str": text(connStr + map[bool]string{true: "?", false: " "}[strings.Contains(connStr, "://")] +
			"sslmode=disable")}).For(Kind()))
		r.lookup = func(context.Context, string) ([]string, error) { return []string{"127.0.0.1"}, nil }
		src, err := r.open(request(t, nil, nil))
		if err != nil {
			t.Fatal(err)
		}
		_, err = src.Fetch(t.Context())
		if err == nil || !strings.Contains(err.Error(), "dial tcp 127.0.0.1:") || !strings.HasPrefix(err.Error(), named) ||
			strings.Contains(err.Error(), readerPassword) || named == "" && !strings.HasPrefix(err.Error(), netfail.NotReached) {
			t.Errorf("got %v, want %s", err, named)
		}
	}
}
