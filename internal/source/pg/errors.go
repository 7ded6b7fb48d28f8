package pg

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

var (
	errPatience    = errors.New("the server did not answer in time")
	errNotPostgres = errors.New("the server does not answer as PostgreSQL does; are host and port right?")
)

// ownError is in our own words already.
type ownError struct{ error }

func (e ownError) Unwrap() error { return e.error }

// explain makes an error for people. What the server wrote is not in it, nor
// what the driver says, which has parts of the settings in it.
func (c *connection) explain(ctx context.Context, l *location, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if own, ok := errors.AsType[ownError](err); ok {
		return own.error
	}
	if refusal, ok := errors.AsType[*pgconn.PgError](err); ok {
		return c.refusal(l, refusal.Code)
	}
	if reason := tlsReason(err); reason != "" {
		return fmt.Errorf("the certificate of the server is not trusted: %s; check sslrootcert and sslmode in the connection settings", reason)
	}
	var (
		_, isTooLong    = errors.AsType[*pgproto3.ExceededMaxBodyLenErr](err)
		_, isPlain      = errors.AsType[tls.RecordHeaderError](err)
		lookup, isDNS   = errors.AsType[*net.DNSError](err)
		slow, canBeSlow = errors.AsType[net.Error](err)
		network, isOp   = errors.AsType[*net.OpError](err)
		text            = err.Error()
	)
	switch {
	case isTooLong, errors.Is(err, errTooMuch):
		return errTooMuch
	case strings.Contains(text, "server refused TLS connection"):
		return errors.New("the server does not offer TLS, which sslmode asks for; nothing was sent to it. Only where nobody else can listen, set sslmode=disable")
	case strings.Contains(text, "require_auth check failed"):
		return errors.New("the server asks for the password in a way that is not allowed, such as in clear over a connection that is not encrypted; nothing was sent. Set sslmode=verify-full, or require_auth")
	case isPlain:
		return errors.New("the server does not speak TLS; is the port right?")
	case isDNS:
		return fmt.Errorf("the host of the server cannot be found: %s", lookup.Err)
	case canBeSlow && slow.Timeout(), pgconn.Timeout(err):
		return errPatience
	case isOp && network.Op == "remote error":
		return fmt.Errorf("the server broke off the TLS handshake: %w", network.Err)
	case isOp:
		return fmt.Errorf("the server cannot be reached: %w", network.Err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the connection to the server was lost")
	}
	return errNotPostgres
}

// tlsReason says why a certificate is not trusted, "" where it is not about
// one. verify-ca checks it in a function of the driver, without the error that
// crypto/tls wraps around it.
func tlsReason(err error) string {
	var (
		wrapped, isWrapped = errors.AsType[*tls.CertificateVerificationError](err)
		unknown, isUnknown = errors.AsType[x509.UnknownAuthorityError](err)
		invalid, isInvalid = errors.AsType[x509.CertificateInvalidError](err)
		roots, isRoots     = errors.AsType[x509.SystemRootsError](err)
	)
	switch {
	case isWrapped:
		return shown(wrapped.Err)
	case isUnknown:
		return shown(unknown)
	case isInvalid:
		return shown(invalid)
	case isRoots:
		return shown(roots)
	}
	return ""
}

var sqlState = regexp.MustCompile(`^[0-9A-Z]{5}$`)

// refusal says what an error of the server means. Its codes are a closed list;
// its text may repeat anything.
//
// https://www.postgresql.org/docs/current/errcodes-appendix.html
func (c *connection) refusal(l *location, code string) error {
	if !sqlState.MatchString(code) {
		return errors.New("the server answered with an error that has no code of PostgreSQL")
	}
	return fmt.Errorf("%s (SQLSTATE %s)", c.meaning(l, code), code)
}

func (c *connection) meaning(l *location, code string) string {
	switch code {
	case "28P01", "28000":
		if !c.hasAccount {
			return "the server refused the login: there is no password; set one in conn_str, in the pg block of credentials, in the provider block"
		}
		return "the server refused the login; check user, password, database and sslmode in the connection settings, and the server's pg_hba.conf"
	case "3D000":
		return "the server has no such database; check the one in the connection settings"
	case "42P01", "3F000":
		return fmt.Sprintf("the database has no table %s; check schema_name, table_name, and the database in the connection settings", l.name())
	case "42501":
		return fmt.Sprintf("the role may not read %s; what it takes is CONNECT on the database, USAGE on the schema, and SELECT on the columns name and data", l.name())
	case "42703":
		return fmt.Sprintf("%s does not have the columns name and data", l.name())
	case "42883", "42804", "42846":
		return fmt.Sprintf("the columns name and data of %s do not hold text, as those of the backend do", l.name())
	case "25006":
		return fmt.Sprintf("%s writes when it is read, which is not allowed", l.name())
	case "22021", "22P05":
		return "the server cannot convert the state, or the workspace's name, to or from UTF-8"
	case "53300":
		return "the server has no free connection; try again, or lower -parallelism"
	case "57P03":
		return "the server is starting up, shutting down or recovering; try again"
	case "57P01", "57P02", "57P05":
		return "the server ended the connection; try again"
	case "57014":
		return "the server cancelled the query, perhaps because of its statement_timeout"
	case "55P03":
		return fmt.Sprintf("%s is locked by somebody who changes the table; try again", l.name())
	case "42704", "22023", "08P01":
		return "the server, or a pooler in front of it, does not take a parameter of the connection settings"
	}
	return "the server answered with an error"
}

// shown makes the text of an error, which may have names of the server in it,
// fit to be shown.
func shown(err error) string {
	const limit = 200
	text := err.Error()
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "") + "…"
	}
	quoted := strconv.Quote(text)
	return quoted[1 : len(quoted)-1]
}
