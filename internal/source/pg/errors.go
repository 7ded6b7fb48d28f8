package pg

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/answers"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/netfail"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/connections/web"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
)

var (
	errPatience    = errors.New("the server did not answer in time; check the network, and that PostgreSQL listens at this host and port")
	errNotPostgres = errors.New("the server does not respond like PostgreSQL; check the host and the port")
)

// explain replaces error messages from the server, which may repeat any data, and from the driver, which
// contain parts of the settings. If ctx is done, it returns the cause. It does not change this program's own
// errors.
func (c *connection) explain(ctx context.Context, l *location, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if own := web.Own(err); own != nil {
		return own
	}
	refusal, answered := errors.AsType[*pgconn.PgError](err)
	if answered {
		err = c.refusal(l, refusal.Code)
	} else {
		err = c.failure(l, err)
	}
	if c.hasAccount || answered {
		err = fmt.Errorf("%s: %w", c.address(), err)
	}
	return err
}

const maxAddress = 300 // size limit of an address in an error message, in bytes

// address returns the hosts and ports of the connection. If the connection string is malformed, they may be
// parts of the password. Errors therefore show them only if there is a password or certificate, or if a
// server responded.
func (c *connection) address() string {
	places := []string{place(c.config.Host, c.config.Port)}
	for _, f := range c.config.Fallbacks {
		places = append(places, place(f.Host, f.Port))
	}
	return outside.Line(strings.Join(slices.Compact(places), ", "), maxAddress)
}

func place(host string, port uint16) string { return net.JoinHostPort(host, strconv.Itoa(int(port))) }

// failure returns the error for a connection that failed without an error from PostgreSQL.
func (c *connection) failure(l *location, err error) error {
	_, isTooLong := errors.AsType[*pgproto3.ExceededMaxBodyLenErr](err)
	switch text := err.Error(); {
	case isTooLong, errors.Is(err, errTooMuch):
		return errTooMuch
	case strings.Contains(text, "server refused TLS connection"):
		return errors.New("the server does not offer TLS, but sslmode requires it; enable TLS on the server. Set sslmode=disable only if " +
			"nobody else can read the connection")
	case strings.Contains(text, "require_auth check failed"):
		return errors.New("the server requests the password in a way that is not safe over this connection, so the password was not sent; set " +
			"sslmode=verify-full, or allow this way with require_auth")
	case netfail.IsTimeout(err), pgconn.Timeout(err):
		return errPatience
	}
	// An error that is not a network error is a protocol error. Its text may contain server responses.
	if reason := netfail.KnownReason(anonymous(err), "set sslrootcert in the connection settings"); reason != "" {
		if l.target.settings["host"] == "" && l.target.settings["hostaddr"] == "" {
			reason += ". No host is set, so " + defaultHost + " was tried; set the host in conn_str in {credentials}, or in PGHOST"
		}
		return errors.New(reason)
	}
	return errNotPostgres
}

// anonymous returns a network error without the host, which may be a part of the password; see
// [connection.address]. It keeps the resolved address.
func anonymous(err error) error {
	if lookup, ok := errors.AsType[*net.DNSError](err); ok {
		return &net.DNSError{Err: lookup.Err}
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		shown := &net.OpError{Op: op.Op, Net: op.Net, Err: op.Err}
		if resolved, ok := op.Addr.(*net.TCPAddr); ok {
			shown.Addr = resolved
		}
		return shown
	}
	return err
}

var sqlState = lazyregexp.New(`^[0-9A-Z]{5}$`)

// refusal returns the error for a server's error code. It explains a fixed list of codes, and never shows
// text from the server.
//
// https://www.postgresql.org/docs/current/errcodes-appendix.html
func (c *connection) refusal(l *location, code string) error {
	if !sqlState.MatchString(code) {
		return errors.New("the server answered with an error that has no PostgreSQL error code")
	}
	return errors.New(answers.Coded(c.meaning(l, code), "SQLSTATE "+code))
}

func (c *connection) meaning(l *location, code string) string {
	name := l.name()
	return answers.Find([]answers.Row{
		{Code: "28P01 28000", Unless: c.hasAccount,
			Text: "the server refused the login, and no password is set; set a password in conn_str in {credentials}"},
		{Code: "28P01 28000", Text: "the server refused the login; check the user, the password, the database and sslmode in the connection " +
			"settings, and the server's pg_hba.conf"},
		{Code: "3D000", Text: "the server has no such database; check the database name in the connection settings"},
		{Code: "42P01 3F000", Unless: !strings.Contains(l.schema, "."), Text: "the database has no table " + name +
			"; set schema_name to the part before the dot, and table_name to the part after it"},
		{Code: "42P01 3F000", Text: "the database has no table " + name + "; check schema_name, table_name, and the database in the " +
			"connection settings"},
		{Code: "42501", Text: "the role is not allowed to read " + name + "; grant CONNECT on the database, USAGE on the schema, and " +
			"SELECT on the " +
			"columns name and data"},
		{Code: "42703", Text: name + " does not have the columns name and data; check schema_name and table_name"},
		{Code: "42883 42804 42846", Text: "the columns name and data of " + name + " are not text columns, but those of the backend are; check " +
			"schema_name and table_name"},
		{Code: "25006", Text: name + " cannot be read without a write; check whether it is a view that writes"},
		{Code: "22021 22P05", Text: "the server cannot convert the state, or the workspace's name, to or from UTF-8"},
		{Code: "53300", Text: "the server has no free connection; try again, or lower -parallelism"},
		{Code: "57P03", Text: "the server is starting up, shutting down or recovering; try again"},
		{Code: "57P01 57P02 57P05", Text: "the server ended the connection; try again"},
		{Code: "57014", Text: "the server cancelled the query; try again, or raise statement_timeout on the server"},
		{Code: "55P03", Text: name + " is locked by a change to the table; try again"},
		{Code: "42704 22023 08P01",
			Text: "the server, or a pooler in front of it, does not accept a parameter in the connection settings"},
		{Text: "the server answered with an error"},
	}, 0, code, "").Text
}
