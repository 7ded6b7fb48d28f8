package pg

import (
	"context"
	"crypto/tls"
	"io"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
)

// Whatever a server sends, in the login or after it, is an error or a state that
// is not too large.
func FuzzServer(f *testing.F) {
	encode := func(messages ...pgproto3.BackendMessage) []byte {
		var all []byte
		for _, m := range messages {
			all, _ = m.Encode(all)
		}
		return all
	}
	row := &pgproto3.DataRow{Values: [][]byte{[]byte("2"), []byte("{}")}}
	for _, answer := range [][]pgproto3.BackendMessage{
		{ready},
		append(append(plain("BEGIN"), append(columns(25), row, selected)...), append(plain("COMMIT"), ready)...),
		append(plain("BEGIN"), &pgproto3.ErrorResponse{Severity: "ERROR", Code: "42P01"}, ready),
		append(plain("BEGIN"), &pgproto3.ErrorResponse{Severity: "FATAL", Code: "57P01"}),
		append(plain("BEGIN"), &pgproto3.CopyOutResponse{}, &pgproto3.CopyData{}, &pgproto3.CopyDone{}, ready),
		append(plain("BEGIN"), &pgproto3.CopyInResponse{}, &pgproto3.NoticeResponse{}, &pgproto3.ParameterStatus{}, ready),
		append(plain("BEGIN"), &pgproto3.ParseComplete{}, &pgproto3.BindComplete{}, &pgproto3.EmptyQueryResponse{}, ready),
		append(plain("BEGIN"), append(columns(25), row, row, &pgproto3.PortalSuspended{}, ready, ready)...),
	} {
		f.Add(true, encode(answer...))
	}
	for _, answer := range [][]pgproto3.BackendMessage{
		{&pgproto3.AuthenticationOk{}, &pgproto3.BackendKeyData{SecretKey: []byte{1, 2, 3, 4}}, ready},
		{&pgproto3.AuthenticationMD5Password{}, &pgproto3.AuthenticationOk{}},
		{&pgproto3.AuthenticationSASL{AuthMechanisms: []string{"SCRAM-SHA-256"}},
			&pgproto3.AuthenticationSASLContinue{Data: []byte("r=a,s=YQ==,i=1")}},
		{&pgproto3.NegotiateProtocolVersion{NewestMinorProtocol: 1}},
	} {
		f.Add(false, encode(answer...))
	}
	f.Fuzz(func(t *testing.T, loggedIn bool, answer []byte) {
		fake := newFake(t, tls.Certificate{}, "{}")
		fake.set(func(s *session) {
			if loggedIn && s.login() || !loggedIn && s.start() {
				_ = s.SetDeadline(time.Now().Add(50 * time.Millisecond))
				_, _ = s.Write(answer)
				_, _ = io.Copy(io.Discard, s)
			}
		})
		src, err := Kind().Start(settingsOf(attrs{"conn_str": text("host=127.0.0.1 user=me password=" + readerPassword + " sslmode=disable port=" +
			fake.port())}))(request(t, nil, nil))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		snap, err := src.Fetch(ctx)
		switch {
		case err == nil && len(snap.Data) > 1<<20:
			t.Errorf("got %d bytes", len(snap.Data))
		case ctx.Err() != nil:
			t.Error("it does not end")
		}
	})
}
